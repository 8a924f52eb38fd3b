//! Unsafe requests: they bypass the cache, and void the pages that they changed (RFC 9111 §4.4).

use http::{HeaderMap, header};
use url::Url;

use super::{bypass::bypass, tokens};
use crate::{
    config::{Config, rules::paths::pages_of_data},
    page_cache::{key::PageKey, policy::Reason, session_ids, store},
    ports::{answer::Answer, fetch::Request},
    proxy::{Replaced, Visit, esi::Processed, home::PageChange},
};

/// Forwards a request with another method than GET and HEAD. A successful unsafe request voids the pages under its URL
/// and under the URLs in its response's `Location` and `Content-Location`. This isolate drops them before the response,
/// Redis drops them after it.
///
/// A write to one of `CART_ROUTES` or `LOGIN_ROUTES` changes a cart or a session, so it voids no page that its response merely
/// names (a MAY of §4.4). Otherwise each addition to a cart would void the page of the item, and each login the home page, to
/// which many shops redirect. A write to one of `WRITES_PERSONAL` or `CHOICES` voids no page at all.
pub async fn forward_unsafe(visit: Visit, request: Request) -> Answer {
    let app = visit.app.clone();
    let is_safe = request.method().is_safe();
    let url = request.uri().to_string();
    let mut answer = if tokens::may_have_placeholders(&app, &request) {
        Box::pin(tokens::forward(&visit, request)).await
    } else {
        bypass(&visit, Reason::Method, request).await
    };
    let replaced = answer.response.extensions_mut().remove::<Replaced>();
    let at_home = answer.response.extensions_mut().remove::<PageChange>();
    let (status, headers) = match &replaced {
        Some(origin) => (origin.status, &origin.headers),
        None => (answer.response.status(), answer.response.headers()),
    };
    // A response whose ESI is refused was a success at the origin.
    let is_refused = answer.response.extensions().get() == Some(&Processed::Refused);
    if !is_safe && (at_home.is_some() || status.is_success() || status.is_redirection() || is_refused) {
        let now = app.clock.now();
        let keys = changed(&url, headers, &app.config);
        // The home tier compares times by its own clock. An older home tier sends no time. Use the request's start: a later time
        // could void a page that was rendered after the write.
        let without_time = if app.home.is_some() { visit.now } else { now };
        let changed_at = at_home.map_or(without_time, |change| change.at);
        for key in &keys {
            app.pages.note_write(key.hash(), changed_at, now);
        }
        if keys.is_empty() || app.home.is_some() {
            return answer;
        }
        answer.response.extensions_mut().insert(PageChange { at: now, by_request: true });
        answer.background.push(Box::pin(async move {
            let mut evicted = store::invalidate(&app.redis.in_background(), &keys).await;
            if let Err(error) = &evicted {
                log::warn!("page cache: pages were not voided, trying again: {error}");
                evicted = store::invalidate(&app.redis.for_retry().await, &keys).await;
            }
            match evicted {
                Ok(()) => keys.iter().for_each(|key| app.pages.end_write(key.hash(), now, app.clock.now())),
                Err(error) => log::error!("page cache: pages were not voided: {error}"),
            }
        }));
    }
    answer
}

/// The pages that the write may have changed: those under the request's URL, the page if that is the URL of its data, and,
/// unless it is one of `CART_ROUTES` or `LOGIN_ROUTES`, those under `Location` and `Content-Location` with the same origin. None for
/// one of `WRITES_PERSONAL` or `CHOICES`.
fn changed(url: &str, headers: &HeaderMap, config: &Config) -> Vec<PageKey> {
    let Ok(target) = Url::parse(url) else { return Vec::new() };
    let rules = &config.page.urls;
    if rules.personal_writes.contains(target.path()) || rules.choices.contains(target.path(), target.query()) {
        return Vec::new();
    }
    let routes = [&config.origin.cart_routes, &config.origin.login_routes];
    let is_of_visitor = routes.iter().any(|routes| routes.contains(target.path()));
    let header = |name| headers.get(name).and_then(|value| str::from_utf8(value.as_bytes()).ok());
    let named = [header(header::LOCATION), header(header::CONTENT_LOCATION)].into_iter().filter(|_| !is_of_visitor);
    let mut urls = vec![target.clone()];
    let [page, _] = pages_of_data(target.path());
    // The page's own path may end with a slash, which the path of the data does not show.
    let with_slash = page.map(|page| format!("{}/", page.trim_end_matches('/')));
    for text in named.chain([page, with_slash.as_deref()]).flatten() {
        urls.extend(target.join(text).ok().filter(|named| named.origin() == target.origin()));
    }
    // A visitor with cookies requests the same page without the id of the session.
    let both = |url: &Url| [url.to_string(), session_ids::without(url.as_str(), |_, _| false)];
    let mut texts: Vec<_> = urls.iter().flat_map(both).collect();
    texts.dedup();
    let mut keys: Vec<PageKey> = Vec::new();
    for key in texts.iter().filter_map(|url| PageKey::of_url(url, rules).ok()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}
