//! The source of the rows: a table of the shop's database, or an HTTP address of the shop. One query reads many rows,
//! within one timeout; the size of a response is limited.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use url::Url;

use crate::{
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

/// Ids in one URL: with 64 characters each they make 6.5 KB, which servers accept.
const ROWS_PER_URL: usize = 100;
/// Ids in one SQL query, as a JSON list in one parameter, because D1 binds at most 100 parameters. An invocation has
/// 1,000 queries: with 100 ids each, 2,000 rows a second would use them up before the minute is over.
const ROWS_PER_SQL_QUERY: usize = 1_000;
/// A third of a lease: a lease holder learns in time that the source has failed.
pub(super) const SOURCE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response of `ROWS_URL`: a hundred rows of 40 KB.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// The source of the rows: `ROWS_TABLE` or `ROWS_URL`.
pub struct RowSource<'a> {
    location: RowLocation<'a>,
    clock: &'a dyn Clock,
}

enum RowLocation<'a> {
    Table { database: Option<&'a dyn Database>, table: &'a str },
    Url { fetch: &'a dyn Fetch, url: &'a Url },
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
            RowsConfig::Url(url) => RowLocation::Url { fetch, url },
        };
        Self { location, clock }
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
    /// if its response is not a list of rows. An error says nothing about single rows.
    pub(super) async fn load(&self, rows: &[&RowId]) -> Result<HashMap<String, Bytes>, Error> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let timeout = self.clock.sleep(SOURCE_TIMEOUT);
        let found = match select(Box::pin(self.query(rows)), timeout).await {
            Either::Left((found, _)) => found?,
            Either::Right(_) => return Err(FetchError::Timeout.into()),
        };
        Ok(found.into_iter().filter_map(|row| Some((id_of(&row)?, Value::Object(row).to_string().into()))).collect())
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
            RowLocation::Url { fetch, url } => query_url(fetch, url, rows).await,
        }
    }
}

/// Sends `GET url?ids=a,b` and reads a JSON list of objects.
async fn query_url(fetch: &dyn Fetch, url: &Url, rows: &[&RowId]) -> Result<Vec<Row>, Error> {
    let ids: Vec<_> = rows.iter().map(|row| row.as_str()).collect();
    let mut url = url.clone();
    // The ids need no escaping, and plain commas are easier to read in the shop's logs.
    let prefix = url.query().map(|query| format!("{query}&")).unwrap_or_default();
    url.set_query(Some(&format!("{prefix}ids={}", ids.join(","))));
    let unexpected = |response: &str| Error::Platform(format!("ROWS_URL answered with {response}"));
    let mut request = Request::new(Body::Empty);
    *request.uri_mut() = url.as_str().parse().map_err(|_| FetchError::Unreachable)?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let response = fetch.fetch(request, SOURCE_TIMEOUT).await?;
    if response.status() != StatusCode::OK {
        return Err(unexpected(&format!("status {}", response.status().as_u16())));
    }
    match response.into_body().collect(MAX_RESPONSE_BYTES).await {
        Ok(Collected::Whole(body)) => {
            serde_json::from_slice(&body).map_err(|_| unexpected("a body that is not a JSON list of objects"))
        }
        Ok(Collected::TooLarge(_)) => Err(unexpected("more than 4 MiB")),
        Err(_) => Err(FetchError::Unreachable.into()),
    }
}

/// The id of a row as text; a table may use numbers as ids. None if the row has no id.
fn id_of(row: &Row) -> Option<String> {
    match row.get("id")? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
