//! The lookup of a request: the page and the visitor's session from Redis, in one HTTP request.

use std::rc::Rc;

use super::PageRequest;
use crate::{
    config::rules::CookieKind,
    page_cache::{
        lookup::{
            Lease, LeaseRequest, LeaseTerms, Lookup, LookupResult, LookupTerms, PageState, RankRead, SessionRead,
            Wanted,
        },
        memory::LookupEpoch,
        stored_page::StoredPage,
    },
    ports::error::Error,
    proxy::Visit,
    sessions::{self, Session},
};
use upstash_rest::{TransportError, next_reply};

/// The reply of Redis to a request's lookup: the page and the visitor's session.
pub(super) struct Found {
    pub lookup: LookupResult,
    pub session: Option<Session>,
    /// The page is fresh, so the visitor's session was not read.
    pub lacks_session: bool,
    pub epoch: LookupEpoch,
    /// Redis sent the page: the location's cache does not have it.
    pub is_new: bool,
    /// A read region replied.
    pub is_near: bool,
}

/// A failed lookup.
pub(super) struct LookupFailed {
    pub error: Error,
    /// The lease that Redis may grant all the same, because its reply is late.
    pub lease: Option<Lease>,
}

impl From<Error> for LookupFailed {
    fn from(error: Error) -> Self {
        Self { error, lease: None }
    }
}

impl PageRequest {
    /// Looks up the page and the visitor's session. A read region replies if the isolate knows of no newer state and the
    /// request is no reload.
    pub(super) fn look_up(&self) -> impl Future<Output = Result<Found, LookupFailed>> {
        let app = &self.visit.app;
        let is_near = app.redis.has_read_regions()
            && !self.directives.is_reload()
            && !app.pages.has_changed(self.key.hash(), self.visit.now);
        self.send_lookup(true, is_near)
    }

    /// Looks up the page again, without the session, in the primary region, which grants leases.
    pub(super) fn look_up_again(&self) -> impl Future<Output = Result<Found, LookupFailed>> {
        self.send_lookup(false, false)
    }

    /// One pipeline: the page, and with `with_session` the visitor's session. `is_near`: without a lease, in the nearest
    /// read region.
    async fn send_lookup(&self, with_session: bool, is_near: bool) -> Result<Found, LookupFailed> {
        let app = &self.visit.app;
        let keys = app.redis.keys();
        let token = self.visit.token.as_ref().filter(|_| with_session);
        // The page's script reads the session if it reaches the session's keys. Otherwise, other commands do.
        let is_in_script = token.is_some_and(|token| keys.reaches_shared(token));
        let (in_script, in_pipeline) = if is_in_script { (token, None) } else { (None, token) };
        let only_if_stale = self.cookies.strictest < CookieKind::Unknown && !self.directives.is_reload();
        let session = in_script.map(|token| {
            let is_young = sessions::is_young(token, self.visit.now, &app.config.session);
            SessionRead { token, only_if_stale, is_young }
        });
        let lease = LeaseTerms { duration: app.config.origin.timeout, request: self.lease_request() };
        let terms = LookupTerms { lease: (!is_near).then_some(lease), rank: RankRead::IfStale, session };
        let held = self.held().await;
        let wanted = Wanted { selecting: &self.selecting, held: held.as_deref() };
        let (lookup, command) = Lookup::new(keys, &self.key, wanted, app.clock.now(), terms)?;
        let epoch = app.pages.epoch(app.clock.now());
        let command = if is_near { app.redis.near(command) } else { command };
        let mut commands = vec![command.expecting(app.config.page.max_bytes)];
        let check = |token| sessions::check_commands(keys, token, self.visit.now, &app.config.session);
        commands.extend(in_pipeline.into_iter().flat_map(check));
        let replies = app.redis.pipeline(&commands).await;
        app.circuit.record(&replies, app.clock.now());
        let failed = |error: upstash_rest::Error| {
            let is_late = error == upstash_rest::Error::Transport(TransportError::Timeout);
            LookupFailed { lease: lookup.lease().filter(|_| is_late), error: error.into() }
        };
        let mut replies = replies.map_err(failed)?.into_iter();
        let reply = next_reply(&mut replies).map_err(Error::from)?;
        let mut lookup = lookup.read(reply).map_err(Error::from)?;
        if is_near {
            lookup = lookup.not_older_than(held.as_deref());
        }
        let is_outdated = |page: &mut Box<StoredPage>| app.pages.is_outdated(self.key.hash(), page, self.visit.now);
        if lookup.page.take_if(is_outdated).is_some() && lookup.lease.is_none() {
            // Redis does not know of the write yet, so nobody renders the page.
            lookup.state = PageState::Outdated;
        }
        if let Some(page) = &mut lookup.page {
            page.hold(&*app.fetch);
        }
        let (now, config) = (self.visit.now, &app.config.session);
        let (session, lacks_session) = match (in_pipeline, in_script, lookup.session.take()) {
            (Some(token), ..) => (sessions::split_check(replies, token, now, config)?.0, false),
            (None, Some(token), Some((user, seen))) => (sessions::from_check(token, user, seen, now, config), false),
            (None, in_script, _) => (None, in_script.is_some()),
        };
        let number = |page: Option<&StoredPage>| page.map(StoredPage::render_number);
        let is_new = number(lookup.page.as_deref()) != number(held.as_deref());
        Ok(Found { lookup, session, lacks_session, epoch, is_new, is_near })
    }

    /// The condition of the lease. A page that was unpopular a moment ago gets it only if its item is popular by now.
    fn lease_request(&self) -> LeaseRequest {
        let app = &self.visit.app;
        if self.directives.is_reload() {
            LeaseRequest::Always
        } else if app.pages.is_unpopular(self.key.hash(), self.visit.now) {
            let limit = if self.key.by_popularity().is_ok() { app.config.page.rank_limit } else { 0 };
            LeaseRequest::IfPopular(limit)
        } else {
            LeaseRequest::IfStale
        }
    }

    /// Reads the session that the lookup left out.
    pub(super) async fn check_session(&self) -> Result<Option<Session>, Error> {
        let Visit { app, token, now, .. } = &self.visit;
        let Some(token) = token else { return Ok(None) };
        sessions::check(&app.redis, token, *now, &app.config.session).await
    }

    /// The newest copy of the page without Redis: the isolate's while it is fresh, else the location's if that is
    /// newer.
    pub(super) async fn held(&self) -> Option<Rc<StoredPage>> {
        let (app, now) = (&self.visit.app, self.visit.app.clock.now());
        let copy = app.pages.fallback(self.key.hash(), &self.selecting, now);
        if copy.as_ref().is_some_and(|page| page.is_fresh(now)) {
            return copy;
        }
        app.location.find(&self.key, &self.selecting, copy.as_deref(), now).await.or(copy)
    }
}
