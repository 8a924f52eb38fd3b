//! `/flash`: a flash sale as its visitor finds it, and their piece of it.

use http::StatusCode;
use serde_json::{Value, json};

use super::{call::Call, reply, rows};
use crate::{
    App,
    orders::flash_sale::{FlashSale, FlashSales, ReservationId, ReserveOutcome},
    ports::{answer::Answer, error::Error, time::Timestamp},
    routes::problem::Problem,
    schema::{ids::RowId, token::Token},
};

/// The sale now. `now` is the server's clock in milliseconds, for a countdown on a machine whose clock may be wrong.
pub async fn show(call: Call<'_>) -> Result<Answer, Problem> {
    let (app, now, id) = (call.app, call.now, sale(&call)?);
    let sale = sales(app).read(&id, call.token().as_ref(), now).await?;
    let response = reply::json(reply::PERSONAL, &document(&id, &sale, now));
    let overdue = if sale.overdue { vec![id] } else { Vec::new() };
    Ok(Answer { response, background: rows::refresh(app, overdue, now) })
}

/// Holds a piece for the visitor: 201, or 200 if one was held for them already. It needs no `Idempotency-Key`: there is one
/// piece for each user.
pub async fn reserve(call: Call<'_>) -> Result<Answer, Problem> {
    let (app, now, id, token) = (call.app, call.now, sale(&call)?, visitor(&call)?);
    let ReserveOutcome { sale, created, .. } = sales(app).reserve(&id, &token, now).await?;
    let mut response = reply::json(reply::PERSONAL, &document(&id, &sale, now));
    if created {
        *response.status_mut() = StatusCode::CREATED;
    }
    Ok(response.into())
}

/// Gives the visitor's piece back.
pub async fn cancel(call: Call<'_>) -> Result<Answer, Problem> {
    let (app, sale, token) = (call.app, sale(&call)?, visitor(&call)?);
    let id = ReservationId::parse(&call.second).ok_or(Error::NotFound("reservation"))?;
    sales(app).cancel(&sale, &token, &id, call.now).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT).into())
}

/// What cannot be a row's name is no sale's either.
fn sale(call: &Call<'_>) -> Result<RowId, Error> {
    RowId::parse(&call.name).map_err(|_| Error::NotFound("flash sale"))
}

fn sales(app: &App) -> FlashSales<'_> {
    FlashSales { redis: &app.redis, source: app.row_source(), config: &app.config }
}

/// Without a cookie of ours nobody is signed in: Redis need not be asked.
fn visitor(call: &Call<'_>) -> Result<Token, Error> {
    call.token().ok_or(Error::NotSignedIn)
}

fn document(id: &RowId, sale: &FlashSale, now: Timestamp) -> Value {
    let reservation = sale.reservation.as_ref();
    json!({
        "id": id.as_str(),
        "state": sale.state(now).as_str(),
        "now": now.as_millis(),
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
