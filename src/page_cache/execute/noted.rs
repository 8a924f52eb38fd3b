//! Requests for a page with a hit-for-miss note.
//!
//! A page that was never stored is first rendered with the headers of one client. The shop possibly blocks this client, or
//! shows it something else than the others, and the note would keep the page from them for two minutes. So the note ends as
//! soon as a visitor without cookies gets a response that can be stored.

use std::{rc::Rc, slice};

use http::{Method, header};

use super::{background::log_error, personal::is_shareable, render::is_failure};
use crate::{
    App,
    page_cache::{
        key::PageKey,
        policy::{Heuristic, Reason},
        selecting::SelectingHeaders,
        store,
    },
    ports::{
        answer::BackgroundTask,
        fetch::{Request, Response},
        time::Timestamp,
    },
    proxy::OriginDirectives,
};

/// A request of a visitor without cookies for a page with a note.
pub struct Noted {
    key: PageKey,
    selecting: SelectingHeaders,
    now: Timestamp,
    /// The response can be stored.
    is_wrong: bool,
}

impl Noted {
    /// Returns whether the response to this request can show that a note with this reason is wrong. `is_personal`: the
    /// response may be this visitor's own.
    pub fn is_in_question(reason: Reason, request: &Request, is_personal: bool) -> bool {
        !is_personal && reason.is_in_head() && *request.method() == Method::GET
    }

    pub const fn new(key: PageKey, selecting: SelectingHeaders, now: Timestamp) -> Self {
        Self { key, selecting, now, is_wrong: false }
    }

    /// Looks at the origin's response.
    pub fn observe(&mut self, response: &Response, directives: &OriginDirectives) {
        self.is_wrong = !is_failure(response.status())
            && !response.headers().contains_key(header::SET_COOKIE)
            && is_shareable(response, directives, &Heuristic::STATED_ONLY, &self.selecting, self.now).is_ok();
    }

    /// Ends the note if it is wrong, after the response.
    pub fn end(self, app: &Rc<App>) -> Option<BackgroundTask> {
        let (app, key) = (app.clone(), self.key);
        self.is_wrong.then(|| -> BackgroundTask {
            Box::pin(async move {
                // Redis first: a request in between would note again what Redis still has.
                log_error(store::invalidate(&app.redis, slice::from_ref(&key)).await);
                app.pages.forget_unstorable(key.hash());
            })
        })
    }
}
