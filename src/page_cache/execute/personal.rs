//! A render for one visitor.

use std::{rc::Rc, time::Duration};

use futures_util::future::{Either, select};
use http::{Method, StatusCode, header};

use super::{
    Miss, PageRequest,
    background::{BackgroundRender, PersonalHead},
    found::Found,
    lease_end::release,
};
use crate::{
    App,
    page_cache::{
        admission::{asks_for_page, check_shareable, heuristic, popularity_of_response, status_of_page},
        cache_status::CacheStatus,
        key::PageKey,
        lookup::{Lease, PageState},
        policy::{Reason, freshness::Popularity, is_failure},
        selecting::{RequestClass, SelectingHeaders},
        stored_page::StoredPage,
    },
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::Response,
        problem::{Failure, FailureSource},
        time::Timestamp,
    },
    proxy::{self, OriginDirectives},
};

/// Forwards the visitor's own request. If its response can be shared, a shared render follows.
pub async fn render(page_request: Box<PageRequest>, found: Found, miss: Miss) -> Answer {
    let class = page_request.class(&found.lookup.vary);
    let PageRequest { visit, key, selecting, has_personal_headers, request, .. } = *page_request;
    let (app, now, lease) = (visit.app.clone(), visit.now, found.lookup.lease);
    let stored = found.lookup.page.map(Rc::<StoredPage>::from);
    let is_get = request.method() == Method::GET;
    let asks_for_page = is_get && asks_for_page(request.headers(), &app.config.page.headers);
    let render = PersonalRender { app, key, selecting, miss, class, has_personal_headers, asks_for_page, now };
    let mut judged = PersonalResponse { shareable: Err(Reason::Status), is_for_others: false, head: None };
    let mut observe =
        |response: &mut Response, directives: &OriginDirectives| judged = render.judge(response, directives);
    let forward = Box::pin(proxy::forward(&visit, found.session.into(), request, &mut observe));
    let may_render = lease.is_some() || found.is_near;
    let Forwarded { answer, lease, released } = with_lease(&render.app, lease, forward).await;
    let failed = is_failure(answer.response.status());
    if let Err(reason) = judged.shareable
        && !failed
    {
        render.note_unshareable(reason, found.lookup.state);
    }
    let PersonalRender { app, key, selecting, class, .. } = render;
    // A fresh page whose visitor reloads it is not rendered twice.
    let is_stale = stored.as_ref().is_none_or(|stored| !stored.is_fresh(now));
    let is_noted = judged.head.is_some() && app.pages.is_unstorable_for(&class, now);
    if !(may_render && judged.is_for_others && is_get && key.is_exact() && !failed && is_stale && !is_noted) {
        return answer.followed_by(lease.map_or(released, |lease| Some(release(&app, lease))));
    }
    let render = BackgroundRender { app, key, selecting, popularity: miss.popularity, follows: judged.head };
    answer.followed_by(Some(match lease {
        Some(lease) => render.run(lease, stored),
        None => Box::pin(async move {
            if let Some(released) = released {
                released.await;
            }
            render.run_with_new_lease(stored).await;
        }),
    }))
}

/// A render for one visitor: all data for the judgement of its response.
struct PersonalRender {
    app: Rc<App>,
    key: PageKey,
    selecting: SelectingHeaders,
    miss: Miss,
    /// The class of the request.
    class: RequestClass,
    has_personal_headers: bool,
    /// See [`asks_for_page`].
    asks_for_page: bool,
    now: Timestamp,
}

/// The judgement of a response to one visitor.
struct PersonalResponse {
    /// See [`check_shareable`].
    shareable: Result<(), Reason>,
    /// The page can be rendered for other visitors.
    is_for_others: bool,
    /// See [`BackgroundRender::follows`].
    head: Option<PersonalHead>,
}

impl PersonalRender {
    /// Judges the origin's response, and adds its `Cache-Status`.
    fn judge(&self, response: &mut Response, directives: &OriginDirectives) -> PersonalResponse {
        let Self { app, key, selecting, miss, now, .. } = self;
        // Popularity admits shared renders of canonical URLs only.
        let status = status_of_page(response, self.asks_for_page, app.config.page.max_bytes);
        let popularity = learn_item(app, key, miss.popularity, status.unwrap_or(response.status()), directives)
            .and(Err(if key.is_exact() { Reason::Cookie } else { Reason::Spelling }));
        let heuristic = heuristic(&app.config.page, key, popularity);
        let shareable = status
            .and_then(|status| check_shareable((status, response.headers()), directives, &heuristic, selecting, *now));
        let is_for_others = match shareable {
            Ok(()) => true,
            // The origin states no freshness: a popular page is rendered for the visitors without such cookies. A page that varies
            // on a header which only this request has could not be stored.
            Err(Reason::Cookie) => selecting.check_vary(response.headers()).is_ok(),
            Err(_) => false,
        };
        let head = (is_for_others && self.has_personal_headers).then(|| PersonalHead::of(response, self.class.clone()));
        let is_down =
            response.extensions().get().is_some_and(|failure: &Failure| failure.source == FailureSource::Origin);
        let status = match shareable {
            Err(_) if is_down => CacheStatus::not_stored(miss.reason, Reason::OriginDown),
            Ok(()) if response.headers().contains_key(header::SET_COOKIE) => {
                CacheStatus::not_stored(miss.reason, Reason::SetCookie)
            }
            Ok(()) => CacheStatus::not_stored(miss.reason, Reason::Personal),
            Err(reason) if Err(reason) == popularity => CacheStatus::bypass(reason),
            Err(reason) => CacheStatus::not_stored(miss.reason, reason),
        };
        status.append_to(response);
        PersonalResponse { shareable, is_for_others, head }
    }

    /// Leaves notes about a response that cannot be shared, so that other requests do not look the page up in vain.
    fn note_unshareable(&self, reason: Reason, state: PageState) {
        let (pages, hash) = (&self.app.pages, self.key.hash());
        if reason == Reason::Vary {
            pages.note_unstorable_for(&self.class, self.now);
        }
        // A page that was stored before is shared for other visitors.
        if reason.is_lasting() && state == PageState::Unknown {
            pages.note_unstorable_personal(hash, reason, self.now);
        } else if reason == Reason::Unpopular && !self.has_personal_headers {
            pages.note_unpopular(hash, self.now);
        }
    }
}

/// Time for which a personal render keeps the lease.
const KEEPS_LEASE: Duration = Duration::from_millis(250);

/// The response to the visitor's own request.
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
    app.pages.keys.name(&shown);
    popularity_of_response(key, &shown, popularity)
}
