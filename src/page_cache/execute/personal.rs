//! A render for one visitor.

use std::{rc::Rc, time::Duration};

use futures_util::future::{Either, select};
use http::{Method, StatusCode, header};

use super::{
    Found, Miss, PageRequest,
    background::{BackgroundRender, OwnHead, release},
};
use crate::{
    App,
    page_cache::{
        admission::{check_shareable, heuristic, popularity_of_response},
        cache_status::CacheStatus,
        key::PageKey,
        lookup::{Lease, PageState},
        policy::{Reason, freshness::Popularity, is_failure},
        stored_page::StoredPage,
    },
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::Response,
    },
    proxy::{self, OriginDirectives},
};

/// Forwards the visitor's own request. A response that claims to be shared is rendered for everybody afterwards.
pub async fn render(page_request: Box<PageRequest>, found: Found, miss: Miss) -> Answer {
    let class = page_request.class(&found.lookup.vary);
    let PageRequest { visit, key, selecting, has_personal_headers, request, .. } = *page_request;
    let (app, now, lease) = (visit.app.clone(), visit.now, found.lookup.lease);
    let stored = found.lookup.page.map(Rc::<StoredPage>::from);
    // Popularity must not admit a response to another spelling or to one visitor.
    let limited =
        |popularity: Popularity| popularity.and(Err(if key.is_exact() { Reason::Cookie } else { Reason::Spelling }));
    let is_get = request.method() == Method::GET;
    let mut shareable = Err(Reason::Status);
    let mut is_for_others = false;
    let mut own = None;
    let mut observe = |response: &mut Response, directives: &OriginDirectives| {
        let popularity = limited(learn_item(&app, &key, miss.popularity, response.status(), directives));
        let heuristic = heuristic(&app.config.page, &key, popularity);
        shareable = check_shareable(response, directives, &heuristic, &selecting, now);
        is_for_others = match shareable {
            Ok(()) => true,
            // The origin states no freshness: a popular page is rendered for the visitors without such cookies. A page that varies
            // on a header which only this request has could not be stored.
            Err(Reason::Cookie) => selecting.check_vary(response.headers()).is_ok(),
            Err(_) => false,
        };
        own = (is_for_others && has_personal_headers).then(|| OwnHead::of(response, class.clone()));
        let status = match shareable {
            Ok(()) if response.headers().contains_key(header::SET_COOKIE) => {
                CacheStatus::not_stored(miss.reason, Reason::SetCookie)
            }
            Ok(()) => CacheStatus::not_stored(miss.reason, Reason::Personal),
            Err(reason) if Err(reason) == popularity => CacheStatus::bypass(reason),
            Err(reason) => CacheStatus::not_stored(miss.reason, reason),
        };
        status.append_to(response);
    };
    let forward = Box::pin(proxy::forward(&visit, found.session.into(), request, &mut observe));
    let may_render = lease.is_some() || found.is_near;
    let Forwarded { answer, lease, released } = with_lease(&app, lease, forward).await;
    let failed = is_failure(answer.response.status());
    if let Err(reason) = shareable
        && !failed
    {
        if reason == Reason::Vary {
            app.pages.note_unstorable_for(&class, now);
        }
        // A page that was stored before is shared for other visitors.
        if reason.is_lasting() && found.lookup.state == PageState::Unknown {
            app.pages.note_unstorable_personal(key.hash(), reason, now);
        } else if reason == Reason::Unpopular && !has_personal_headers {
            app.pages.note_unpopular(key.hash(), now);
        }
    }
    // A fresh page whose visitor reloads it is not rendered twice.
    let is_stale = stored.as_ref().is_none_or(|stored| !stored.is_fresh(now));
    let is_noted = own.is_some() && app.pages.is_unstorable_for(&class, now);
    let renders_again = may_render && is_for_others && is_get && key.is_exact() && !failed && is_stale && !is_noted;
    let ended: Option<BackgroundTask> = match (lease, renders_again) {
        (Some(lease), false) => Some(release(&app, lease)),
        (None, false) => released,
        (lease, true) => {
            let render = BackgroundRender { app, key, selecting, popularity: miss.popularity, own };
            Some(match lease {
                Some(lease) => render.run(lease, stored),
                None => Box::pin(async move {
                    if let Some(released) = released {
                        released.await;
                    }
                    render.run_with_new_lease(stored).await;
                }),
            })
        }
    };
    answer.followed_by(ended)
}

/// Time for which a personal render keeps the lease.
const KEEPS_LEASE: Duration = Duration::from_millis(250);

/// A visitor's own response.
struct Forwarded {
    answer: Answer,
    /// The lease, if the response came within [`KEEPS_LEASE`].
    lease: Option<Lease>,
    /// The release of the lease, if it is still under way.
    released: Option<BackgroundTask>,
}

/// Waits for the response. A shared render may follow it with the lease. If the response takes longer than
/// [`KEEPS_LEASE`], the lease is released, because other visitors must not wait for this visitor's response.
async fn with_lease(app: &Rc<App>, lease: Option<Lease>, forward: impl Future<Output = Answer> + Unpin) -> Forwarded {
    let Some(lease) = lease else { return Forwarded { answer: forward.await, lease: None, released: None } };
    let forward = match select(forward, app.clock.sleep(KEEPS_LEASE)).await {
        Either::Left((answer, _)) => return Forwarded { answer, lease: Some(lease), released: None },
        Either::Right(((), forward)) => forward,
    };
    match select(forward, release(app, lease)).await {
        Either::Left((answer, released)) => Forwarded { answer, lease: None, released: Some(released) },
        Either::Right(((), forward)) => Forwarded { answer: forward.await, lease: None, released: None },
    }
}

/// Remembers the item that the response names, and returns that item's popularity. A response to one visitor that names
/// none changes nothing.
fn learn_item(
    app: &App,
    key: &PageKey,
    popularity: Popularity,
    status: StatusCode,
    directives: &OriginDirectives,
) -> Popularity {
    if directives.item.is_none() || status != StatusCode::OK {
        return popularity;
    }
    let shown = key.naming(directives.item.as_ref());
    app.pages.name(&shown);
    popularity_of_response(key, &shown, popularity)
}
