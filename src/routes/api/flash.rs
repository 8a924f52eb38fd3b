//! `/flash`: flash sales, and the visitor's reservation.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use super::{request::ApiRequest, respond, rows};
use crate::{
    App,
    orders::flash_sale::{FlashSale, FlashSales, Hold, ReservationId, ReserveOutcome},
    ports::{answer::Answer, error::Error, time::Timestamp},
    routes::problem::Problem,
    schema::{ids::RowId, token::Token},
};

/// The sale. `now` is the server's clock: a countdown needs it if the client's clock is wrong.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, now, id) = (request.app, request.now, sale_id(&request)?);
    let sale = sales(app).read(&id, request.session_token().as_ref(), now).await?;
    let response = respond::json(respond::NO_STORE, &describe(&id, &sale, now));
    let overdue = if sale.overdue { vec![id] } else { Vec::new() };
    Ok(Answer { response, background: rows::refresh_task(app, overdue, now) })
}

/// Reserves a piece for the visitor's user: 201, or 200 for a piece that is held already. The route needs no
/// `Idempotency-Key`, because a user gets one piece.
pub async fn reserve(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, now, id, token) = (request.app, request.now, sale_id(&request)?, required_token(&request)?);
    let ReserveOutcome { sale, created, .. } = sales(app).reserve(&id, &token, now).await?;
    let mut response = respond::json(respond::NO_STORE, &describe(&id, &sale, now));
    if created {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response.into())
}

/// Cancels the visitor's reservation.
pub async fn cancel(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, sale, token) = (request.app, sale_id(&request)?, required_token(&request)?);
    let id = ReservationId::parse(&request.second_id).ok_or(Error::NotFound("reservation"))?;
    sales(app).cancel(&sale, &token, &id, request.now).await?;
    Ok(respond::empty(StatusCode::NO_CONTENT).into())
}

#[derive(Serialize)]
struct OperatorJson<'a> {
    id: &'a str,
    state: &'static str,
    now: f64,
    starts: u64,
    ends: u64,
    pieces: u64,
    sold: u64,
    held: u64,
    left: u64,
    holds: Vec<Hold>,
}

/// The sale as its operator sees it, with its reservations: those that end first before the others.
pub async fn holds(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, now, id) = (request.app, request.now, sale_id(&request)?);
    let (sale, holds) = sales(app).read_with_holds(&id, now).await?;
    let document = OperatorJson {
        id: id.as_str(),
        state: sale.state(now).as_str(),
        now: now.as_score(),
        starts: sale.starts.as_secs(),
        ends: sale.ends.as_secs(),
        pieces: sale.pieces,
        sold: sale.sold,
        held: sale.held,
        left: sale.left,
        holds,
    };
    Ok(respond::json(respond::NO_STORE, &document).into())
}

/// `{was, pieces}`: changes the number of pieces in the shop's database. Idempotent.
pub async fn set_pieces(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, now, id) = (request.app, request.now, sale_id(&request)?);
    let mut fields = request.json_fields()?;
    let [was, pieces] = ["was", "pieces"]
        .map(|field| fields.take(field)?.as_u64().ok_or_else(|| Error::invalid(field, "must be a whole number")));
    let (was, pieces) = (was?, pieces?);
    fields.finish()?;
    let changed = sales(app).set_pieces(&id, was, pieces, now).await;
    // Also after an error: Redis may have executed the request and lost the reply.
    app.rows.forget(std::slice::from_ref(&id));
    changed?;
    holds(request).await
}

/// The sale's id. A path that cannot be a row's id names no sale.
fn sale_id(request: &ApiRequest<'_>) -> Result<RowId, Error> {
    RowId::parse(&request.id).map_err(|_| Error::NotFound("flash sale"))
}

fn sales(app: &App) -> FlashSales<'_> {
    FlashSales { redis: &app.redis, source: app.row_source(), config: &app.config }
}

/// The session's token. A visitor without a token is not signed in; this check costs no Redis request.
fn required_token(request: &ApiRequest<'_>) -> Result<Token, Error> {
    request.session_token().ok_or(Error::NotSignedIn)
}

fn describe(id: &RowId, sale: &FlashSale, now: Timestamp) -> Value {
    let reservation = sale.reservation.as_ref();
    json!({
        "id": id.as_str(),
        "state": sale.state(now).as_str(),
        "now": now.as_score(),
        "starts": sale.starts.as_secs(),
        "ends": sale.ends.as_secs(),
        "pieces": sale.pieces,
        "left": sale.left,
        "held": sale.held,
        "price_cents": sale.price_cents,
        "list_cents": sale.list_cents,
        "reservation": reservation.map(|held| json!({"id": held.id.as_str(), "until": held.until.as_score()})),
        "bought": sale.bought,
    })
}
