//! A request that the page cache may answer: from the store, from the origin for everybody, or as the visitor's own.
//!
//! What is not known to be for everybody is asked for as it came, unless it came with nothing that could make it somebody's.

use std::{rc::Rc, time::Duration};

use http::{Method, StatusCode, header};
use url::Url;

use super::{Visit, failure, find_out, is_somebody, log_failure};
use crate::{
    app::{Answer, Later},
    config::{Forward, UNPOPULAR},
    error::Error,
    fetch::{FetchError, Request, Response},
    origin::{Says, Visitor},
    page_cache::{
        self, Ask, CacheStatus, Entry, Lease, Look, Lookup, Order, Page, Pass, Rendered, Reuse, Selecting, State,
        Waiting, Wish, admission::is_plain, storable,
    },
    session::{self, Session, cookie},
    time::Timestamp,
    upstash::{self, FromReply, Reply},
};

/// What a request wants, and all that is known of it beside its visit.
struct Wanted {
    page: Page,
    wish: Wish,
    selecting: Selecting,
    /// It has cookies of the origin's, or headers of its own: the answer may be nobody else's.
    is_own: bool,
    request: Request,
}

/// What Redis said.
struct Found {
    look: Look,
    session: Option<Session>,
}

/// A page that is asked of the origin: why, and whether popularity lets it in if the origin says nothing of freshness.
struct Question {
    why: &'static str,
    popularity: storable::Popularity,
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
        let has_cookies = cookie::strip(request.headers()).is_some();
        let is_own = has_cookies || !is_plain(request.headers(), forward);
        let selecting = Selecting::of(request.headers(), forward, has_cookies);
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
        let lookup = Lookup::new(page, selecting, app.clock.now(), lease, ask)?;
        let mut commands = vec![lookup.command()];
        let token = self.token.as_ref().filter(|_| with_session);
        commands.extend(token.into_iter().flat_map(session::check_commands));
        let replies = app.redis.pipeline(&commands).await;
        app.pages.note_redis(&replies, app.clock.now());
        let mut replies = replies?.into_iter();
        let look = lookup.read(replies.next().ok_or(upstash::Error::UnexpectedType)??)?;
        let session = match token {
            None => None,
            Some(token) => {
                let check = Reply::List(replies.collect::<Result<_, _>>()?);
                let (user, seen) = FromReply::from_reply(check)?;
                session::from_check(token, user, seen, self.now, &app.config.session)
            }
        };
        Ok(Found { look, session })
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
                        return self.serve_stored(wanted, found.look, status, now);
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
                return self.serve_stored(wanted, found.look, status, now);
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
            if app.pages.is_rendering(wanted.page.hash()) {
                continue;
            }
            (pause, collapsed) = ((pause * 2).min(Duration::from_millis(250)), true);
            if let Some(why) = app.pages.unstorable(wanted.page.hash(), now) {
                return self
                    .proxy(CacheStatus::pass(Pass::Unstorable(why)), found.session.into(), wanted.request)
                    .await;
            }
            match self.look_up(&wanted, false).await {
                Ok(again) => found.look = again.look,
                Err(error) => {
                    log::warn!("page cache: {error}");
                    return self.without_redis(wanted, Silence::New).await;
                }
            }
        }
    }

    /// The stored page, which the lease's holder renders anew behind its answer.
    fn serve_stored(&self, wanted: Wanted, look: Look, status: CacheStatus, now: Timestamp) -> Answer {
        let Some(entry) = look.entry else {
            return failure(FetchError::Unreachable.into(), wanted.request.headers()).into();
        };
        let mut answer = self.answer_from(&entry, status, &wanted.request, now);
        let entry: Rc<Entry> = Rc::from(entry);
        self.app.pages.keep(wanted.page.hash(), entry.clone());
        let is_due = !entry.is_fresh(now) && !self.app.pages.has_failed(wanted.page.hash(), now);
        answer.later.extend(look.lease.map(|lease| {
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
        Answer { response, later: lease.map(|lease| self.give_back(wanted.page, lease)).into_iter().collect() }
    }

    /// Asks the origin for everybody: the visitor waits, and whoever has the lease stores what came.
    async fn render(self, wanted: Wanted, found: Found, question: Question) -> Answer {
        let app = self.app.clone();
        let Found { look: Look { entry: stored, lease, vary, .. }, session } = found;
        let Question { why, popularity } = question;
        let rendering = lease.as_ref().map(|_| app.pages.render(wanted.page.hash()));
        let order = Order {
            page: &wanted.page,
            selecting: &wanted.selecting,
            sent: popularity.is_ok().then_some(vary),
            stored: stored.as_deref(),
            popularity,
            stamp: lease.as_ref().map_or(0, Lease::stamp),
            validated: wanted.wish.is_validated(),
            compressed: popularity.is_err() && stored.is_none() && takes_gzip(wanted.request.headers()),
        };
        let compressed = order.compressed;
        let rendered = page_cache::render(&app, &order).await;
        let now = app.clock.now();
        let has_failed = match &rendered {
            Ok(Rendered::Other { response, .. }) => response.status().is_server_error(),
            Ok(Rendered::Page { entry, .. }) => entry.status.is_server_error(),
            Err(_) => true,
        };
        let give_back = |page, lease: Option<Lease>| lease.map(|lease| self.give_back(page, lease));
        if has_failed {
            app.pages.note_failure(wanted.page.hash(), now);
            if let Some(entry) = stored.filter(|entry| wanted.wish.stands_in(entry, rendered.is_err(), now)) {
                let status = CacheStatus::stand_in(&entry, now, "origin-down");
                let mut answer = self.answer_from(&entry, status, &wanted.request, now);
                answer.later.extend(give_back(wanted.page, lease));
                return answer;
            }
        }
        match rendered {
            Ok(Rendered::Page { entry, not_modified }) => {
                let status = match &lease {
                    Some(_) => CacheStatus::stored(why, not_modified.then_some(304)),
                    None => CacheStatus::not_stored(why, "in-render"),
                };
                let mut answer = self.answer_from(&entry, status, &wanted.request, now);
                answer.later.extend(lease.map(|lease| -> Later {
                    Box::pin(async move {
                        store(&app, &wanted.page, &lease, *entry).await;
                        drop(rendering);
                    })
                }));
                answer
            }
            Ok(Rendered::Other { mut response, says, reason }) => {
                let ended = if has_failed {
                    give_back(wanted.page.clone(), lease)
                } else if compressed && reason == storable::ENCODING {
                    // It is for everybody, but for its coding: asked for once more behind the answer, it can be stored.
                    let (page, selecting) = (wanted.page.clone(), wanted.selecting.clone());
                    let again =
                        Wanted { page, selecting, wish: Wish::default(), is_own: false, request: Request::default() };
                    lease.map(|lease| self.render_again(again, lease, None, popularity))
                } else {
                    self.note_unstorable(wanted.page.clone(), lease, reason)
                };
                let bypassed = popularity == Err(reason);
                let status = CacheStatus::not_stored(if bypassed { "bypass" } else { why }, reason);
                // Not for everybody, so this visitor may get another one: their cookies and name go along this time. What came
                // for nobody is dropped, since its Set-Cookie would take away the session that they have at the origin.
                let lacked = reason == "vary" || reason == "vary-star" && app.config.page.forward != Forward::All;
                let is_theirs = lacked || is_somebody(session.as_ref(), wanted.request.headers());
                let mut answer = if !has_failed && (is_theirs || response.status() == StatusCode::NOT_MODIFIED) {
                    self.proxy(status, session.into(), wanted.request).await
                } else {
                    status.append_to(&mut response);
                    self.finish(*response, says, None, wanted.request.method(), wanted.request.headers()).await
                };
                answer.later.extend(ended);
                answer
            }
            Err(error) => {
                let mut response = failure(error, wanted.request.headers());
                CacheStatus::not_stored(why, "origin-down").append_to(&mut response);
                Answer { response, later: give_back(wanted.page, lease).into_iter().collect() }
            }
        }
    }

    /// Asks as the visitor's own. An answer that says that it is for everybody is asked for again behind it, for everybody.
    async fn own(self, wanted: Wanted, found: Found, question: Question) -> Answer {
        let (app, now) = (self.app.clone(), self.now);
        let Found { look, session } = found;
        let popularity = question.popularity.and(Err("spelling"));
        let is_get = wanted.request.method() == Method::GET;
        let mut claim = Err("status");
        let judge = |response: &Response, says: &Says| {
            let config = &app.config.page;
            let freshness = storable::freshness(response.status(), response.headers(), (now, now), popularity, config);
            claim = match freshness {
                _ if says.is_personal() => Err("personal"),
                // Asked for as it is, it could be stored.
                Ok(_) | Err(storable::ENCODING) => Ok(()),
                Err(reason) => Err(reason),
            };
            match claim {
                Ok(()) => CacheStatus::not_stored(question.why, "personal"),
                Err(reason) if Err(reason) == popularity => CacheStatus::pass(Pass::Unstorable(reason)),
                Err(reason) => CacheStatus::not_stored(question.why, reason),
            }
        };
        let visit = Self { app: app.clone(), now, token: self.token.clone(), item: self.item.clone() };
        let Wanted { page, wish, selecting, is_own, request } = wanted;
        let mut answer = visit.proxy_judged(judge, session.into(), request).await;
        let failed = answer.response.status().is_server_error();
        match claim {
            Ok(()) if is_get && page.is_exact() && !failed => answer.later.extend(look.lease.map(|lease| {
                let wanted = Wanted { page, wish, selecting, is_own, request: Request::default() };
                self.render_again(wanted, lease, None, question.popularity)
            })),
            Err(reason) if !failed => {
                if is_lasting(reason) {
                    app.pages.note_unstorable(&own_note(page.hash()), reason, now);
                } else if reason == UNPOPULAR && !is_own {
                    app.pages.note_unstorable(&silent_note(page.hash()), reason, now);
                }
                answer.later.extend(look.lease.map(|lease| self.give_back(page, lease)));
            }
            _ => answer.later.extend(look.lease.map(|lease| self.give_back(page, lease))),
        }
        answer
    }

    /// Renders a page behind an answer. What can not be stored leaves the stale page in place, and the lease: the next try comes
    /// when that has run out, so a failing origin is not asked at every visit.
    fn render_again(
        &self,
        wanted: Wanted,
        lease: Lease,
        stored: Option<Rc<Entry>>,
        popularity: storable::Popularity,
    ) -> Later {
        let app = self.app.clone();
        Box::pin(async move {
            let Wanted { page, selecting, .. } = &wanted;
            let _rendering = app.pages.render(page.hash());
            let vary = stored.as_ref().map(|entry| entry.vary.clone()).unwrap_or_default();
            let order = Order {
                page,
                selecting,
                sent: popularity.is_ok().then_some(vary),
                stored: stored.as_deref(),
                popularity,
                stamp: lease.stamp(),
                validated: false,
                compressed: false,
            };
            match page_cache::render(&app, &order).await {
                Ok(Rendered::Page { entry, .. }) if stored.is_none() || !entry.status.is_server_error() => {
                    store(&app, page, &lease, *entry).await;
                }
                Ok(Rendered::Page { entry, .. }) => {
                    log::warn!("page cache: not rendered again: status {}", entry.status);
                }
                Ok(Rendered::Other { response, reason, .. }) if response.status().is_server_error() => {
                    log::warn!("page cache: not rendered again: {reason}");
                }
                Ok(Rendered::Other { reason, .. }) => {
                    // It was for everybody, and is no more.
                    log::warn!("page cache: not rendered again: {reason}");
                    app.pages.note_unstorable(page.hash(), reason, app.clock.now());
                    log_failure(page_cache::note_unstorable(&app.redis, page, &lease).await);
                }
                Err(error) => log::warn!("page cache: not rendered again: {error}"),
            }
        })
    }

    fn give_back(&self, page: Page, lease: Lease) -> Later {
        let app = self.app.clone();
        Box::pin(async move { log_failure(page_cache::give_back(&app.redis, &page, &lease).await) })
    }

    /// Remembers that what the origin said to nobody in particular can not be stored. Those who wait for it are told by the lease.
    fn note_unstorable(&self, page: Page, lease: Option<Lease>, reason: &'static str) -> Option<Later> {
        let app = self.app.clone();
        if is_lasting(reason) {
            app.pages.note_unstorable(page.hash(), reason, self.now);
        } else if reason == UNPOPULAR {
            app.pages.note_unstorable(&silent_note(page.hash()), reason, self.now);
        }
        let lease = lease?;
        Some(Box::pin(async move {
            log_failure(if is_lasting(reason) {
                page_cache::note_unstorable(&app.redis, &page, &lease).await
            } else {
                page_cache::give_back(&app.redis, &page, &lease).await
            });
        }))
    }

    /// A page that was rendered for everybody, for this visitor.
    fn answer_from(&self, entry: &Entry, status: CacheStatus, request: &Request, now: Timestamp) -> Answer {
        let response = page_cache::serve(entry, request.method(), request.headers(), status, now);
        // A 304 is a view too: the visitor looks at the page that the 200 was.
        Answer { response, later: self.seen(request.method(), entry.status).into_iter().collect() }
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
            _ => self.proxy(CacheStatus::pass(Pass::RedisDown), Visitor::default(), wanted.request).await,
        };
        if let Some(entry) = copy.filter(|_| answer.response.status().is_server_error()) {
            answer.response = serve(&entry, &method, &headers);
        }
        answer.later.extend((silence == Silence::Long { probe: true }).then(|| find_out(app)));
        answer
    }

    /// A request that is no read. What it changed is void (RFC 9111 §4.4): the page under its URL, and those that the answer names. In
    /// this isolate at once, everywhere as soon as Redis has it; that is on its way when the visitor gets the answer.
    pub(super) async fn write(self, request: Request) -> Answer {
        let (app, now) = (self.app.clone(), self.now);
        let is_safe = [Method::OPTIONS, Method::TRACE].contains(request.method());
        let url = request.uri().to_string();
        let mut answer = self.pass(Pass::Method, request).await;
        let status = answer.response.status();
        if !is_safe && (status.is_success() || status.is_redirection()) {
            let pages = changed(&url, &answer.response, &app.config.page.item_routes);
            for page in &pages {
                app.pages.forget(page.hash());
                app.pages.note_unstorable(page.hash(), "invalidated", now);
            }
            answer.later.push(Box::pin(async move {
                log_failure(page_cache::invalidate(&app.redis, &pages).await);
                for page in &pages {
                    app.pages.forget(page.hash());
                }
            }));
        }
        answer
    }
}

/// Whether the client names gzip among the codings that it takes, which all that take any do.
fn takes_gzip(headers: &http::HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let (coding, weight) = coding.split_once(';').unwrap_or((coding, ""));
        coding.trim().eq_ignore_ascii_case("gzip")
            && !weight.replace(' ', "").trim_end_matches(['0', '.']).ends_with("q=")
    })
}

/// The pages under the request's URL and under those of its `Location` and `Content-Location` that are of the same origin.
fn changed(url: &str, response: &Response, routes: &crate::item_routes::ItemRoutes) -> Vec<Page> {
    let Ok(target) = Url::parse(url) else { return Vec::new() };
    let named = [header::LOCATION, header::CONTENT_LOCATION].into_iter().filter_map(|name| {
        let text = response.headers().get(name)?.to_str().ok()?;
        target.join(text).ok().filter(|named| named.origin() == target.origin())
    });
    let urls: Vec<_> = std::iter::once(target.clone()).chain(named).collect();
    let mut pages: Vec<_> = urls.iter().filter_map(|url| Page::of_url(url.as_str(), routes).ok()).collect();
    pages.dedup();
    pages
}

/// Stores what was rendered, and keeps a copy where that went well: a page that was purged meanwhile is nowhere then.
async fn store(app: &crate::app::App, page: &Page, lease: &Lease, entry: Entry) {
    match page_cache::store(&app.redis, page, lease, &entry, app.clock.now()).await {
        Ok(true) => app.pages.keep(page.hash(), Rc::new(entry)),
        Ok(false) => {}
        Err(error) => log::warn!("behind an answer: {error}"),
    }
}

/// Whether the answer may be nobody else's where the page is not known to be for everybody, or less than a page.
fn wants_its_own(wanted: &Wanted, session: Option<&Session>) -> bool {
    let Wanted { request, is_own, .. } = wanted;
    let has_user = session.is_some_and(|session| session.user.is_some());
    *is_own || has_user || request.method() != Method::GET || request.headers().contains_key(header::RANGE)
}

/// Under which the answer to somebody is remembered: others may get a page there that can be stored.
fn own_note(hash: &str) -> String {
    format!("{hash}~")
}

/// Under which it is remembered that an answer said nothing of freshness.
fn silent_note(hash: &str) -> String {
    format!("{hash}?")
}

/// Whether an answer that could not be stored says that of the next one too: an item may become popular with one view, and which headers
/// came is the request's doing.
fn is_lasting(reason: &str) -> bool {
    !matches!(reason, UNPOPULAR | "vary" | "spelling")
}
