//! Responses from the page that a lookup found.

use std::rc::Rc;

use http::{HeaderValue, StatusCode, header};

use super::{
    PageRequest, background::BackgroundRender, fill, found::Found, hand_over::hand_over, lease_end::release,
    local::put_in_location,
};
use crate::{
    page_cache::{
        cache_status::CacheStatus,
        lookup::{Lease, LookupResult},
        respond::respond,
        stored_page::StoredPage,
    },
    ports::{
        answer::Answer,
        fetch::{FetchError, Response},
        time::Timestamp,
    },
    proxy::failure,
};

impl PageRequest {
    /// Serves the stored page. If this request holds the lease of a stale page, it is rendered again after the
    /// response.
    pub(super) fn serve_stored(
        self: Box<Self>,
        found: Found,
        status: impl FnOnce(&StoredPage) -> CacheStatus,
        now: Timestamp,
    ) -> Answer {
        let popularity = self.popularity(&found.lookup);
        let LookupResult { page: Some(page), lease, .. } = found.lookup else {
            return failure(&self.visit.app, &FetchError::Unreachable.into(), self.request.headers()).into();
        };
        let status = status(&page);
        let is_filled = fill::is_needed(&page, &self.cookies, &self.visit);
        let hand_over = || hand_over(&self.visit, &self.key, &page, status, found.epoch.began());
        let handed = if is_filled { None } else { hand_over() };
        let answer = handed.map_or_else(|| self.respond_with(&page, status, now), Answer::from);
        let page: Rc<StoredPage> = Rc::from(page);
        let app = &self.visit.app;
        app.pages.keep(self.key.hash(), page.clone(), found.epoch);
        let put = found.is_new.then(|| put_in_location(app, &self.key, page.clone()));
        let renders_again = !page.is_fresh(now) && !app.pages.has_failed(self.key.hash(), now);
        let ended = lease.map(|lease| {
            if renders_again {
                let (app, key, selecting) = (app.clone(), self.key.clone(), self.selecting.clone());
                BackgroundRender { app, key, selecting, popularity, follows: None }.run(lease, Some(page))
            } else {
                release(app, lease)
            }
        });
        answer.followed_by(put).followed_by(ended)
    }

    /// Answers 504 and releases the lease.
    pub(super) fn gateway_timeout(&self, lease: Option<Lease>, status: CacheStatus) -> Answer {
        Answer::from(gateway_timeout(status)).followed_by(lease.map(|lease| release(&self.visit.app, lease)))
    }

    /// The response from a stored page. A 304 counts as a view: the visitor sees the page.
    pub(super) fn respond_with(&self, page: &StoredPage, status: CacheStatus, now: Timestamp) -> Answer {
        let response = if fill::is_needed(page, &self.cookies, &self.visit) {
            fill::respond(page, &self.visit, &self.request, status)
        } else {
            respond(page, self.request.method(), self.request.headers(), status, now)
        };
        self.visit.record(self.request.method(), self.request.headers(), page.status, page.item.as_ref());
        response.into()
    }
}

/// 504 for `only-if-cached` (RFC 9111 §5.2.1.7).
pub(super) fn gateway_timeout(status: CacheStatus) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    status.append_to(&mut response);
    response
}
