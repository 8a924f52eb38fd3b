//! `/popular` and `/views`: what is viewed most, and views that we did not see.

use http::StatusCode;
use serde_json::json;

use super::{call::Call, reply};
use crate::{
    metrics::traffic::Metric,
    ports::{answer::Answer, network::ClientNetwork},
    ranking::{self, activity::Viewer, crawler},
    routes::problem::Problem,
    schema::ids::ItemId,
};

/// The longest list: more would be a page of its own, and nobody knows where it stood before.
const MOST: u32 = ranking::REMEMBERED;

/// `?limit=` (1 to 100, 10 without) → `{items: [{id, rank, views}]}`, most viewed first; `views` are decayed ones.
pub async fn popular(call: Call<'_>) -> Result<Answer, Problem> {
    let items = ranking::top(&call.app.redis, call.number("limit", 10, MOST)?).await?;
    // The same for all, and a few seconds late does not matter.
    Ok(reply::json("public, max-age=10", &json!({"items": items})).into())
}

/// `?limit=` (1 to 100, 10 without) → `{items: [{id, rank, views, before}]}`; `before` is the rank at the last rescale, null for
/// an item that was not among the first 100.
pub async fn movement(call: Call<'_>) -> Result<Answer, Problem> {
    let items = ranking::movement(&call.app.redis, call.number("limit", 10, MOST)?).await?;
    Ok(reply::json(reply::PERSONAL, &json!({"items": items})).into())
}

/// `{item}`: somebody saw its page, which another cache served. Counted behind the answer, hence 202. A session's views of an
/// item count once in a while anyway; with an `Idempotency-Key` those of a visitor without a session are not counted twice.
pub async fn view(call: Call<'_>) -> Result<Answer, Problem> {
    let mut fields = call.fields()?;
    let item = fields.parse_text("item", ItemId::parse)?;
    fields.end()?;
    let key = call.idempotency_key()?.map(str::to_owned);
    let (app, now, token) = (call.app.clone(), call.now, call.token());
    // A crawler that runs the page's script is answered like everybody.
    if crawler::is_human(call.headers()) {
        app.traffic.count(Metric::View);
        let viewer = Viewer { token: token.as_ref(), network: ClientNetwork::of(call.headers()) };
        app.activity.note_reported(viewer, &item, key.as_deref(), now);
    }
    Ok(reply::empty(StatusCode::ACCEPTED).into())
}
