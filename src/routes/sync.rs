//! Read regions: each visitor reads their own changes in every region. Redis' sync token of a visitor's last change
//! travels in a cookie, through all locations and tiers.

use std::rc::Rc;

use http::{HeaderValue, header};
use upstash_rest::{Command, SyncScope};

use crate::{
    App,
    ports::fetch::{Request, Response},
    proxy::home::EdgeAsk,
    schema::keys::JOBS,
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

    /// Merges the cookies if there are several: a write without effect returns a token that is later than theirs. Without
    /// an answer from Redis, the cookies stay for the next request. To be called in the scope.
    pub async fn merge(&mut self, app: &App, request: &mut Request) {
        if !self.carried.are_several() || app.circuit.is_open() {
            return;
        }
        // No job has an empty name.
        let write = Command::write("HDEL").arg(JOBS).arg("").repeatable().synced();
        let outcome = app.redis.reply(&write).await.map(drop);
        app.circuit.record(&outcome, app.clock.now());
        self.merged = self.scope.take_written();
        // The response has cookies, so the edge tier cannot make it from a stored page.
        request.extensions_mut().remove::<EdgeAsk>();
    }

    /// Sets the cookie, if the request changed the visitor's session or cart, or merged several cookies.
    pub fn end(self, app: &App, response: &mut Response) {
        let (token, cause) = match (self.scope.take_written(), self.merged) {
            (Some(token), _) => (token, SyncCause::Change),
            (None, Some(token)) => (token, SyncCause::Merge),
            (None, None) => return,
        };
        let headers = response.headers_mut();
        if let Err(error) = app.keyring.set_sync(headers, &token, &self.carried, cause) {
            return log::warn!("read regions: {error}");
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    }
}
