//! `/traffic`: what happened in the last minutes.

use serde_json::{Map, Value, json};

use super::{call::Call, reply};
use crate::{
    metrics::traffic::{self, Metric},
    ports::answer::Answer,
    routes::problem::Problem,
};

/// The longest time that one may ask for, in minutes; the stream holds an hour of a shop that is not very busy.
const MOST: u32 = 60;

/// `?minutes=` (1 to 60, 15 without) → `{now, width, at: […], counts: {hit: […], …}, totals: {hit, …}}`. `at` has the Unix
/// second in which each stretch of `width` seconds begins, the last one being under way; `counts` has a number for each.
pub async fn show(call: Call<'_>) -> Result<Answer, Problem> {
    let minutes = call.number("minutes", 15, MOST)?;
    let series = traffic::series(&call.app.redis, minutes.into(), call.now).await?;
    let column = |count: Metric| series.stretches.iter().map(|counts| counts.get(count).into()).collect::<Vec<Value>>();
    let counts: Map<_, Value> =
        Metric::ALL.into_iter().map(|count| (count.name().to_owned(), column(count).into())).collect();
    let totals: Map<_, Value> =
        series.totals().iter().map(|(count, number)| (count.name().to_owned(), number.into())).collect();
    let document = json!({
        "now": call.now.as_score(),
        "width": series.width,
        "at": series.moments().collect::<Vec<_>>(),
        "counts": counts,
        "totals": totals,
    });
    Ok(reply::json(reply::PERSONAL, &document).into())
}
