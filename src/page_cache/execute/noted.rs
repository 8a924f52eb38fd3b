//! Requests for a page with a hit-for-miss note.
//!
//! A page that was never stored is first rendered with the headers of one client. If the shop blocks this client, the note would
//! keep the page from all other visitors for two minutes. So a storable response to a visitor without cookies ends the note.
//! An isolate ends the note of a page at most once in two minutes, because the shop may refuse only shared renders.

use std::rc::Rc;

use http::{Method, header};

use super::{PageRequest, lease_end::log_error};
use crate::{
    App,
    page_cache::{
        admission::{check_shareable, heuristic, popularity_of_page},
        key::PageKey,
        policy::{Heuristic, Reason, is_failure},
        selecting::SelectingHeaders,
        store,
    },
    ports::{answer::BackgroundTask, fetch::Response, time::Timestamp},
    proxy::OriginDirectives,
};

/// A request of a visitor without cookies for a page with a note.
pub struct Noted {
    key: PageKey,
    selecting: SelectingHeaders,
    reason: Reason,
    now: Timestamp,
    heuristic: Heuristic,
    /// The response can be stored.
    is_refuted: bool,
}

impl Noted {
    /// None if the response cannot refute the note: the response may be this visitor's own, or status and headers alone did not
    /// cause the note.
    pub fn of(
        PageRequest { visit, key, selecting, has_personal_headers, request, .. }: &PageRequest,
        reason: Reason,
    ) -> Option<Self> {
        let is_personal = *has_personal_headers || *request.method() != Method::GET || visit.token.is_some();
        let config = &visit.app.config.page;
        let may_be_refuted = !is_personal && reason.is_in_head();
        may_be_refuted.then(|| Self {
            key: key.clone(),
            selecting: selecting.clone(),
            reason,
            now: visit.now,
            // Assume no rank, because no lookup has ranked the item.
            heuristic: heuristic(config, key, popularity_of_page(config, key, None)),
            is_refuted: false,
        })
    }

    /// Looks at the origin's response.
    pub fn observe(&mut self, response: &Response, directives: &OriginDirectives) {
        let head = (response.status(), response.headers());
        self.is_refuted = !is_failure(response.status())
            && !response.headers().contains_key(header::SET_COOKIE)
            && check_shareable(head, directives, &self.heuristic, &self.selecting, self.now).is_ok();
    }

    /// Ends the note if it is refuted, after the response.
    pub fn end(self, app: &Rc<App>) -> Option<BackgroundTask> {
        let Self { key, reason, now, is_refuted, .. } = self;
        let app = app.clone();
        (is_refuted && app.pages.may_refute(key.hash(), now)).then(|| -> BackgroundTask {
            Box::pin(async move {
                // Redis first: otherwise a lookup in between would find the note and keep it again.
                log_error(store::refute(&app.redis, &key).await);
                // Another response may have left another note meanwhile.
                if app.pages.unstorable(key.hash(), app.clock.now()) == Some(reason) {
                    app.pages.forget_unstorable(key.hash());
                }
            })
        })
    }
}
