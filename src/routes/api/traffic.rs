//! `/traffic`: the traffic counters of the last minutes.

use serde_json::{Map, Value, json};

use super::{request::ApiRequest, respond};
use crate::{
    metrics::traffic::{self, Metric},
    ports::answer::Answer,
    routes::problem::Problem,
};

/// The longest time series, in minutes. The stream holds an hour of a moderately busy shop.
const MAX_MINUTES: u32 = 60;

/// `?minutes=` → `{now, width, at: […], counts: {hit: […], …}, totals: {hit, …}}`. `at` holds the start of each bucket
/// of `width` seconds, the last bucket being incomplete; `counts` holds one number for each bucket.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let minutes = request.query_number("minutes", 15, MAX_MINUTES)?;
    let series = traffic::read_series(&request.app.redis, minutes.into(), request.now).await?;
    let column = |metric: Metric| series.buckets.iter().map(|counts| counts.get(metric).into()).collect::<Vec<Value>>();
    let counts: Map<_, Value> =
        Metric::ALL.into_iter().map(|metric| (metric.name().to_owned(), column(metric).into())).collect();
    let totals: Map<_, Value> =
        series.totals().iter().map(|(metric, count)| (metric.name().to_owned(), count.into())).collect();
    let document = json!({
        "now": request.now.as_score(),
        "width": series.width,
        "at": series.bucket_starts().collect::<Vec<_>>(),
        "counts": counts,
        "totals": totals,
    });
    Ok(respond::json(respond::NO_STORE, &document).into())
}
