//! The metrics. Their names are the stream's fields and the API's.

use http::StatusCode;

use crate::{
    page_cache::{CacheStatus, ForwardReason, Reason},
    ports::fetch::Response,
};

macro_rules! counts {
    ($($(#[$doc:meta])* $count:ident $name:literal,)*) => {
        /// One figure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Metric {
            $($(#[$doc])* $count,)*
        }

        impl Metric {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$count),*];

            /// As in the stream and in the API.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$count => $name,)*
                }
            }
        }
    };
}

counts! {
    // Every answer to a visitor is one of these: where it came from.
    /// A stored page that was fresh, or that another visitor was waiting for.
    Hit "hit",
    /// A stored page that is rendered anew behind the answer.
    Stale "stale",
    /// A page that was rendered, and stored.
    Stored "stored",
    /// A page that was rendered, and could not be stored, or is being stored by another request.
    Miss "miss",
    /// A page of an item that ranks too low.
    Unpopular "unpopular",
    /// A URL that names no item.
    NoItem "no_item",
    /// A page that is made for this request: `_` in its URL.
    Dynamic "dynamic",
    /// Parameters that are not known, or given twice.
    Parameters "parameters",
    /// Neither GET nor HEAD.
    Method "method",
    /// A header that asks for more than a stored page.
    Header "header",
    /// The origin's, since Redis did not answer.
    RedisDown "redis_down",
    /// The API's.
    Api "api",
    /// Status 5xx, caused by the origin or by Redis.
    Failed "failed",

    // Actions of visitors.
    /// An item's page was seen: GET and 200, from the cache or not; or somebody reported it.
    View "views",
    /// Something was added to a cart.
    Addition "additions",
    /// Something was added to an empty cart.
    Cart "carts",
    /// An order, once for each id.
    Order "orders",

    // Cost in Redis.
    /// Requests to Redis that a visitor waited for.
    Requests "redis_requests",
    /// Commands in them; a script is one.
    Commands "redis_commands",
    /// Requests behind answers.
    LaterRequests "later_requests",
    /// Commands in them.
    LaterCommands "later_commands",
    /// Requests of both kinds that brought no reply.
    Failures "redis_failures",
}

impl Metric {
    /// Where an answer of the storefront came from.
    #[must_use]
    pub fn of_page(response: &Response) -> Self {
        match response.extensions().get::<CacheStatus>() {
            _ if is_failed(response.status()) => Self::Failed,
            Some(CacheStatus::Hit { ttl, .. }) if *ttl > 0 => Self::Hit,
            Some(CacheStatus::Hit { .. }) => Self::Stale,
            Some(CacheStatus::Forward { collapsed: true, .. }) => Self::Hit,
            Some(CacheStatus::Forward { stored: true, .. }) => Self::Stored,
            Some(CacheStatus::Forward { forward, detail, .. }) => Self::of_forward(*forward, *detail),
            // Ours in the place of the origin's, because what it said cannot be done.
            None => Self::NoItem,
        }
    }

    /// Where an answer of the API came from.
    #[must_use]
    pub fn of_call(response: &Response) -> Self {
        if is_failed(response.status()) { Self::Failed } else { Self::Api }
    }

    /// Why the origin was asked, and why its answer is not stored, as `Cache-Status` tells it.
    fn of_forward(forward: ForwardReason, detail: Option<Reason>) -> Self {
        match (forward, detail) {
            (ForwardReason::Method, _) => Self::Method,
            (ForwardReason::Request, _) => Self::Header,
            (_, Some(Reason::NoItem | Reason::NoPage)) => Self::NoItem,
            (_, Some(Reason::Dynamic)) => Self::Dynamic,
            (_, Some(Reason::Parameters | Reason::Spelling)) => Self::Parameters,
            (_, Some(Reason::Unpopular)) => Self::Unpopular,
            (_, Some(Reason::RedisDown)) => Self::RedisDown,
            _ => Self::Miss,
        }
    }
}

fn is_failed(status: StatusCode) -> bool {
    status.is_server_error()
}

/// A number for each figure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricCounts([u64; Metric::ALL.len()]);

impl MetricCounts {
    pub fn add(&mut self, count: Metric, number: u64) {
        if let Some(sum) = self.0.get_mut(count as usize) {
            *sum = sum.saturating_add(number);
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        for (count, number) in other.iter() {
            self.add(count, number);
        }
    }

    #[must_use]
    pub fn get(&self, count: Metric) -> u64 {
        self.0.get(count as usize).copied().unwrap_or_default()
    }

    /// In the order of [`Metric::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Metric, u64)> {
        Metric::ALL.into_iter().zip(self.0)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|number| *number == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_counted_by_what_its_cache_status_says() {
        for (status, code, count) in [
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
            status.append_to(&mut response);
            assert_eq!(Metric::of_page(&response), count, "{status}");
        }
    }

    #[test]
    fn every_figure_has_a_name_and_a_place_of_its_own() {
        let mut counts = MetricCounts::default();
        for count in Metric::ALL {
            assert_eq!(Metric::ALL.into_iter().filter(|other| other.name() == count.name()).count(), 1);
            counts.add(count, 1);
        }
        assert_eq!(counts, MetricCounts([1; Metric::ALL.len()]));
    }
}
