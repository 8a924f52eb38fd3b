//! `/session`, `/recent` and `POST /sessions`: the visitor's session, the items that it viewed, and login by a service.

use http::{StatusCode, header};
use serde::Serialize;
use serde_json::json;

use super::{request::ApiRequest, respond};
use crate::{
    carts,
    ports::{answer::Answer, fetch::Response},
    routes::problem::Problem,
    schema::{
        ids::{ItemId, UserId},
        redis::MAX_REPLICA_LAG,
    },
    sessions::{self, LoginRequest, cookie, device::DeviceLabel},
};

#[derive(Serialize)]
struct SessionJson<'a> {
    user: Option<&'a str>,
    guest: bool,
    cart: CartSizeJson,
}

#[derive(Serialize)]
struct CartSizeJson {
    lines: usize,
    quantity: u64,
}

/// `{user, guest, cart: {lines, quantity}}`. A visitor without a session is anonymous, which is no error.
///
/// Clears the cookie of a session that has ended. No other route does: its response may be slower than a concurrent
/// login and would clear the cookie of that login. The cookie stays within [`MAX_REPLICA_LAG`] of the session's start: a
/// replica may not know the session yet. With read regions it stays in any case: a replica may have lost its data.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let token = request.session_token();
    let may_lag = request.app.config.redis.has_read_regions
        || token.as_ref().is_some_and(|token| token.began() + MAX_REPLICA_LAG > request.now);
    let found = match token {
        Some(token) => carts::read(&request.app.redis, &token, request.now, &request.app.config.session).await?,
        None => None,
    };
    let has_ended = found.is_none() && !may_lag;
    let (session, cart) = found.unzip();
    let cart = cart.unwrap_or_default();
    let user = session.as_ref().and_then(|session| session.user.as_ref());
    let document = SessionJson {
        user: user.map(UserId::as_str),
        guest: session.is_some() && user.is_none(),
        cart: CartSizeJson { lines: cart.lines.len(), quantity: cart.total_quantity() },
    };
    let mut response = respond::json(respond::NO_STORE, &document);
    if has_ended && cookie::is_sent(request.headers()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    Ok(response.into())
}

/// Ends the session and clears the cookie. A missing session is no error.
pub async fn end(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    if let Some(token) = request.session_token() {
        sessions::log_out(&request.app.redis, &token, request.now, &request.app.config.session).await?;
    }
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    if cookie::is_sent(request.headers()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    Ok(response.into())
}

/// `{items}`: the items that the session viewed last, newest first.
pub async fn recent(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (redis, config) = (&request.app.redis, &request.app.config.session);
    let found = match request.session_token() {
        Some(token) => sessions::read_viewed_items(redis, &token, request.now, config).await?,
        None => None,
    };
    let items = found.map(|(_, items)| items).unwrap_or_default();
    let items: Vec<_> = items.iter().map(ItemId::as_str).collect();
    Ok(respond::json(respond::NO_STORE, &json!({"items": items})).into())
}

/// `{user, device?}` → 201 `{token, cookie}`: the shop's login service starts a session; `device` is its label in `GET
/// /sessions`. If the service passes the visitor's cookie on, that session ends and its cart moves to the new one. With
/// an `Idempotency-Key`, a repeated request finds the session of the first.
pub async fn begin(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let mut fields = request.json_fields()?;
    let user = fields.take_parsed("user", UserId::parse)?;
    let label = fields.take_optional_parsed("device", DeviceLabel::parse)?;
    fields.finish()?;
    let (app, key, old) = (request.app, request.idempotency_key()?, request.session_token());
    let config = &app.config.session;
    let login = LoginRequest { user: &user, old_token: old.as_ref(), label: label.as_ref(), idempotency_key: key };
    let token = sessions::log_in(&app.redis, &login, request.now, config).await?;
    let cookie = app.keyring.pair(&token)?;
    let mut response: Response = respond::json(respond::NO_STORE, &json!({"token": token.as_str(), "cookie": cookie}));
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(header::SET_COOKIE, app.keyring.set(&token)?);
    Ok(response.into())
}
