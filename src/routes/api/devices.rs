//! `/sessions` of the visitor, and `/users/{user}/sessions`: the devices on which a user is logged in, and remote
//! logout.

use http::{StatusCode, header};
use serde_json::{Value, json};

use super::{request::ApiRequest, respond};
use crate::{
    ports::{answer::Answer, error::Error, fetch::Response},
    routes::problem::Problem,
    schema::ids::UserId,
    sessions::{
        self, Device, DeviceSelection, EndedSessions, cookie,
        device::{DeviceId, DeviceLabel},
    },
};

/// `{sessions: [{id, current, began, seen, device}]}`, newest login first; times are Unix seconds. The list is empty
/// without a session.
pub async fn list(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let Some(token) = request.session_token() else { return Ok(sessions_response(&[]).into()) };
    let devices = sessions::list_devices(&request.app.redis, &token, request.now, &request.app.config.session).await?;
    let describe = |Device { token: device_token, last_seen, label }: Device| {
        let current = device_token == token;
        // Without a label from the login, this request's User-Agent names the current device.
        let label = label.or_else(|| if current { DeviceLabel::of(request.headers()) } else { None });
        json!({
            "id": DeviceId::of(&device_token).as_str(),
            "current": current,
            "began": device_token.began().as_secs(),
            "seen": last_seen.as_score(),
            "device": label.as_ref().map(DeviceLabel::as_str),
        })
    };
    Ok(sessions_response(&devices.into_iter().map(describe).collect::<Vec<_>>()).into())
}

fn sessions_response(sessions: &[Value]) -> Response {
    respond::json(respond::NO_STORE, &json!({"sessions": sessions}))
}

/// Ends one session of the visitor's user; it may be the current one.
pub async fn end(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let id = DeviceId::parse(&request.id).ok_or(Error::NotFound("session"))?;
    match log_out(&request, &DeviceSelection::One(id)).await? {
        Some(ended) => Ok(ended_answer(&request, ended)),
        None => Err(Error::NotFound("session").into()),
    }
}

/// Ends all sessions of the visitor's user; with `?except=current` all but the current one.
pub async fn end_all(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let selection = match request.query_parameter("except")?.as_deref() {
        None => DeviceSelection::All,
        Some("current") => DeviceSelection::Others,
        Some(_) => return Err(Error::invalid("except", "must be `current`").into()),
    };
    let ended = log_out(&request, &selection).await?;
    let mut answer =
        ended.map_or_else(|| respond::empty(StatusCode::NO_CONTENT).into(), |ended| ended_answer(&request, ended));
    // Clears the cookie of a session that had ended before, too.
    if selection == DeviceSelection::All && cookie::is_sent(request.headers()) {
        answer.response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    Ok(answer)
}

async fn log_out(request: &ApiRequest<'_>, selection: &DeviceSelection) -> Result<Option<EndedSessions>, Error> {
    let Some(token) = request.session_token() else { return Ok(None) };
    let (redis, config) = (&request.app.redis, &request.app.config.session);
    sessions::log_out_devices(redis, &token, selection, request.now, config).await
}

/// A 204. A background task cleans up after the ended sessions.
fn ended_answer(request: &ApiRequest<'_>, ended: EndedSessions) -> Answer {
    let mut response = respond::empty(StatusCode::NO_CONTENT);
    if ended.includes_current {
        response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    let (app, now) = (request.app.clone(), request.now);
    let clean_up = async move {
        if let Err(error) = ended.delete_data(&app.redis, now, &app.config.session).await {
            log::warn!("ended sessions were not cleaned up, the cron cleans them: {error}");
        }
    };
    Answer { response, background: vec![Box::pin(clean_up)] }
}

/// Ends all sessions of a user → `{ended}`, their number.
pub async fn end_user(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let user = UserId::parse(&request.id)?;
    let (redis, config) = (&request.app.redis, &request.app.config.session);
    let ended = sessions::log_out_user(redis, &user, request.now, config).await?;
    Ok(respond::json(respond::NO_STORE, &json!({"ended": ended})).into())
}
