//! `/sessions` of the visitor, and `/users/{user}/sessions`: where somebody is logged in, and the end of it.

use http::{StatusCode, header};
use serde_json::{Value, json};

use super::{call::Call, reply};
use crate::{
    ports::{answer::Answer, error::Error, fetch::Response},
    routes::problem::Problem,
    schema::ids::UserId,
    sessions::{
        self, Device, DeviceSelection, EndedSessions, cookie,
        device::{DeviceId, DeviceLabel},
    },
};

/// `{sessions: [{id, current, began, seen, device}]}`, newest login first; times are Unix seconds. Nobody has none.
pub async fn list(call: Call<'_>) -> Result<Answer, Problem> {
    let Some(token) = call.token() else { return Ok(respond(&[]).into()) };
    let devices = sessions::list_devices(&call.app.redis, &token, call.now, &call.app.config.session).await?;
    let describe = |Device { token: other, last_seen, label }: Device| {
        let current = other == token;
        // This request tells what its own browser is, should the login not have.
        let label = label.or_else(|| if current { DeviceLabel::of(call.headers()) } else { None });
        json!({
            "id": DeviceId::of(&other).as_str(),
            "current": current,
            "began": other.began().as_secs(),
            "seen": last_seen.as_score(),
            "device": label.as_ref().map(DeviceLabel::as_str),
        })
    };
    Ok(respond(&devices.into_iter().map(describe).collect::<Vec<_>>()).into())
}

fn respond(sessions: &[Value]) -> Response {
    reply::json(reply::PERSONAL, &json!({"sessions": sessions}))
}

/// Ends one of the user's own sessions, which may be this one.
pub async fn end(call: Call<'_>) -> Result<Answer, Problem> {
    let id = DeviceId::parse(&call.name).ok_or(Error::NotFound("session"))?;
    match log_out(&call, &DeviceSelection::One(id)).await? {
        Some(ended) => Ok(answer(&call, ended)),
        None => Err(Error::NotFound("session").into()),
    }
}

/// Ends all of the user's sessions; with `?except=current` all but this one.
pub async fn end_all(call: Call<'_>) -> Result<Answer, Problem> {
    let which = match call.parameter("except")?.as_deref() {
        None => DeviceSelection::All,
        Some("current") => DeviceSelection::Others,
        Some(_) => return Err(Error::invalid("except", "must be `current`").into()),
    };
    let ended = log_out(&call, &which).await?;
    let mut answer = ended.map_or_else(|| reply::empty(StatusCode::NO_CONTENT).into(), |ended| answer(&call, ended));
    // Also of a session that had ended before.
    if which == DeviceSelection::All && cookie::is_sent(call.headers()) {
        answer.response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    Ok(answer)
}

async fn log_out(call: &Call<'_>, which: &DeviceSelection) -> Result<Option<EndedSessions>, Error> {
    let Some(token) = call.token() else { return Ok(None) };
    sessions::log_out_devices(&call.app.redis, &token, which, call.now, &call.app.config.session).await
}

/// 204, and behind it what is left to do.
fn answer(call: &Call<'_>, ended: EndedSessions) -> Answer {
    let mut response = reply::empty(StatusCode::NO_CONTENT);
    if ended.includes_current {
        response.headers_mut().insert(header::SET_COOKIE, cookie::clear());
    }
    let (app, now) = (call.app.clone(), call.now);
    let delete_data = async move {
        if let Err(error) = ended.delete_data(&app.redis, now, &app.config.session).await {
            log::warn!("sessions that were ended are left to the cleaning: {error}");
        }
    };
    Answer { response, background: vec![Box::pin(delete_data)] }
}

/// `{ended}`: how many sessions of a user the shop's own service has ended.
pub async fn end_user(call: Call<'_>) -> Result<Answer, Problem> {
    let user = UserId::parse(&call.name)?;
    let ended = sessions::log_out_user(&call.app.redis, &user, call.now, &call.app.config.session).await?;
    Ok(reply::json(reply::PERSONAL, &json!({"ended": ended})).into())
}
