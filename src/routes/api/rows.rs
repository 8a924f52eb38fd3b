//! `/rows`: what a flash-sale page asks for stock and sale times, and when each row is refreshed.

use std::{rc::Rc, slice};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{call::Call, reply};
use crate::{
    App,
    ports::{
        answer::{Answer, BackgroundTask},
        error::Error,
        fetch::Response,
        time::Timestamp,
    },
    routes::problem::Problem,
    row_cache::{self, CachedRow},
    schema::ids::RowId,
};

/// How many rows one call may ask for: a page's worth.
const AT_ONCE: u32 = 50;

/// The row as it stands in the database, and in `Age` how old this copy is.
pub async fn show(call: Call<'_>) -> Result<Answer, Problem> {
    let row = RowId::parse(&call.name)?;
    let source = call.app.row_source();
    let found = call.app.rows.read(&call.app.redis, source.as_ref(), &row, call.now).await?;
    let found = found.ok_or(Error::NotFound("row"))?;
    let response = aged(reply::bytes(reply::ASK_AGAIN, found.json.clone()), [&found]);
    let overdue = if found.overdue { vec![row] } else { Vec::new() };
    Ok(Answer {
        response: reply::unless_known(call.headers(), response),
        background: refresh(call.app, overdue, call.now),
    })
}

/// `?ids=a,b` → `{rows: {a: row, …}}`. A row that is not scheduled is not there. `Age` is that of the oldest copy.
pub async fn list(call: Call<'_>) -> Result<Answer, Problem> {
    let mut rows = Vec::new();
    for id in call.parameter("ids")?.unwrap_or_default().split(',') {
        let row = RowId::parse(id).map_err(|_| Error::invalid("ids", "must be rows separated by commas"))?;
        if !rows.contains(&row) {
            rows.push(row);
        }
        if rows.len() > AT_ONCE as usize {
            return Err(Error::invalid("ids", format!("must be at most {AT_ONCE} rows")).into());
        }
    }
    let source = call.app.row_source();
    let found = call.app.rows.read_many(&call.app.redis, source.as_ref(), &rows, call.now).await?;
    let found: Vec<_> = rows.into_iter().zip(found).filter_map(|(row, found)| Some((row, found?))).collect();
    let response = aged(reply::bytes(reply::ASK_AGAIN, object(&found)), found.iter().map(|(_, found)| found));
    let overdue = found.into_iter().filter(|(_, found)| found.overdue).map(|(row, _)| row).collect();
    Ok(Answer {
        response: reply::unless_known(call.headers(), response),
        background: refresh(call.app, overdue, call.now),
    })
}

/// `{every, next}`: the period in seconds, and the Unix second of the next refresh.
pub async fn schedule(call: Call<'_>) -> Result<Answer, Problem> {
    let row = RowId::parse(&call.name)?;
    let schedule = row_cache::schedule_of(&call.app.redis, &row).await?.ok_or(Error::NotFound("schedule"))?;
    Ok(reply::json(reply::PERSONAL, &json!({"every": schedule.every, "next": schedule.next.as_score()})).into())
}

/// `?limit=` (1 to 50, 10 without) → `{scheduled, rows: [{id, every, next, late, age}]}`: the rows whose turn comes first or was
/// missed longest; times in seconds. `scheduled` is how many rows there are in all.
pub async fn late(call: Call<'_>) -> Result<Answer, Problem> {
    let report = row_cache::schedule_report(&call.app.redis, call.number("limit", 10, AT_ONCE)?, call.now).await?;
    Ok(reply::json(reply::PERSONAL, &json!(report)).into())
}

/// `{every}`: refreshes the row that often, from now on. 0 or less, as in the book, un-schedules it and deletes its copy. A row
/// that its source does not know is 404, and not scheduled.
pub async fn set_schedule(call: Call<'_>) -> Result<Answer, Problem> {
    let row = RowId::parse(&call.name)?;
    let mut fields = call.fields()?;
    let every = fields.take("every")?.as_f64().ok_or_else(|| Error::invalid("every", "must be a number of seconds"))?;
    fields.end()?;
    let answer = reschedule(&call, &row, every).await;
    // Whatever came of it: it may have happened though the reply was lost.
    call.app.rows.forget(&[row]);
    answer
}

async fn reschedule(call: &Call<'_>, row: &RowId, every: f64) -> Result<Answer, Problem> {
    if every <= 0.0 {
        row_cache::unschedule(&call.app.redis, row).await?;
        return Ok(reply::empty(StatusCode::NO_CONTENT).into());
    }
    let Some(source) = call.app.row_source() else {
        return Err(Error::invalid("row", "has no source: neither ROWS_TABLE nor ROWS_URL is set").into());
    };
    row_cache::schedule(&call.app.redis, row, every, call.now).await?;
    // Loaded before the answer: once the shop knows that the row is scheduled, the first of a crowd finds a copy.
    let report = row_cache::refresh(&call.app.redis, &source, slice::from_ref(row), call.now).await?;
    if report.removed > 0 {
        return Err(Error::NotFound("row").into());
    }
    if let Some(cause) = report.cause {
        log::warn!("a row was scheduled, and its source failed: {cause}");
    }
    Ok(reply::json(reply::PERSONAL, &json!({"every": every, "next": call.now.as_score()})).into())
}

/// Tags the response, and tells the age of the oldest of `rows`.
fn aged<'a>(response: Response, rows: impl IntoIterator<Item = &'a CachedRow>) -> Response {
    let age = rows.into_iter().map(|row| row.age.as_secs()).max().unwrap_or_default();
    let mut response = reply::tagged(response);
    response.headers_mut().insert(header::AGE, HeaderValue::from(age));
    response
}

/// The copies are JSON already, and a row's name needs no escape: written as they are, nothing is parsed.
fn object(rows: &[(RowId, CachedRow)]) -> Bytes {
    let mut document = b"{\"rows\":{".to_vec();
    for (number, (row, copy)) in rows.iter().enumerate() {
        let separator = if number == 0 { "" } else { "," };
        document.extend_from_slice(format!("{separator}\"{row}\":").as_bytes());
        document.extend_from_slice(&copy.json);
    }
    document.extend_from_slice(b"}}");
    document.into()
}

/// Refreshes behind the answer what the cron has missed: the next visitor finds it new.
pub(super) fn refresh(app: &Rc<App>, overdue: Vec<RowId>, now: Timestamp) -> Vec<BackgroundTask> {
    if overdue.is_empty() {
        return Vec::new();
    }
    let app = app.clone();
    let refresh = async move {
        let Some(source) = app.row_source() else { return };
        if let Err(error) = row_cache::refresh(&app.redis, &source, &overdue, now).await {
            log::warn!("{} overdue rows were not refreshed: {error}", overdue.len());
        }
        app.rows.forget(&overdue);
    };
    vec![Box::pin(refresh)]
}
