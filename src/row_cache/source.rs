//! The source of the rows: a table of the shop's database, or an HTTP address of the shop. One query reads many rows,
//! within one timeout; the size of a response is limited.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use url::Url;

use crate::{
    config::RowsConfig,
    ports::{
        budget::Budget,
        database::{Database, Row},
        error::Error,
        fetch::{Body, Collected, Fetch, FetchError, Request, Response},
        time::{Clock, Timestamp, within},
    },
    schema::ids::{RowId, id_text},
};

/// Ids in one URL: with 64 characters each they make 6.5 KB, which servers accept.
const ROWS_PER_URL: usize = 100;
/// Ids in one SQL query, as a JSON list in one parameter, because D1 binds at most 100 parameters. An invocation has
/// 1,000 queries: with 100 ids each, 2,000 rows a second would use them up before the minute is over.
const ROWS_PER_SQL_QUERY: usize = 1_000;
/// A third of a lease: a lease holder learns in time that the source has failed.
pub(super) const SOURCE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response of `ROWS_URL`: a hundred rows of 40 KB.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Proves to the shop that the request comes through edgefront.
const EDGE_KEY: HeaderName = HeaderName::from_static("edge-key");

/// The source of the rows: `ROWS_TABLE` or `ROWS_URL`.
pub struct RowSource<'a> {
    location: RowLocation<'a>,
    clock: &'a dyn Clock,
}

enum RowLocation<'a> {
    Table { database: Option<&'a dyn Database>, table: &'a str },
    Url { fetch: &'a dyn Fetch, url: &'a Url, key: Option<&'a HeaderValue> },
}

impl<'a> RowSource<'a> {
    /// The source that `config` names. A table needs `database`; an address needs `fetch`.
    #[must_use]
    pub const fn new(
        config: &'a RowsConfig,
        fetch: &'a dyn Fetch,
        database: Option<&'a dyn Database>,
        clock: &'a dyn Clock,
    ) -> Self {
        let location = match config {
            RowsConfig::Table(table) => RowLocation::Table { database, table: table.as_str() },
            RowsConfig::Url { url, key } => RowLocation::Url { fetch, url, key: key.as_ref() },
        };
        Self { location, clock }
    }

    /// Time since `moment`.
    pub(super) fn since(&self, moment: Timestamp) -> Duration {
        self.clock.now().since(moment)
    }

    /// Queries that `budget` still has for this source.
    pub(super) fn spare_queries(&self, budget: &Budget) -> u64 {
        match self.location {
            RowLocation::Table { .. } => budget.spare_queries(),
            RowLocation::Url { .. } => budget.spare(),
        }
    }

    /// Rows that one query may ask for.
    pub(super) const fn rows_per_query(&self) -> usize {
        match self.location {
            RowLocation::Table { .. } => ROWS_PER_SQL_QUERY,
            RowLocation::Url { .. } => ROWS_PER_URL,
        }
    }

    /// Id → JSON object, for those of `rows` (at most [`RowSource::rows_per_query`]) that exist. An empty list takes no
    /// query.
    ///
    /// # Errors
    /// [`Error::Origin`] or [`Error::Database`] if the source fails or does not answer within 10 s, [`Error::Platform`]
    /// if its response is not a list of rows with ids. An error says nothing about single rows.
    pub(super) async fn load(&self, rows: &[&RowId]) -> Result<HashMap<String, Bytes>, Error> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let found =
            within(self.clock, SOURCE_TIMEOUT, Box::pin(self.query(rows))).await.ok_or(FetchError::Timeout)??;
        found.into_iter().map(|row| Ok((id_of(&row)?, Value::Object(row).to_string().into()))).collect()
    }

    /// Changes a column of a row from `was` to `number`. False if the row has another number, or does not exist. True if
    /// it has `number` already, so that a repetition is harmless.
    ///
    /// # Errors
    /// [`Error::Conflict`] for the rows of `ROWS_URL`, which only the shop can change; [`Error::Database`].
    pub async fn change_number(&self, row: &RowId, column: &'static str, was: u64, number: u64) -> Result<bool, Error> {
        let RowLocation::Table { database: Some(database), table } = self.location else {
            return Err(Error::Conflict("only the shop can change rows of ROWS_URL: change this one in its database"));
        };
        // Safe in SQL: see `query`; the column's name is a constant.
        let sql = format!("UPDATE {table} SET {column} = ?3 WHERE id = ?1 AND {column} IN (?2, ?3) RETURNING id");
        let parameters = [row.as_str().into(), was.into(), number.into()];
        Ok(!database.query(&sql, &parameters).await?.is_empty())
    }

    async fn query(&self, rows: &[&RowId]) -> Result<Vec<Row>, Error> {
        match self.location {
            RowLocation::Table { database, table } => {
                let database = database.ok_or_else(|| {
                    Error::Platform("ROWS_TABLE needs a D1 database: bind one as DB in wrangler.toml".to_owned())
                })?;
                let ids = Value::from(rows.iter().map(|row| row.as_str()).collect::<Vec<_>>()).to_string();
                // Safe in SQL: the configuration accepts only letters, digits and _ in the table's name.
                let sql = format!("SELECT * FROM {table} WHERE id IN (SELECT value FROM json_each(?1))");
                Ok(database.query(&sql, &[ids.into()]).await?)
            }
            RowLocation::Url { fetch, url, key } => {
                let response = fetch.fetch(rows_request(url, key, rows)?, SOURCE_TIMEOUT).await?;
                read_rows(response).await
            }
        }
    }
}

/// `GET url?ids=a,b`, with `key` as `Edge-Key`.
fn rows_request(url: &Url, key: Option<&HeaderValue>, rows: &[&RowId]) -> Result<Request, Error> {
    let ids: Vec<_> = rows.iter().map(|row| row.as_str()).collect();
    let mut url = url.clone();
    // The ids need no escaping, and plain commas are easier to read in the shop's logs.
    let prefix = url.query().map(|query| format!("{query}&")).unwrap_or_default();
    url.set_query(Some(&format!("{prefix}ids={}", ids.join(","))));
    let mut request = Request::new(Body::Empty);
    *request.uri_mut() = url.as_str().parse().map_err(|_| FetchError::Unreachable)?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    request.headers_mut().extend(key.map(|key| (EDGE_KEY, key.clone())));
    Ok(request)
}

/// Reads a JSON list of objects. [`Fetch`] follows no redirect, so a redirect is an error and never gets the key.
async fn read_rows(response: Response) -> Result<Vec<Row>, Error> {
    let unexpected = |response: &str| Error::Platform(format!("ROWS_URL answered with {response}"));
    if response.status() != StatusCode::OK {
        return Err(unexpected(&format!("status {}", response.status().as_u16())));
    }
    match response.into_body().collect(MAX_RESPONSE_BYTES).await {
        Ok(Collected::Whole(body)) => {
            serde_json::from_slice(&body).map_err(|_| unexpected("a body that is not a JSON list of objects"))
        }
        Ok(Collected::TooLarge(_) | Collected::Slow(_)) => Err(unexpected("more than 4 MiB")),
        Err(_) => Err(FetchError::Unreachable.into()),
    }
}

/// The id of a row as text. A row without one is an error: skipped, it would look as if it was gone.
fn id_of(row: &Row) -> Result<String, Error> {
    let id = id_text("id", row.get("id").unwrap_or(&Value::Null));
    id.map(Cow::into_owned)
        .map_err(|error| Error::Platform(format!("the source of rows sent a row without a valid id: {error}")))
}
