//! Read regions: each visitor reads their own changes in every region. Redis' sync token of a visitor's last change
//! travels in a cookie, through all locations and tiers.

use std::rc::Rc;

use http::HeaderValue;
use upstash_rest::SyncScope;

use crate::{
    App,
    ports::{
        fetch::{Request, Response},
        header_names::make_unstorable,
    },
    proxy::visit::EdgeAsk,
    sessions::{SyncCause, SyncCookies},
};

/// The sync tokens of a request.
pub struct VisitorSync {
    carried: SyncCookies,
    merged: Option<HeaderValue>,
    scope: Rc<SyncScope>,
}

impl VisitorSync {
    /// Reads the cookies. None if Redis has no read regions, or in the edge tier, which sends nothing to Redis.
    pub fn read(app: &App, request: &Request) -> Option<Self> {
        if !app.config.redis.has_read_regions || app.home.is_some() {
            return None;
        }
        let carried = app.keyring.read_sync(request.headers());
        let scope = SyncScope::new(carried.token().cloned()).into();
        Some(Self { carried, merged: None, scope })
    }

    /// All that the request sends to Redis belongs to this scope.
    pub fn scope(&self) -> Rc<SyncScope> {
        self.scope.clone()
    }

    /// Merges the cookies if there are several. Without an answer from Redis, the cookies stay for the next request, and
    /// this request reads nothing from a read region: its reads could show an earlier state. To be called in the scope.
    pub async fn merge(&mut self, app: &App, request: &mut Request) {
        if !self.carried.must_merge() {
            return;
        }
        let mut is_answered = false;
        if !app.circuit.is_open() {
            let outcome = app.redis.catch_up().await;
            app.circuit.record(&outcome, app.clock.now());
            is_answered = outcome.is_ok();
            self.merged = self.scope.take_written();
        }
        if !is_answered {
            self.scope.refuse_reads();
            // The merge's own write changes nothing.
            let _is_lost = self.scope.take_lost_write();
        }
        // The response has cookies, so the edge tier cannot make it from a stored page.
        request.extensions_mut().remove::<EdgeAsk>();
    }

    /// Sets the cookie, if the request changed the visitor's session or cart, or merged several cookies. After a change
    /// without an answer, another cookie makes the next request merge.
    pub fn end(self, app: &App, response: &mut Response) {
        let headers = response.headers_mut();
        let token = match (self.scope.take_written(), self.merged) {
            (Some(token), _) => Some((token, SyncCause::Change)),
            (None, Some(token)) => Some((token, SyncCause::Merge)),
            (None, None) => None,
        };
        let is_lost = self.scope.take_lost_write();
        if token.is_none() && !is_lost {
            return;
        }
        let set = token.map_or(Ok(()), |(token, cause)| app.keyring.set_sync(headers, &token, &self.carried, cause));
        let outcome =
            set.and_then(|()| if is_lost { app.keyring.mark_lost_change(headers, &self.carried) } else { Ok(()) });
        if let Err(error) = outcome {
            return log::warn!("read regions: {error}");
        }
        make_unstorable(headers);
    }
}
