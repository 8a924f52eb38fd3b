//! `/users/{user}/sessions`: the sessions of a user, for a service. A session is named by its device id, because its
//! token is a secret.

use http::StatusCode;
use serde::Serialize;

use super::{cart::CartJson, request::ApiRequest, respond};
use crate::{
    carts,
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
    schema::ids::{ItemId, UserId},
    sessions::{
        self, Device,
        device::{DeviceId, DeviceLabel},
    },
};

#[derive(Serialize)]
struct SessionsJson<'a> {
    sessions: Vec<UserSessionJson<'a>>,
}

#[derive(Serialize)]
struct UserSessionJson<'a> {
    id: String,
    began: u64,
    seen: f64,
    device: Option<&'a str>,
    /// In the document of one session only.
    #[serde(skip_serializing_if = "Option::is_none")]
    cart: Option<CartJson<'a>>,
    /// In the document of one session only.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<Vec<&'a str>>,
}

impl<'a> UserSessionJson<'a> {
    fn of(device: &'a Device) -> Self {
        Self {
            id: DeviceId::of(&device.token).to_string(),
            began: device.token.began().as_secs(),
            seen: device.last_seen.as_score(),
            device: device.label.as_ref().map(DeviceLabel::as_str),
            cart: None,
            recent: None,
        }
    }
}

/// `{sessions: [{id, began, seen, device}]}`, newest login first.
pub async fn list(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let devices = devices(&request).await?;
    let document = SessionsJson { sessions: devices.iter().map(UserSessionJson::of).collect() };
    Ok(respond::json(respond::NO_STORE, &document).into())
}

/// `{id, began, seen, device, cart, recent}`: a session with its cart and the items that it viewed last.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let device = device(&request).await?;
    let (redis, config) = (&request.app.redis, &request.app.config.session);
    let found = carts::read_with_viewed_items(redis, &device.token, request.now, config).await?;
    let (_, cart, viewed) = found.ok_or(Error::NotFound("session"))?;
    let recent = viewed.iter().map(ItemId::as_str).collect();
    let document =
        UserSessionJson { cart: Some(CartJson::of(&cart)), recent: Some(recent), ..UserSessionJson::of(&device) };
    Ok(respond::json(respond::NO_STORE, &document).into())
}

/// Ends a session. Its cart is recorded as abandoned.
pub async fn end(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let device = device(&request).await?;
    sessions::log_out(&request.app.redis, &device.token, request.now, &request.app.config.session).await?;
    Ok(respond::empty(StatusCode::NO_CONTENT).into())
}

async fn devices(request: &ApiRequest<'_>) -> Result<Vec<Device>, Error> {
    let user = UserId::parse(&request.id)?;
    sessions::devices_of_user(&request.app.redis, &user, request.now, &request.app.config.session).await
}

/// The session that the path names. This takes a request of its own, because only the list of the user's sessions has
/// the token.
async fn device(request: &ApiRequest<'_>) -> Result<Device, Error> {
    let id = DeviceId::parse(&request.second_id).ok_or(Error::NotFound("session"))?;
    let found = devices(request).await?.into_iter().find(|device| DeviceId::of(&device.token) == id);
    found.ok_or(Error::NotFound("session"))
}
