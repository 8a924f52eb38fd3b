//! `/rows` and `/schedule`: copies of database rows (stock and sale times of a flash-sale page), and their refresh
//! schedule.

use std::{rc::Rc, slice, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{request::ApiRequest, respond};
use crate::{
    App,
    ports::{
        answer::{Answer, BackgroundTask},
        error::Error,
        fetch::Response,
        time::Timestamp,
    },
    routes::problem::Problem,
    row_cache::{self, CachedRow, RowState},
    schema::ids::RowId,
};

/// The most rows in one response: enough for a page.
const MAX_ROWS: u32 = 50;

/// The row as it stands in the database. `Age` is the age of the copy, in seconds.
pub async fn show(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, row) = (request.app, RowId::parse(&request.id)?);
    let source = app.row_source();
    let found = app.rows.read(&app.redis, source.as_ref(), &row, request.now).await?;
    let found = found.ok_or(Error::NotFound("row"))?;
    let response = with_age(respond::json_bytes(respond::REVALIDATE, found.json.clone()), [&found]);
    let overdue = if found.overdue { vec![row] } else { Vec::new() };
    Ok(Answer {
        response: respond::not_modified_if_known(request.headers(), response),
        background: refresh_task(app, overdue, request.now),
    })
}

/// `?ids=a,b` → `{rows: {a: row, …}, no_copy?: [b, …]}`, without the rows that are not scheduled. `no_copy` has the
/// scheduled rows without a copy. `Age` is the age of the oldest copy.
pub async fn list(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, mut rows) = (request.app, Vec::new());
    for id in request.query_parameter("ids")?.unwrap_or_default().split(',') {
        let row = RowId::parse(id).map_err(|_| Error::invalid("ids", "must be rows separated by commas"))?;
        if !rows.contains(&row) {
            rows.push(row);
        }
        if rows.len() > MAX_ROWS as usize {
            return Err(Error::invalid("ids", format!("must be at most {MAX_ROWS} rows")).into());
        }
    }
    let source = app.row_source();
    let found = app.rows.read_many(&app.redis, source.as_ref(), &rows, request.now).await?;
    let found: Vec<_> = rows.into_iter().zip(found).collect();
    let response = respond::json_bytes(respond::REVALIDATE, rows_document(&found));
    let response = with_age(response, found.iter().filter_map(|(_, state)| state.copy()));
    let is_overdue = |state: &RowState| state.copy().is_some_and(|copy| copy.overdue);
    let overdue = found.into_iter().filter(|(_, state)| is_overdue(state)).map(|(row, _)| row).collect();
    Ok(Answer {
        response: respond::not_modified_if_known(request.headers(), response),
        background: refresh_task(app, overdue, request.now),
    })
}

/// `{every, next}`: the period in seconds, and the Unix second of the next refresh.
pub async fn schedule(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let row = RowId::parse(&request.id)?;
    let schedule = row_cache::schedule_of(&request.app.redis, &row).await?.ok_or(Error::NotFound("schedule"))?;
    Ok(schedule_document(schedule.every, schedule.next_refresh(request.now)))
}

fn schedule_document(every: f64, next: Timestamp) -> Answer {
    respond::json(respond::NO_STORE, &json!({"every": every, "next": next.as_score()})).into()
}

/// `?limit=` → `{scheduled, rows: [{id, every, next, late, age}]}`, the most overdue row first; times in seconds.
/// `scheduled` is the number of all scheduled rows.
pub async fn most_overdue(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let limit = request.query_number("limit", 10, MAX_ROWS)?;
    let report = row_cache::schedule_report(&request.app.redis, limit, request.now).await?;
    Ok(respond::json(respond::NO_STORE, &json!(report)).into())
}

/// `{every}`: refreshes the row with this period in seconds, from now on. As in the book, 0 or less stops it and
/// deletes the copy. A row that is missing in its source is answered 404 and not scheduled.
pub async fn set_schedule(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let row = RowId::parse(&request.id)?;
    let mut fields = request.json_fields()?;
    let every = fields.take("every")?.as_f64().ok_or_else(|| Error::invalid("every", "must be a number of seconds"))?;
    fields.finish()?;
    let answer = reschedule(&request, &row, every).await;
    // Also after an error: Redis may have executed the request and lost the reply.
    request.app.rows.forget(&[row]);
    answer
}

async fn reschedule(request: &ApiRequest<'_>, row: &RowId, every: f64) -> Result<Answer, Problem> {
    let (app, now) = (request.app, request.now);
    if every <= 0.0 {
        row_cache::unschedule(&app.redis, row).await?;
        return Ok(respond::empty(StatusCode::NO_CONTENT).into());
    }
    let Some(source) = app.row_source() else {
        return Err(Error::invalid("row", "has no source: set ROWS_TABLE or ROWS_URL").into());
    };
    row_cache::schedule(&app.redis, row, every, now).await?;
    // Loads the copy before the response, so that the first visitors after it find one.
    let report = row_cache::refresh(&app.redis, &source, slice::from_ref(row), now).await?;
    if report.removed > 0 {
        return Err(Error::NotFound("row").into());
    }
    if report.refreshed > 0 {
        return Ok(schedule_document(every, now + Duration::from_secs_f64(every)));
    }
    if let Some(cause) = report.cause {
        log::warn!("a row is scheduled and not loaded yet, because its source failed: {cause}");
    }
    // The source failed, or another call has scheduled the row since.
    let schedule = row_cache::schedule_of(&app.redis, row).await?.ok_or(Error::NotFound("schedule"))?;
    Ok(schedule_document(schedule.every, schedule.next))
}

/// Adds an `ETag`, and the age of the oldest copy.
fn with_age<'a>(response: Response, copies: impl IntoIterator<Item = &'a CachedRow>) -> Response {
    let age = copies.into_iter().map(|copy| copy.age.as_secs()).max().unwrap_or_default();
    let mut response = respond::with_etag(response);
    response.headers_mut().insert(header::AGE, HeaderValue::from(age));
    response
}

/// Writes `{rows: {…}, no_copy: […]}` by hand; `no_copy` only if it has rows. The copies are JSON already and an id
/// needs no escape, so nothing is parsed.
fn rows_document(rows: &[(RowId, RowState)]) -> Bytes {
    let mut document = b"{\"rows\":{".to_vec();
    let mut no_copy = Vec::new();
    for (row, state) in rows {
        match state {
            RowState::Cached(copy) => {
                let separator = if document.ends_with(b"{") { "" } else { "," };
                document.extend_from_slice(format!("{separator}\"{row}\":").as_bytes());
                document.extend_from_slice(&copy.json);
            }
            RowState::CopyMissing(_) => no_copy.push(format!("\"{row}\"")),
            RowState::NotScheduled => {}
        }
    }
    document.push(b'}');
    if !no_copy.is_empty() {
        document.extend_from_slice(format!(",\"no_copy\":[{}]", no_copy.join(",")).as_bytes());
    }
    document.push(b'}');
    document.into()
}

/// A task that refreshes rows which the cron has missed, after the response.
pub(super) fn refresh_task(app: &Rc<App>, overdue: Vec<RowId>, now: Timestamp) -> Vec<BackgroundTask> {
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
