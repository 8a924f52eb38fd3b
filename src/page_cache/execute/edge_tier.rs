//! The edge tier's part of the page cache. It answers from the isolate's copies; the home tier does everything else.
//! If a stored page answers the request, the home tier hands this page over. The edge tier keeps a copy and responds.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, header};

use super::{
    PageRequest,
    bypass::{pass, unavailable},
    local::{fallback, put_in_location},
};
use crate::{
    App,
    page_cache::{
        cache_status::CacheStatus, key::PageKey, lookup::Wanted, memory::LookupEpoch, policy::Reason, respond::respond,
        selecting::SelectingHeaders, stored_page::StoredPage,
    },
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::{Body, Request, Response},
    },
    proxy::{
        RequestHead, Visit,
        home::{self, FromHome, PAGE},
        visit::EdgeAsk,
    },
};

fn lacks_redis(response: &Response) -> bool {
    response.extensions().get::<FromHome>().is_some_and(|home| home.lacks_redis)
}

/// Asks the home tier for a page. The isolate's copy replaces the response if the home tier does not answer, or if
/// neither Redis nor the origin answers the home tier.
pub(super) async fn answer(page_request: Box<PageRequest>) -> Answer {
    let app = page_request.visit.app.clone();
    // An isolate of the home tier knows only the changes that passed through it.
    let change = app.pages.last_change(page_request.key.hash(), page_request.visit.now);
    let (method, headers) = (page_request.request.method(), page_request.request.headers());
    let is_get = *method == Method::GET;
    app.pages.end_write_at_home(page_request.key.hash(), page_request.visit.now);
    let held = if is_get { page_request.held().await } else { None };
    let ask =
        is_get.then(|| EdgeAsk { held: held.as_ref().map(|stored| stored.render_number()), is_confirmation: false });
    let epoch = app.pages.epoch(app.clock.now());
    let mut request = RequestHead::of(&page_request.request).into_request();
    if let Some(change) = change {
        request.extensions_mut().insert(change);
    }
    let stand_in = |reason| {
        let now = app.clock.now();
        let copy = fallback(&page_request, &app)?;
        page_request.visit.record(method, headers, copy.status, copy.item.as_ref());
        Some(Answer::from(respond(&copy, method, headers, CacheStatus::fallback(&copy, now, reason), now)))
    };
    let response = match home::send(&app, request, ask).await {
        Ok(response) => response,
        Err(error) => return stand_in(Reason::HomeDown).unwrap_or_else(|| unavailable(&app, &error, headers)),
    };
    if ask.is_none() || !response.headers().contains_key(PAGE) {
        let is_failure = response.status().is_server_error() && lacks_redis(&response);
        let copy = if is_failure { stand_in(Reason::RedisDown) } else { None };
        return copy.unwrap_or_else(|| response.into());
    }
    let handed_over = home::collect(&app, response).await;
    if handed_over.is_none()
        && let Some(answer) = stand_in(Reason::HomeDown)
    {
        return answer;
    }
    let wanted = Wanted { selecting: &page_request.selecting, held: held.as_deref() };
    let Some(stored) = handed_over.and_then(|response| take(&app, &response, &page_request.key, wanted, epoch)) else {
        // The page did not arrive, or the tiers disagree about its form or variant. The edge tier asks for a finished
        // response.
        return pass(&page_request.visit, page_request.request).await;
    };
    let now = app.clock.now();
    let mut response = respond(&stored, method, headers, CacheStatus::hit(&stored, now), now);
    response.extensions_mut().insert(FromHome::default());
    page_request.visit.record(method, headers, stored.status, stored.item.as_ref());
    let is_new = held.is_none_or(|held| held.render != stored.render);
    Answer::from(response).followed_by(is_new.then(|| put_in_location(&app, &page_request.key, stored)))
}

/// Confirms a copy: asks the home tier if the copy is still the stored page. Replaces or drops a copy that is not.
pub(super) fn confirm(
    visit: &Visit,
    key: PageKey,
    selecting: SelectingHeaders,
    held: Rc<StoredPage>,
) -> BackgroundTask {
    let app = visit.app.clone();
    Box::pin(async move {
        let epoch = app.pages.epoch(app.clock.now());
        let mut request = Request::new(Body::Empty);
        let Ok(uri) = key.url().parse() else { return };
        *request.uri_mut() = uri;
        *request.headers_mut() = selecting.headers(None);
        // The home tier renders no page for this request.
        request.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("only-if-cached"));
        let ask = EdgeAsk { held: Some(held.render_number()), is_confirmation: true };
        let response = match home::send(&app, request, Some(ask)).await {
            Ok(response) if lacks_redis(&response) => return,
            Ok(response) => response,
            Err(error) => return log::warn!("page cache: {error}"),
        };
        let Some(response) = home::collect(&app, response).await else { return };
        let wanted = Wanted { selecting: &selecting, held: Some(&held) };
        match take(&app, &response, &key, wanted, epoch) {
            Some(page) if page.render != held.render => put_in_location(&app, &key, page).await,
            Some(_) => {}
            None => app.pages.forget(key.hash(), app.clock.now()),
        }
    })
}

/// Keeps the page that the home tier hands over. None if the response has no page, or a page in another form or of
/// another variant.
fn take(
    app: &App,
    response: &http::Response<Bytes>,
    key: &PageKey,
    wanted: Wanted<'_>,
    epoch: LookupEpoch,
) -> Option<Rc<StoredPage>> {
    let (kind, age) = response.headers().get(PAGE)?.to_str().ok()?.split_once(' ')?;
    let (is_same, age) = (kind == "same", Duration::from_millis(age.parse().ok()?));
    if !is_same && kind != "new" {
        return None;
    }
    let held_body = wanted.held.filter(|_| is_same).map(|page| page.body.clone());
    let mut page = StoredPage::decode_around(response.body(), held_body, key, wanted.selecting)?;
    page.hold(&*app.fetch);
    let page = Rc::new(page);
    if page.item.is_some() {
        app.pages.keys.name(&key.naming(page.item.as_ref()));
    }
    // The copy was confirmed as long ago as that of the home tier.
    app.pages.keep(key.hash(), page.clone(), epoch.earlier(age));
    Some(page)
}
