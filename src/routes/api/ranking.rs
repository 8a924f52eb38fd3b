//! `/popular`, `/ranking` and `/views`: the ranking, and views that edgefront did not see.

use http::StatusCode;
use serde::Serialize;
use serde_json::json;

use super::{request::ApiRequest, respond};
use crate::{
    metrics::traffic::Metric,
    ports::{answer::Answer, error::Error, network::ClientNetwork},
    ranking::{self, Movement, RankMovement, Since, activity::Viewer, crawler},
    routes::problem::Problem,
    schema::ids::ItemId,
};

/// The longest list: Redis keeps the earlier ranks of this many items.
const MAX_ITEMS: u32 = ranking::REMEMBERED_RANKS;

/// `?limit=` → `{items: [{id, rank, views}]}`, most viewed first. `views` are decayed.
pub async fn popular(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let items = ranking::top(&request.app.redis, request.query_number("limit", 10, MAX_ITEMS)?).await?;
    Ok(respond::json(respond::SHARED_10_SECONDS, &json!({"items": items})).into())
}

#[derive(Serialize)]
struct MovementJson {
    items: Vec<RankMovement>,
    since: Option<u64>,
    item_route: String,
}

/// `?limit=&since=` → `{items: [{id, rank, views, before}], since, item_route}`. `before` is the rank an hour ago (`hour`)
/// or at the last rescale (`rescale`, the default); null if the item was not among the first 100. `item_route` is the
/// pattern of an item's page.
pub async fn movement(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let since = match request.query_parameter("since")?.as_deref() {
        None | Some("rescale") => Since::Rescale,
        Some("hour") => Since::Hour,
        Some(_) => return Err(Error::invalid("since", "must be `hour` or `rescale`").into()),
    };
    let limit = request.query_number("limit", 10, MAX_ITEMS)?;
    let Movement { items, since } = ranking::movement(&request.app.redis, limit, since, request.now).await?;
    let item_route = request.app.config.page.urls.items.pattern();
    Ok(respond::json(respond::NO_STORE, &MovementJson { items, since, item_route }).into())
}

/// `{item}`: reports a view of an item's page that another cache served. 202, because the view is counted after the
/// response. A session's views of an item count once in `VIEW_WINDOW`; without a session, an `Idempotency-Key` makes a
/// repeated report count once.
pub async fn view(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let mut fields = request.json_fields()?;
    let item = fields.take_id("item", ItemId::parse)?;
    fields.finish()?;
    let key = request.idempotency_key()?;
    // A crawler that runs scripts gets the same response, and its view is not counted.
    if crawler::is_human(request.headers()) {
        let token = request.session_token();
        let viewer = Viewer { token: token.as_ref(), network: ClientNetwork::of(request.headers()) };
        request.app.traffic.count(Metric::View);
        request.app.activity.record_reported_view(viewer, &item, key, request.now);
    }
    Ok(respond::empty(StatusCode::ACCEPTED).into())
}
