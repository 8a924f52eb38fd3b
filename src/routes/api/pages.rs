//! `/purge` and `/cache`: voids stored pages, and says what is stored of one and why.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    body::{Fields, read_text},
    call::Call,
    reply,
};
use crate::{
    page_cache::{self, PageKey, Purge, PurgeMode},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
    schema::ids::{ItemId, Tag},
};

/// `{items, urls, tags, all, soft}`, at least one of the first four → `{purged, skipped: [{url, why}]}`. A URL may be a path of this host.
/// One that cannot be stored is skipped, and the rest is purged nevertheless.
pub async fn purge(call: Call<'_>) -> Result<Answer, Problem> {
    let mut fields = call.fields()?;
    let mut purges = Vec::new();
    for item in texts(&mut fields, "items")? {
        purges.push(Purge::Item(read_text("items", &item, ItemId::parse)?));
    }
    for tag in texts(&mut fields, "tags")? {
        purges.push(Purge::Tag(read_text("tags", &tag, Tag::parse)?));
    }
    let mut skipped = Vec::new();
    for url in texts(&mut fields, "urls")? {
        let url = read_text("urls", &url, |url| Ok(url.to_owned()))?;
        match PageKey::of_url(&absolute(&call, &url), &call.app.config.page.urls) {
            Ok(page) => purges.push(Purge::Url(page)),
            Err(reason) => skipped.push(json!({"url": url, "why": reason.as_str()})),
        }
    }
    match fields.take_if_any("all") {
        None => {}
        Some(Value::Bool(true)) => purges.push(Purge::All),
        Some(_) => return Err(Error::invalid("all", "must be true").into()),
    }
    let extent = match fields.take_if_any("soft") {
        None | Some(Value::Bool(false)) => PurgeMode::Hard,
        Some(Value::Bool(true)) => PurgeMode::Soft,
        Some(_) => return Err(Error::invalid("soft", "must be true or false").into()),
    };
    fields.end()?;
    if purges.is_empty() && skipped.is_empty() {
        return Err(Error::invalid("body", "must name items, urls or tags, or have all: true").into());
    }
    if !purges.is_empty() {
        // Before and after: what is asked meanwhile may be answered by either side of it.
        call.app.pages.forget_all();
        page_cache::purge(&call.app.redis, &purges, extent).await?;
        call.app.pages.forget_all();
    }
    Ok(reply::json(reply::PERSONAL, &json!({"purged": purges.len(), "skipped": skipped})).into())
}

/// `?url=`: would it be cached, why, under which key, at which rank, how old is it. A URL may be a path of this host.
pub async fn explain(call: Call<'_>) -> Result<Answer, Problem> {
    let url = call.parameter("url")?.ok_or_else(|| Error::invalid("url", "is missing"))?;
    let url = absolute(&call, &url);
    let explanation = page_cache::explain(&call.app.redis, &url, call.now, &call.app.config.page).await?;
    Ok(reply::json(reply::PERSONAL, &json!(explanation)).into())
}

/// The values of a field that is a list or not there.
fn texts(fields: &mut Fields, field: &'static str) -> Result<Vec<Value>, Error> {
    match fields.take_if_any(field) {
        None => Ok(Vec::new()),
        Some(Value::Array(values)) => Ok(values),
        Some(_) => Err(Error::invalid(field, "must be a list")),
    }
}

/// A path is one of the host that was asked.
fn absolute<'a>(call: &Call<'_>, url: &'a str) -> Cow<'a, str> {
    if url.starts_with('/') { format!("{}{url}", call.origin()).into() } else { url.into() }
}
