//! `/traffic`: the traffic counters of the last minutes.

use serde_json::{Map, Value, json};

use super::{request::ApiRequest, respond};
use crate::{
    metrics::traffic::{self, ErrorEvent, ErrorKind, LatencyKind, Metric, TrafficSample, TrafficSeries},
    ports::{answer::Answer, histogram::Histogram, sort},
    routes::problem::Problem,
};

/// The longest time series, in minutes: a week.
const MAX_MINUTES: u32 = 7 * 24 * 60;

/// `?minutes=` → `{now, width, at: […], counts: {hit: […], …}, totals: {hit, …}, latency: {hit: {…}, …}}`. `at` holds the
/// start of each bucket of `width` seconds, the last bucket being incomplete; `counts` holds one number for each bucket.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let minutes = request.query_number("minutes", 15, MAX_MINUTES)?;
    let series = traffic::read_series(&request.app.redis, minutes.into(), request.now).await?;
    let column =
        |metric: Metric| series.buckets.iter().map(|bucket| bucket.counts.get(metric).into()).collect::<Vec<Value>>();
    let counts: Map<_, Value> =
        Metric::ALL.into_iter().map(|metric| (metric.name().to_owned(), column(metric).into())).collect();
    let totals = series.totals();
    let sums: Map<_, Value> =
        totals.counts.iter().map(|(metric, count)| (metric.name().to_owned(), count.into())).collect();
    let document = json!({
        "now": request.now.as_score(),
        "width": series.width,
        "at": series.bucket_starts().collect::<Vec<_>>(),
        "counts": counts,
        "totals": sums,
        "latency": latencies(&series, &totals),
        "errors": errors(&series, &totals),
        "online": series.online.iter().map(|(at, online)| json!([at, online])).collect::<Vec<_>>(),
        "latest_errors": totals.errors.latest().iter().map(describe).collect::<Vec<_>>(),
    });
    Ok(respond::json(respond::NO_STORE, &document).into())
}

/// The percentiles of a latency, with their names.
const PERCENTILES: [(&str, u64); 3] = [("p50", 50), ("p95", 95), ("p99", 99)];

/// Kind → `{count: […], p50: […], p95: […], p99: […], total: {count, p50, p95, p99}}` in seconds. A percentile without
/// durations is null.
fn latencies(series: &TrafficSeries, totals: &TrafficSample) -> Map<String, Value> {
    let of_kind = |(kind, total): (LatencyKind, &Histogram)| {
        let buckets: Vec<_> = series.buckets.iter().map(|bucket| bucket.latencies.of(kind)).collect();
        let column =
            |figure: &dyn Fn(&Histogram) -> Value| buckets.iter().map(|bucket| figure(bucket)).collect::<Value>();
        let count = |histogram: &Histogram| Value::from(histogram.count());
        let (mut columns, mut overall) = (json!({"count": column(&count)}), json!({"count": total.count()}));
        for (name, percent) in PERCENTILES {
            let percentile =
                |histogram: &Histogram| Value::from(histogram.percentile(percent).map(|millis| millis / 1000.0));
            insert(&mut columns, name, column(&percentile));
            insert(&mut overall, name, percentile(total));
        }
        insert(&mut columns, "total", overall);
        (kind.name().to_owned(), columns)
    };
    totals.latencies.iter().map(of_kind).collect()
}

/// `[{status, route, cause, total, counts: […]}]`, the most frequent errors first.
fn errors(series: &TrafficSeries, totals: &TrafficSample) -> Vec<Value> {
    let mut kinds: Vec<_> = totals.errors.counts().iter().collect();
    sort::sort_by(&mut kinds, |(_, one), (_, other)| other.cmp(one));
    let of_kind = |(kind, total): &(ErrorKind, u64)| {
        let count = |bucket: &TrafficSample| bucket.errors.count(kind);
        let counts: Vec<_> = series.buckets.iter().map(count).collect();
        json!({"status": kind.status, "route": kind.route, "cause": kind.cause, "total": total, "counts": counts})
    };
    kinds.into_iter().map(of_kind).collect()
}

/// `{at, status, route, cause, reason}`.
fn describe(ErrorEvent { at, kind, reason }: &ErrorEvent) -> Value {
    json!({"at": at.as_score(), "status": kind.status, "route": kind.route, "cause": kind.cause, "reason": reason})
}

fn insert(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
}
