//! Where rows come from: a table of the shop's database, or an address of the shop. One query for many rows, within one
//! deadline, and a bounded answer.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use url::Url;

use crate::{
    App,
    config::RowsConfig,
    ports::{
        budget::Budget,
        database::{Database, Row},
        error::Error,
        fetch::{Body, Collected, Fetch, FetchError, Request},
        time::Clock,
    },
    schema::ids::RowId,
};

/// As many ids of 64 characters make a URL of 6.5 KB, which servers take.
const URL_BATCH: usize = 100;
/// A list as one parameter: D1 binds at most 100 of them, and an invocation has 1,000 queries, which 2,000 rows a second in hundreds
/// would use up before the minute is over.
const TABLE_BATCH: usize = 1_000;
/// A third of a lease, so that who holds one always knows in time that the source has failed.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);
/// A hundred rows of 40 KB.
const ANSWER_LIMIT: usize = 4 << 20;

/// The rows of the shop's database.
pub struct RowSource<'a> {
    from: From<'a>,
    clock: &'a dyn Clock,
}

enum From<'a> {
    Table { database: Option<&'a dyn Database>, table: &'a str },
    Url { fetch: &'a dyn Fetch, url: &'a Url },
}

impl<'a> RowSource<'a> {
    /// The source that `ROWS_TABLE` or `ROWS_URL` names; None without either.
    #[must_use]
    pub fn of(app: &'a App) -> Option<Self> {
        Self::through(app, &*app.fetch, app.database.as_deref())
    }

    /// As [`RowSource::of`], by other ways out than the app's.
    #[must_use]
    pub fn through(app: &'a App, fetch: &'a dyn Fetch, database: Option<&'a dyn Database>) -> Option<Self> {
        let from = match app.config.rows.as_ref()? {
            RowsConfig::Table(table) => From::Table { database, table },
            RowsConfig::Url(url) => From::Url { fetch, url },
        };
        Some(Self { from, clock: &*app.clock })
    }

    /// How many queries `budget` has for it.
    pub(super) fn spare_queries(&self, budget: &Budget) -> u64 {
        match self.from {
            From::Table { .. } => budget.spare_queries(),
            From::Url { .. } => budget.spare(),
        }
    }

    /// How many rows one query may ask for.
    pub(super) const fn batch(&self) -> usize {
        match self.from {
            From::Table { .. } => TABLE_BATCH,
            From::Url { .. } => URL_BATCH,
        }
    }

    /// Those of `rows` (at most [`RowSource::batch`]) that exist, as JSON objects; without a query for none.
    ///
    /// # Errors
    /// [`Error::Origin`] or [`Error::Database`] if there is no answer within 10 s, [`Error::Platform`] if the answer is not a
    /// list of rows. Then nothing is known of any row.
    pub(super) async fn load(&self, rows: &[&RowId]) -> Result<HashMap<String, Bytes>, Error> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let late = self.clock.sleep(DEADLINE);
        let found = match select(Box::pin(self.query(rows)), late).await {
            Either::Left((found, _)) => found?,
            Either::Right(_) => return Err(FetchError::Timeout.into()),
        };
        Ok(found.into_iter().filter_map(|row| Some((id_of(&row)?, Value::Object(row).to_string().into()))).collect())
    }

    async fn query(&self, rows: &[&RowId]) -> Result<Vec<Row>, Error> {
        match self.from {
            From::Table { database, table } => {
                let database = database.ok_or_else(|| Error::Platform("ROWS_TABLE needs a D1 database".to_owned()))?;
                let ids = Value::from(rows.iter().map(|row| row.as_str()).collect::<Vec<_>>()).to_string();
                // The configuration lets only letters, digits and _ into the table's name.
                let sql = format!("SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(?1))");
                Ok(database.query(&sql, &[ids.into()]).await?)
            }
            From::Url { fetch, url } => ask(fetch, url, rows).await,
        }
    }
}

/// `GET url?ids=a,b`, answered with a JSON list of objects.
async fn ask(fetch: &dyn Fetch, url: &Url, rows: &[&RowId]) -> Result<Vec<Row>, Error> {
    let ids: Vec<_> = rows.iter().map(|row| row.as_str()).collect();
    let mut url = url.clone();
    // The ids need no escape, and a list with plain commas is what people expect to find in their logs.
    let before = url.query().map(|query| format!("{query}&")).unwrap_or_default();
    url.set_query(Some(&format!("{before}ids={}", ids.join(","))));
    let odd = |what: &str| Error::Platform(format!("ROWS_URL answered {what}"));
    let mut request = Request::new(Body::Empty);
    *request.uri_mut() = url.as_str().parse().map_err(|_| FetchError::Unreachable)?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let response = fetch.fetch(request, DEADLINE).await?;
    if response.status() != StatusCode::OK {
        return Err(odd(&format!("with status {}", response.status().as_u16())));
    }
    match response.into_body().collect(ANSWER_LIMIT).await {
        Ok(Collected::Whole(body)) => serde_json::from_slice(&body).map_err(|_| odd("no list of objects")),
        Ok(Collected::TooLarge(_)) => Err(odd("more than 4 MiB")),
        Err(_) => Err(FetchError::Unreachable.into()),
    }
}

/// A row's id as text; a table may well number its rows. None if it has none.
fn id_of(row: &Row) -> Option<String> {
    match row.get("id")? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
