//! Counts answers, their latencies, errors, and their requests to Redis in the traffic counters.

use upstash_rest::Attribution;

use crate::{
    App,
    metrics::{
        event_log::ORIGIN_CAUSE,
        traffic::{ErrorKind, LatencyKind, Metric},
    },
    page_cache::{CacheStatus, ForwardReason, Reason},
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::Response,
        problem::Failure,
        time::Timestamp,
    },
    proxy::home::FromHome,
};

/// The part of edgefront that answers a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    Storefront,
    Api,
}

impl Area {
    fn classify(self, response: &Response) -> (Metric, LatencyKind) {
        match self {
            Self::Api => (metric_of_api(response), LatencyKind::Api),
            Self::Storefront => match metric_of_storefront(response) {
                metric @ (Metric::Hit | Metric::Stale) => (metric, LatencyKind::Hit),
                metric => (metric, LatencyKind::Render),
            },
        }
    }
}

/// Runs a handler and counts its answer, and its requests to Redis before and after the response. The request arrived
/// at `now`.
pub async fn counted(app: &App, area: Area, now: Timestamp, work: impl Future<Output = Answer>) -> Answer {
    let meter = app.redis.meter();
    let mut answer = meter.clone().attribute(Attribution::Foreground, work).await;
    if answer.response.extensions().get::<FromHome>().is_none() {
        let (metric, kind) = area.classify(&answer.response);
        app.traffic.count(metric);
        app.traffic.record(kind, app.clock.now().since(now));
    }
    count_error(app, &answer.response, now);
    let behind = |background: BackgroundTask| -> BackgroundTask {
        Box::pin(meter.clone().attribute(Attribution::Background, background))
    };
    answer.background = answer.background.into_iter().map(behind).collect();
    answer
}

/// Counts a response with status 4xx or 5xx. The home tier has counted its own.
pub fn count_error(app: &App, response: &Response, now: Timestamp) {
    let (status, extensions) = (response.status(), response.extensions());
    if !(status.is_client_error() || status.is_server_error()) || extensions.get::<FromHome>().is_some() {
        return;
    }
    let (route, cause, reason) = match extensions.get::<Failure>() {
        Some(Failure { route, kind, cause, .. }) => (route.clone(), *kind, cause.as_str()),
        None => ("storefront".to_owned(), "origin", ORIGIN_CAUSE),
    };
    app.traffic.record_error(now, ErrorKind { status: status.as_u16(), route, cause: cause.to_owned() }, reason);
}

fn metric_of_api(response: &Response) -> Metric {
    if response.status().is_server_error() { Metric::Failed } else { Metric::Api }
}

fn metric_of_storefront(response: &Response) -> Metric {
    match response.extensions().get::<CacheStatus>() {
        _ if response.status().is_server_error() => Metric::Failed,
        Some(CacheStatus::Hit { ttl, .. }) if *ttl > 0 => Metric::Hit,
        Some(CacheStatus::Hit { .. }) => Metric::Stale,
        Some(CacheStatus::Forward { collapsed: true, .. }) => Metric::Hit,
        Some(CacheStatus::Forward { stored: true, .. }) => Metric::Stored,
        Some(CacheStatus::Forward { forward, detail, .. }) => metric_of_forward(*forward, *detail),
        // edgefront answers in the origin's place, because it cannot do what the origin demands.
        None => Metric::NoItem,
    }
}

/// `forward` says why the request went to the origin, `detail` why the response is not stored.
const fn metric_of_forward(forward: ForwardReason, detail: Option<Reason>) -> Metric {
    match (forward, detail) {
        (ForwardReason::Method, _) => Metric::Method,
        (ForwardReason::Request, _) | (_, Some(Reason::Cookie)) => Metric::Header,
        (_, Some(Reason::NoItem | Reason::NoPage | Reason::Path)) => Metric::NoItem,
        (_, Some(Reason::Dynamic)) => Metric::Dynamic,
        (_, Some(Reason::Parameters | Reason::Spelling)) => Metric::Parameters,
        (_, Some(Reason::Unpopular)) => Metric::Unpopular,
        (_, Some(Reason::RedisDown)) => Metric::RedisDown,
        _ => Metric::Miss,
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn a_response_is_classified_by_its_cache_status() {
        for (cache_status, code, metric) in [
            (CacheStatus::Hit { ttl: 1, detail: None }, 200, Metric::Hit),
            (CacheStatus::Hit { ttl: 1, detail: None }, 304, Metric::Hit),
            (CacheStatus::Hit { ttl: 0, detail: None }, 200, Metric::Stale),
            (CacheStatus::collapsed(ForwardReason::UriMiss), 200, Metric::Hit),
            (CacheStatus::stored(ForwardReason::Stale, Some(304)), 200, Metric::Stored),
            (CacheStatus::not_stored(ForwardReason::UriMiss, Reason::Status), 404, Metric::Miss),
            (CacheStatus::not_stored(ForwardReason::UriMiss, Reason::OriginDown), 502, Metric::Failed),
            (CacheStatus::bypass(Reason::Unpopular), 200, Metric::Unpopular),
            (CacheStatus::bypass(Reason::Private), 200, Metric::Miss),
            (CacheStatus::bypass(Reason::RequestHeader("authorization")), 206, Metric::Header),
            (CacheStatus::bypass(Reason::RedisDown), 200, Metric::RedisDown),
        ] {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::from_u16(code).unwrap();
            cache_status.append_to(&mut response);
            assert_eq!(metric_of_storefront(&response), metric, "{cache_status}");
        }
    }
}
