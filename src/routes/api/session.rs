//! `/session`, `/recent`, and `POST /sessions`: who the visitor is, and what they looked at.

use std::time::Duration;

use http::{StatusCode, header};
use serde::Serialize;
use serde_json::json;

use super::{body::read_text, call::Call, reply};
use crate::{
    carts,
    ports::{answer::Answer, fetch::Response},
    routes::problem::Problem,
    schema::ids::{ItemId, UserId},
    sessions::{self, LoginRequest, cookie, device::DeviceLabel},
};

/// How long a replica of Redis may not know yet of a session that has begun: with several regions this read may come from one that lags.
const LAG: Duration = Duration::from_mins(1);

/// What [`show`] answers.
#[derive(Serialize)]
struct Document<'a> {
    user: Option<&'a str>,
    guest: bool,
    cart: Size,
}

#[derive(Serialize)]
struct Size {
    lines: usize,
    quantity: u64,
}

/// `{user, guest, cart: {lines, quantity}}`. A visitor without a session is nobody, which is no error.
///
/// A cookie that is worth nothing is cleared, and only here: a slower answer to another call might otherwise clear the
/// cookie that a login has set meanwhile. One that was signed within the last [`LAG`] may be of a session that this replica lacks.
pub async fn show(call: Call<'_>) -> Result<Answer, Problem> {
    let token = call.token();
    let is_young = token.as_ref().is_some_and(|token| token.began() + LAG > call.now);
    let found = match token {
        Some(token) => carts::read(&call.app.redis, &token, call.now, &call.app.config.session).await?,
        None => None,
    };
    let is_worthless = found.is_none() && !is_young;
    let (session, cart) = found.unzip();
    let cart = cart.unwrap_or_default();
    let user = session.as_ref().and_then(|session| session.user.as_ref());
    let document = Document {
        user: user.map(UserId::as_str),
        guest: session.is_some() && user.is_none(),
        cart: Size { lines: cart.lines.len(), quantity: cart.total_quantity() },
    };
    let mut response = reply::json(reply::PERSONAL, &document);
    if is_worthless && cookie::is_sent(call.headers()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    Ok(response.into())
}

/// Logs this session out, and the browser forgets it. That there is none is no error.
pub async fn end(call: Call<'_>) -> Result<Answer, Problem> {
    if let Some(token) = call.token() {
        sessions::log_out(&call.app.redis, &token, call.now, &call.app.config.session).await?;
    }
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    if cookie::is_sent(call.headers()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    Ok(response.into())
}

/// The items last viewed, newest first.
pub async fn recent(call: Call<'_>) -> Result<Answer, Problem> {
    let found = match call.token() {
        Some(token) => sessions::read_viewed_items(&call.app.redis, &token, call.now, &call.app.config.session).await?,
        None => None,
    };
    let items = found.map(|(_, items)| items).unwrap_or_default();
    let items: Vec<_> = items.iter().map(ItemId::as_str).collect();
    Ok(reply::json(reply::PERSONAL, &json!({"items": items})).into())
}

/// `{user, device?}`: the shop's own login service lets somebody in; `device` is what that user will know this session by. If it passes the visitor's cookie on, that session ends, and its
/// cart goes along. With an `Idempotency-Key` a second try finds the session of the first.
pub async fn begin(call: Call<'_>) -> Result<Answer, Problem> {
    let mut fields = call.fields()?;
    let user = fields.parse_text("user", UserId::parse)?;
    let label =
        fields.take_if_any("device").map(|label| read_text("device", &label, DeviceLabel::parse)).transpose()?;
    fields.end()?;
    let (key, old, config) = (call.idempotency_key()?, call.token(), &call.app.config.session);
    let request = LoginRequest { user: &user, old_token: old.as_ref(), label: label.as_ref(), idempotency_key: key };
    let token = sessions::log_in_with(&call.app.redis, &request, call.now, config).await?;
    let cookie = call.app.keyring.pair(&token)?;
    let mut response: Response = reply::json(reply::PERSONAL, &json!({"token": token.as_str(), "cookie": cookie}));
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(header::SET_COOKIE, call.app.keyring.set(&token)?);
    Ok(response.into())
}
