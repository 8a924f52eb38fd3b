//! Asks the origin for a page: for everybody, as the visitor's own, or behind an answer; and what becomes of what it says.

use std::rc::Rc;

use http::{Method, StatusCode, header};

use super::{
    Visit, failure, is_somebody, log_failure,
    page::{Found, Question, Wanted},
};
use crate::{
    App,
    config::{Forward, UNPOPULAR},
    page_cache::{self, CacheStatus, Entry, Lease, Look, Order, Page, Pass, Rendered, Wish, storable},
    ports::{
        answer::{Answer, BackgroundTask},
        fetch::{Request, Response},
    },
    proxy::OriginDirectives,
};

impl Visit {
    /// Asks the origin for everybody: the visitor waits, and whoever has the lease stores what came.
    pub(super) async fn render(self, wanted: Wanted, found: Found, question: Question) -> Answer {
        let app = self.app.clone();
        let Found { look: Look { entry: stored, lease, vary, .. }, session, .. } = found;
        let Question { why, popularity } = question;
        let until = self.now + app.config.origin.timeout;
        let rendering = lease.as_ref().map(|_| app.pages.render(wanted.page.hash(), until));
        let order = Order {
            page: &wanted.page,
            selecting: &wanted.selecting,
            sent: popularity.is_ok().then_some(vary),
            stored: stored.as_deref(),
            popularity,
            stamp: lease.as_ref().map_or(0, Lease::stamp),
            validated: wanted.wish.is_validated(),
            behind: false,
            compressed: popularity.is_err() && stored.is_none() && takes_gzip(wanted.request.headers()),
        };
        let compressed = order.compressed;
        let (rendered, now) = (page_cache::render(&app, &order).await, app.clock.now());
        let has_failed = match &rendered {
            Ok(Rendered::Other { response, .. } | Rendered::Slow { response, .. }) => {
                response.status().is_server_error()
            }
            Ok(Rendered::Page { entry, .. }) => entry.status.is_server_error(),
            Err(_) => true,
        };
        let give_back = |page, lease: Option<Lease>| lease.map(|lease| self.give_back(page, lease));
        if has_failed {
            app.pages.note_failure(wanted.page.hash(), now);
            if let Some(entry) = stored.filter(|entry| wanted.wish.stands_in(entry, rendered.is_err(), now)) {
                let status = CacheStatus::stand_in(&entry, now, "origin-down");
                let mut answer = self.answer_from(&entry, status, &wanted.request, now);
                answer.background.extend(give_back(wanted.page, lease));
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
                answer.background.extend(lease.map(|lease| -> BackgroundTask {
                    Box::pin(async move {
                        store(&app, &wanted.page, &lease, *entry).await;
                        drop(rendering);
                    })
                }));
                answer
            }
            Ok(Rendered::Slow { mut response, growing }) => {
                let status = match &lease {
                    Some(_) => CacheStatus::stored(why, None),
                    None => CacheStatus::not_stored(why, "in-render"),
                };
                status.append_to(&mut response);
                self.note_seen(wanted.request.method(), response.status());
                let later = lease.map(|lease| -> BackgroundTask {
                    Box::pin(async move {
                        match growing.whole().await {
                            Some(entry) => store(&app, &wanted.page, &lease, entry).await,
                            None => log_failure(page_cache::give_back(&app.redis, &wanted.page, &lease).await),
                        }
                        drop(rendering);
                    })
                });
                Answer { response: *response, background: later.into_iter().collect() }
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
                answer.background.extend(ended);
                answer
            }
            Err(error) => {
                let mut response = failure(error, wanted.request.headers());
                CacheStatus::not_stored(why, "origin-down").append_to(&mut response);
                Answer { response, background: give_back(wanted.page, lease).into_iter().collect() }
            }
        }
    }

    /// Asks as the visitor's own. An answer that says that it is for everybody is asked for again behind it, for everybody.
    pub(super) async fn own(self, wanted: Wanted, found: Found, question: Question) -> Answer {
        let (app, now) = (self.app.clone(), self.now);
        let Found { look, session, .. } = found;
        let popularity = question.popularity.and(Err("spelling"));
        let is_get = wanted.request.method() == Method::GET;
        let mut claim = Err("status");
        let judge = |response: &Response, says: &OriginDirectives| {
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
        let Wanted { page, wish, selecting, is_own, request } = wanted;
        let mut answer = self.proxy_judged(judge, session.into(), request).await;
        let failed = answer.response.status().is_server_error();
        match claim {
            Ok(()) if is_get && page.is_exact() && !failed => answer.background.extend(look.lease.map(|lease| {
                let wanted = Wanted { page, wish, selecting, is_own, request: Request::default() };
                self.render_again(wanted, lease, None, question.popularity)
            })),
            Err(reason) if !failed => {
                if is_lasting(reason) {
                    app.pages.note_unstorable(&own_note(page.hash()), reason, now);
                } else if reason == UNPOPULAR && !is_own {
                    app.pages.note_unstorable(&silent_note(page.hash()), reason, now);
                }
                answer.background.extend(look.lease.map(|lease| self.give_back(page, lease)));
            }
            _ => answer.background.extend(look.lease.map(|lease| self.give_back(page, lease))),
        }
        answer
    }

    /// Renders a page behind an answer. What can not be stored leaves the stale page in place, and the lease: the next try comes
    /// when that has run out, so a failing origin is not asked at every visit.
    pub(super) fn render_again(
        &self,
        wanted: Wanted,
        lease: Lease,
        stored: Option<Rc<Entry>>,
        popularity: storable::Popularity,
    ) -> BackgroundTask {
        let app = self.app.clone();
        Box::pin(async move {
            let Wanted { page, selecting, .. } = &wanted;
            let _rendering = app.pages.render(page.hash(), app.clock.now() + app.config.origin.timeout);
            let vary = stored.as_ref().map(|entry| entry.vary.clone()).unwrap_or_default();
            let order = Order {
                page,
                selecting,
                sent: popularity.is_ok().then_some(vary),
                stored: stored.as_deref(),
                popularity,
                stamp: lease.stamp(),
                validated: false,
                behind: true,
                compressed: false,
            };
            match page_cache::render(&app, &order).await {
                Ok(Rendered::Page { entry, .. }) if stored.is_none() || !entry.status.is_server_error() => {
                    store(&app, page, &lease, *entry).await;
                }
                Ok(Rendered::Page { entry, .. }) => {
                    log::warn!("page cache: not rendered again: status {}", entry.status);
                }
                Ok(Rendered::Slow { .. }) => log::warn!("page cache: not rendered again: too slow"),
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

    pub(super) fn give_back(&self, page: Page, lease: Lease) -> BackgroundTask {
        let app = self.app.clone();
        Box::pin(async move { log_failure(page_cache::give_back(&app.redis, &page, &lease).await) })
    }

    /// Remembers that what the origin said to nobody in particular can not be stored. Those who wait for it are told by the lease.
    fn note_unstorable(&self, page: Page, lease: Option<Lease>, reason: &'static str) -> Option<BackgroundTask> {
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

/// Stores what was rendered, and keeps a copy where that went well: a page that was purged meanwhile is nowhere then.
async fn store(app: &App, page: &Page, lease: &Lease, entry: Entry) {
    let now = app.clock.now();
    let asked = app.pages.asked(now);
    match page_cache::store(&app.redis, page, lease, &entry, now, app.config.page.total_bytes).await {
        Ok(true) => app.pages.keep(page.hash(), Rc::new(entry), asked),
        Ok(false) => {}
        Err(error) => log::warn!("behind an answer: {error}"),
    }
}

/// Under which the answer to somebody is remembered: others may get a page there that can be stored.
pub(super) fn own_note(hash: &str) -> String {
    format!("{hash}~")
}

/// Under which it is remembered that an answer said nothing of freshness.
pub(super) fn silent_note(hash: &str) -> String {
    format!("{hash}?")
}

/// Whether an answer that could not be stored says that of the next one too: an item may become popular with one view, and which headers
/// came is the request's doing.
fn is_lasting(reason: &str) -> bool {
    !matches!(reason, UNPOPULAR | "vary" | "spelling")
}
