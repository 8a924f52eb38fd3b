//! A request that the page cache may answer: from the store, from the origin for everybody, or as the visitor's own.
//!
//! What is not known to be for everybody is asked for as it came, unless it came with nothing that could make it somebody's.

use std::{cell::LazyCell, rc::Rc, time::Duration};

use http::{Method, StatusCode, header};

use super::{
    Visit,
    ask::{own_note, silent_note},
    failure, find_out,
};
use crate::{
    page_cache::{
        self, Ask, Asked, CacheStatus, Entry, Hot, Lease, Look, Lookup, Page, Pass, Reuse, Selecting, State, Waiting,
        Wish, admission::is_plain, storable,
    },
    ports::{
        answer::{Answer, BackgroundTask},
        error::Error,
        fetch::{FetchError, Request, Response},
        time::Timestamp,
    },
    proxy::VisitorContext,
    sessions::{self, Session, cookie},
    upstash::{self, FromReply, Reply},
};

/// What a request wants, and all that is known of it beside its visit.
pub(super) struct Wanted {
    pub(super) page: Page,
    pub(super) wish: Wish,
    pub(super) selecting: Selecting,
    /// It has cookies of the origin's, or headers of its own: the answer may be nobody else's.
    pub(super) is_own: bool,
    pub(super) request: Request,
}

/// What Redis said.
pub(super) struct Found {
    pub(super) look: Look,
    pub(super) session: Option<Session>,
    pub(super) asked: Asked,
}

/// A page that is asked of the origin: why, and whether popularity lets it in if the origin says nothing of freshness.
pub(super) struct Question {
    pub(super) why: &'static str,
    pub(super) popularity: storable::Popularity,
}

/// For how long Redis has been silent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Silence {
    New,
    Long { probe: bool },
}

impl Visit {
    /// A request that the cache may answer.
    pub(super) async fn page(self, page: Page, wish: Wish, request: Request) -> Answer {
        let (app, now) = (self.app.clone(), self.now);
        let forward = &app.config.page.forward;
        let has_cookies = LazyCell::new(|| cookie::strip(request.headers()).is_some());
        let selecting = LazyCell::new(|| Selecting::of(request.headers(), forward, *has_cookies));
        if let Some(hot) = app.pages.hot(page.hash(), &selecting, now)
            && wish.reuse(&hot.entry, now) == Reuse::Fresh
        {
            // Asked again by one visit, before it would have to be: then nobody waits for that.
            let confirm = hot.again.then(|| self.confirm(page, selecting.clone(), hot.entry.clone()));
            let mut answer = self.serve_hot(&request, hot);
            answer.background.extend(confirm);
            return answer;
        }
        let selecting = selecting.clone();
        let is_own = *has_cookies || !is_plain(request.headers(), forward);
        let wanted = Wanted { page, wish, selecting, is_own, request };
        if let Some(why) = self.known_unstorable(&wanted)
            && !wanted.wish.only_if_cached()
        {
            return self.pass(Pass::Unstorable(why), wanted.request).await;
        }
        match app.pages.waiting(now) {
            Waiting::Vain { probe } => self.without_redis(wanted, Silence::Long { probe }).await,
            Waiting::Worth => match self.look_up(&wanted, true).await {
                Ok(found) => self.found(wanted, found).await,
                Err(error) => {
                    log::warn!("page cache: {error}");
                    self.without_redis(wanted, Silence::New).await
                }
            },
        }
    }

    /// Why a page need not be looked for: it could not be stored a moment ago, for anybody or for visitors like this one.
    fn known_unstorable(&self, wanted: &Wanted) -> Option<&'static str> {
        let (pages, hash) = (&self.app.pages, wanted.page.hash());
        let of_its_own =
            || pages.unstorable(&own_note(hash), self.now).filter(|_| wanted.is_own || self.token.is_some());
        pages.unstorable(hash, self.now).or_else(of_its_own)
    }

    /// Whether the page's answer said nothing of freshness of late, so that its popularity alone could let it in.
    fn is_silent(&self, page: &Page) -> bool {
        self.app.pages.unstorable(&silent_note(page.hash()), self.now).is_some()
    }

    /// Asks for the page, and for the session where `with_session`, in one request: independent reads, so a pipeline.
    async fn look_up(&self, wanted: &Wanted, with_session: bool) -> Result<Found, Error> {
        let app = &self.app;
        let Wanted { page, selecting, .. } = wanted;
        let lease = app.config.origin.timeout;
        let ask = if wanted.wish.is_validated() {
            Ask::Always
        } else if self.is_silent(page) {
            Ask::IfPopular(if page.by_popularity().is_ok() { app.config.page.rank_limit } else { 0 })
        } else {
            Ask::IfNeeded
        };
        let (lookup, command) = Lookup::new(app.redis.keys(), page, selecting, app.clock.now(), lease, ask)?;
        let asked = app.pages.asked(app.clock.now());
        let mut commands = vec![command.expecting(app.config.page.max_bytes)];
        let token = self.token.as_ref().filter(|_| with_session);
        commands.extend(token.into_iter().flat_map(|token| sessions::check_commands(app.redis.keys(), token)));
        let replies = app.redis.pipeline(&commands).await;
        app.pages.note_redis(&replies, app.clock.now());
        let mut replies = replies?.into_iter();
        let look = lookup.read(replies.next().ok_or(upstash::Error::UnexpectedType)??)?;
        let session = match token {
            None => None,
            Some(token) => {
                let check = Reply::List(replies.collect::<Result<_, _>>()?);
                let (user, seen) = FromReply::from_reply(check)?;
                sessions::from_check(token, user, seen, self.now, &app.config.session)
            }
        };
        Ok(Found { look, session, asked })
    }

    /// Redis said what is stored.
    async fn found(self, wanted: Wanted, mut found: Found) -> Answer {
        let app = self.app.clone();
        let until = self.now + app.config.page.wait;
        let mut pause = Duration::from_millis(20);
        let mut collapsed = false;
        loop {
            let now = app.clock.now();
            let look = &mut found.look;
            if look.state == State::Unstorable {
                app.pages.note_unstorable(wanted.page.hash(), "unstorable", now);
                return self
                    .proxy(CacheStatus::pass(Pass::Unstorable("unstorable")), found.session.into(), wanted.request)
                    .await;
            }
            let why = match &look.entry {
                Some(entry) => match wanted.wish.reuse(entry, now) {
                    Reuse::Not(why) => why,
                    reuse => {
                        let status = if collapsed && reuse == Reuse::Fresh {
                            CacheStatus::collapsed("uri-miss")
                        } else {
                            CacheStatus::hit(entry, now)
                        };
                        return self.serve_stored(wanted, found, status, now);
                    }
                },
                None if look.vary.is_empty() => "uri-miss",
                None => "vary-miss",
            };
            if wanted.wish.only_if_cached() {
                return self.nothing_stored(wanted, look.lease.take(), why);
            }
            if let Some(entry) = &look.entry
                && app.pages.has_failed(wanted.page.hash(), now)
                && wanted.wish.stands_in(entry, false, now)
            {
                let status = CacheStatus::stand_in(entry, now, "origin-down");
                return self.serve_stored(wanted, found, status, now);
            }
            let popularity = wanted.page.by_popularity().and_then(|()| app.config.page.popularity(look.rank));
            let question = Question { why, popularity };
            let is_public = look.entry.is_some() || look.state == State::Known || popularity.is_ok();
            let is_own = || wants_its_own(&wanted, found.session.as_ref()) || self.is_silent(&wanted.page);
            if !wanted.page.is_exact() || !is_public && is_own() {
                return self.own(wanted, found, question).await;
            }
            // Somebody else renders it: what they store answers this request too, unless it takes too long.
            if look.lease.is_some() || why == "request" || now >= until {
                return self.render(wanted, found, question).await;
            }
            app.clock.sleep(pause).await;
            if app.pages.is_rendering(wanted.page.hash(), app.clock.now()) {
                continue;
            }
            (pause, collapsed) = ((pause * 2).min(Duration::from_millis(250)), true);
            if let Some(why) = app.pages.unstorable(wanted.page.hash(), now) {
                return self
                    .proxy(CacheStatus::pass(Pass::Unstorable(why)), found.session.into(), wanted.request)
                    .await;
            }
            match self.look_up(&wanted, false).await {
                Ok(again) => (found.look, found.asked) = (again.look, again.asked),
                Err(error) => {
                    log::warn!("page cache: {error}");
                    return self.without_redis(wanted, Silence::New).await;
                }
            }
        }
    }

    /// A page that this isolate holds, without Redis.
    fn serve_hot(&self, request: &Request, hot: Hot) -> Answer {
        let Hot { entry, kept, .. } = hot;
        let status = CacheStatus::hit(&entry, self.now);
        // Without a body there is nothing to keep, and with some statuses (204) the platform takes none.
        if !entry.body.is_empty() && page_cache::is_for_all(request.method(), request.headers()) {
            self.note_seen(request.method(), entry.status);
            return page_cache::serve_kept(&entry, kept, status, self.now).into();
        }
        self.answer_from(&entry, status, request, self.now)
    }

    /// Asks Redis again for a page that this isolate holds.
    fn confirm(&self, page: Page, selecting: Selecting, held: Rc<Entry>) -> BackgroundTask {
        let (app, now) = (self.app.clone(), self.now);
        Box::pin(async move {
            let asked = app.pages.asked(now);
            match page_cache::look(&app.redis, &page, &selecting, Some(&held), now).await {
                Ok(Look { entry: Some(entry), .. }) => app.pages.keep(page.hash(), Rc::from(entry), asked),
                Ok(_) => app.pages.forget(page.hash()),
                Err(error) => log::warn!("page cache: {error}"),
            }
        })
    }

    /// The stored page, which the lease's holder renders anew behind its answer.
    fn serve_stored(&self, wanted: Wanted, found: Found, status: CacheStatus, now: Timestamp) -> Answer {
        let Found { look, asked, .. } = found;
        let Some(entry) = look.entry else {
            return failure(FetchError::Unreachable.into(), wanted.request.headers()).into();
        };
        let mut answer = self.answer_from(&entry, status, &wanted.request, now);
        let entry: Rc<Entry> = Rc::from(entry);
        self.app.pages.keep(wanted.page.hash(), entry.clone(), asked);
        let is_due = !entry.is_fresh(now) && !self.app.pages.has_failed(wanted.page.hash(), now);
        answer.background.extend(look.lease.map(|lease| {
            if is_due {
                let popularity = wanted.page.by_popularity().and_then(|()| self.app.config.page.popularity(look.rank));
                self.render_again(wanted, lease, Some(entry), popularity)
            } else {
                self.give_back(wanted.page, lease)
            }
        }));
        answer
    }

    /// `only-if-cached`, and there is nothing (RFC 9111 §5.2.1.7).
    fn nothing_stored(&self, wanted: Wanted, lease: Option<Lease>, why: &'static str) -> Answer {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
        CacheStatus::not_stored(why, "only-if-cached").append_to(&mut response);
        Answer { response, background: lease.map(|lease| self.give_back(wanted.page, lease)).into_iter().collect() }
    }

    /// A page that was rendered for everybody, for this visitor.
    pub(super) fn answer_from(&self, entry: &Entry, status: CacheStatus, request: &Request, now: Timestamp) -> Answer {
        let response = page_cache::serve(entry, request.method(), request.headers(), status, now);
        // A 304 is a view too: the visitor looks at the page that the 200 was.
        self.note_seen(request.method(), entry.status);
        response.into()
    }

    /// Redis is silent: pages come from the origin. Where that fails too, or Redis has been silent for some time and the origin would
    /// have to answer all that it is spared else, a copy of this isolate's stands in: a purge is not seen then. A `probe` finds out
    /// behind the answer whether Redis is back.
    async fn without_redis(self, wanted: Wanted, silence: Silence) -> Answer {
        let (app, now) = (self.app.clone(), self.now);
        let copy = app.pages.copy(wanted.page.hash(), &wanted.selecting, now);
        let stands_in = |entry: &Rc<Entry>| {
            wanted.wish.reuse(entry, now) != Reuse::Not("request")
                && (entry.is_fresh(now) || wanted.wish.stands_in(entry, false, now))
        };
        let copy = copy.filter(stands_in);
        let serve = |entry: &Entry, method: &Method, headers: &http::HeaderMap| {
            let status = CacheStatus::stand_in(entry, now, "redis-down");
            page_cache::serve(entry, method, headers, status, now)
        };
        let (method, headers) = (wanted.request.method().clone(), wanted.request.headers().clone());
        let mut answer = match &copy {
            Some(entry) if silence != Silence::New => serve(entry, &method, &headers).into(),
            _ => self.proxy(CacheStatus::pass(Pass::RedisDown), VisitorContext::default(), wanted.request).await,
        };
        if let Some(entry) = copy.filter(|_| answer.response.status().is_server_error()) {
            answer.response = serve(&entry, &method, &headers);
        }
        answer.background.extend((silence == Silence::Long { probe: true }).then(|| find_out(app)));
        answer
    }
}

/// Whether the answer may be nobody else's where the page is not known to be for everybody, or less than a page.
fn wants_its_own(wanted: &Wanted, session: Option<&Session>) -> bool {
    let Wanted { request, is_own, .. } = wanted;
    let has_user = session.is_some_and(|session| session.user.is_some());
    *is_own || has_user || request.method() != Method::GET || request.headers().contains_key(header::RANGE)
}
