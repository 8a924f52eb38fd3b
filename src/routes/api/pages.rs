//! `/purge` and `/cache`: purges stored pages, and explains the caching of a URL.

use std::borrow::Cow;

use serde_json::{Value, json};
use url::Url;

use super::{
    body::{JsonFields, parse_id, parse_string},
    request::ApiRequest,
    respond,
};
use crate::{
    page_cache::{self, Explanation, PageKey, Purge, PurgeMode, Reason},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
    schema::ids::{ItemId, Tag},
};

/// `{items, urls, tags, all, soft}`, at least one of the first four → `{purged, skipped: [{url, why}]}`. A URL may be a
/// path of this host. A URL that cannot be stored is skipped, and the others are purged.
pub async fn purge(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let mut fields = request.json_fields()?;
    let mut purges = Vec::new();
    for item in take_list(&mut fields, "items")? {
        purges.push(Purge::Item(parse_id("items", &item, ItemId::parse)?));
    }
    for tag in take_list(&mut fields, "tags")? {
        purges.push(Purge::Tag(parse_string("tags", &tag, Tag::parse)?));
    }
    let mut skipped = Vec::new();
    for url in take_list(&mut fields, "urls")? {
        let url = parse_string("urls", &url, |url| Ok(url.to_owned()))?;
        match PageKey::of_url(&absolute_url(&request, &url), &request.app.config.page.urls) {
            Ok(page) => purges.push(Purge::Url(page)),
            Err(reason) => skipped.push(json!({"url": url, "why": reason.as_str()})),
        }
    }
    match fields.take_optional("all") {
        None => {}
        Some(Value::Bool(true)) => purges.push(Purge::All),
        Some(_) => return Err(Error::invalid("all", "must be true").into()),
    }
    let mode = match fields.take_optional("soft") {
        None | Some(Value::Bool(false)) => PurgeMode::Hard,
        Some(Value::Bool(true)) => PurgeMode::Soft,
        Some(_) => return Err(Error::invalid("soft", "must be true or false").into()),
    };
    fields.finish()?;
    if purges.is_empty() && skipped.is_empty() {
        return Err(Error::invalid("body", "must name items, urls or tags, or have all: true").into());
    }
    if !purges.is_empty() {
        // This isolate forgets its copies before and after, because a concurrent request may load a page that is being
        // purged.
        request.app.pages.forget_all(request.now);
        page_cache::purge(&request.app.redis, &purges, mode).await?;
        request.app.pages.forget_all(request.now);
    }
    Ok(respond::json(respond::NO_STORE, &json!({"purged": purges.len(), "skipped": skipped})).into())
}

/// `?url=` → the result of [`page_cache::explain`] as JSON. A URL may be a path of this host. A URL of another host is
/// no page of this shop.
pub async fn explain(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let url = request.query_parameter("url")?.ok_or_else(|| Error::invalid("url", "is missing"))?;
    let url = absolute_url(&request, &url);
    let explanation = if is_own_page(&request, &url) {
        page_cache::explain(request.app, &url, request.now).await?
    } else {
        Explanation::not_a_page(Reason::NoPage, &request.app.config.page)
    };
    Ok(respond::json(respond::NO_STORE, &json!(explanation)).into())
}

/// Returns whether a URL can be a page of the host that got the request. edgefront's own paths are no pages.
fn is_own_page(request: &ApiRequest<'_>, url: &str) -> bool {
    let (Ok(url), Ok(own)) = (Url::parse(url), Url::parse(&request.origin())) else { return false };
    let is_own_path = url.path() == "/_edge" || url.path().starts_with("/_edge/");
    url.host() == own.host() && url.port() == own.port() && !is_own_path
}

fn take_list(fields: &mut JsonFields, field: &'static str) -> Result<Vec<Value>, Error> {
    match fields.take_optional(field) {
        None => Ok(Vec::new()),
        Some(Value::Array(values)) => Ok(values),
        Some(_) => Err(Error::invalid(field, "must be a list")),
    }
}

/// Adds the request's origin to a path.
fn absolute_url<'a>(request: &ApiRequest<'_>, url: &'a str) -> Cow<'a, str> {
    if url.starts_with('/') { format!("{}{url}", request.origin()).into() } else { url.into() }
}
