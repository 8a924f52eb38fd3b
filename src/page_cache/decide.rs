//! The cache's decisions as pure functions. [`execute`](super::execute) gathers the facts and runs the steps; the tests
//! below read as the cache's specification.

use std::time::Duration;

use super::{
    lookup::PageState,
    policy::{ForwardReason, Reason, Reuse, freshness::Popularity},
};

/// The first step, decided without Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstStep {
    /// Serve the isolate's copy.
    ServeLocal,
    /// Forward the visitor's own request.
    Bypass(Reason),
    /// Redis is down: serve a fallback copy or forward the request.
    WithoutRedis,
    LookUp,
}

/// Decides the first step. `local`: the permitted use of the isolate's copy. `bypass_reason`: the reason to skip
/// the lookup, such as a hit-for-miss note. It is evaluated only if it matters.
pub fn first_step(
    local: Option<Reuse>,
    only_if_cached: bool,
    bypass_reason: impl FnOnce() -> Option<Reason>,
    circuit_is_open: bool,
) -> FirstStep {
    if local == Some(Reuse::Fresh) {
        return FirstStep::ServeLocal;
    }
    if !only_if_cached && let Some(reason) = bypass_reason() {
        return FirstStep::Bypass(reason);
    }
    if circuit_is_open { FirstStep::WithoutRedis } else { FirstStep::LookUp }
}

/// The facts that decide the step after a lookup.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each with its own source")]
pub struct StepFacts {
    /// The permitted use of the stored page for this request; None if none is stored for it.
    pub stored: Option<Reuse>,
    /// Other variants of the URL are stored.
    pub has_variants: bool,
    pub state: PageState,
    /// This request got the lease to render the page.
    pub has_lease: bool,
    /// The reply came from a read region, which grants no lease.
    pub is_near: bool,
    /// `Ok` if the item's popularity admits a response without stated freshness.
    pub popularity: Popularity,
    /// The URL is canonical.
    pub is_exact: bool,
    pub eligibility: Eligibility,
    pub only_if_cached: bool,
    /// The request is a reload: it accepts no stored page, and requests the lease even of a fresh one.
    pub is_reload: bool,
    /// The origin failed to render this page since this request arrived.
    pub failed_meanwhile: bool,
    /// Each request for the stored page must validate it.
    pub is_never_fresh: bool,
    /// The origin failed recently, and the stored page may replace its response.
    pub may_replace_error: bool,
    /// The wait for the render of another request. None before the first wait.
    pub wait: Option<Waited>,
}

/// The pages that a request may get from a shared render.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eligibility {
    /// Any page.
    AnyPage,
    /// Pages that are known to be shared: stored before, or popular. There are two reasons:
    /// - The request is not plain: it has cookies, a user or uncommon headers, or asks for a part of the page (HEAD, `Range`).
    /// - A response stated no freshness a moment ago, and the item was not popular.
    SharedPages,
    /// No page, for one of three reasons:
    /// - A cookie may identify the visitor, and the origin did not declare the page shared.
    /// - The page varies on a header of this request that shared renders do not send.
    /// - A render for a request like this one could not be stored a moment ago.
    NoPage,
}

/// A wait for the render of another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    pub reason: ForwardReason,
    /// `PAGE_WAIT_MS` has passed.
    pub is_over: bool,
    /// The isolate learned during the wait that requests for the page bypass the cache, for this reason.
    pub bypass: Option<Reason>,
}

/// The first pause between two lookups of a request that waits for a render.
pub const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The pause after a lookup that followed `pause`.
#[must_use]
pub fn next_pause(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}

/// The step after a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Serve the stored page. `collapsed`: the reason of the miss, if this request waited for another one's render (single
    /// flight).
    Serve { collapsed: Option<ForwardReason> },
    /// Serve the stored page in place of a failing origin.
    ServeOnError,
    /// 504: `only-if-cached` (RFC 9111 §5.2.1.7).
    GatewayTimeout(ForwardReason),
    /// Forward the visitor's own request.
    Bypass(Reason),
    /// Forward the visitor's own request; if its response is shareable, the page is rendered for all visitors
    /// afterwards.
    RenderPersonal(ForwardReason),
    /// Render the page for all visitors.
    RenderShared(ForwardReason),
    /// Wait for the request that holds the lease.
    Wait(ForwardReason),
    /// Look the page up once more, where the lease is granted.
    AskPrimary,
}

/// Decides the step after a lookup.
#[must_use]
pub fn next_step(facts: &StepFacts) -> Step {
    let bypass = match facts.state {
        PageState::Unknown | PageState::Shared => None,
        PageState::Unstorable(reason) => Some(reason),
        PageState::Outdated => Some(Reason::Invalidated),
    };
    if let Some(reason) = bypass {
        return if facts.only_if_cached { Step::GatewayTimeout(ForwardReason::UriMiss) } else { Step::Bypass(reason) };
    }
    if let Some(reason) = facts.wait.and_then(|wait| wait.bypass) {
        return Step::Bypass(reason);
    }
    let reason = match facts.stored {
        Some(Reuse::Fresh) => return Step::Serve { collapsed: facts.wait.map(|wait| wait.reason) },
        Some(Reuse::Stale) if facts.is_near => return Step::AskPrimary,
        Some(Reuse::Stale) => return Step::Serve { collapsed: None },
        Some(Reuse::Forward(reason)) => reason,
        None if facts.has_variants => ForwardReason::VaryMiss,
        None => ForwardReason::UriMiss,
    };
    if facts.only_if_cached {
        return Step::GatewayTimeout(reason);
    }
    if facts.may_replace_error {
        return Step::ServeOnError;
    }
    if facts.is_near && facts.is_exact && facts.eligibility != Eligibility::NoPage {
        return Step::AskPrimary;
    }
    let is_known_shared = facts.stored.is_some() || facts.state == PageState::Shared || facts.popularity.is_ok();
    let is_eligible = match facts.eligibility {
        Eligibility::AnyPage => true,
        Eligibility::SharedPages => is_known_shared,
        Eligibility::NoPage => false,
    };
    if !facts.is_exact || !is_eligible {
        return Step::RenderPersonal(reason);
    }
    // The render that this request waited for failed. Without the lease, another one could not be stored.
    if facts.failed_meanwhile && !facts.has_lease && facts.stored.is_none() {
        return Step::Bypass(Reason::OriginDown);
    }
    // Only this request's `max-age` or `min-fresh` refuses the page, so it does not wait for another render.
    let is_alone = reason == ForwardReason::Request && !facts.is_reload;
    // A request does not wait again after a failed render. The render of a page that is never fresh helps only its own request.
    let cannot_help = facts.failed_meanwhile || facts.is_never_fresh && !facts.is_reload;
    let stops_waiting = is_alone || cannot_help || facts.wait.is_some_and(|wait| wait.is_over);
    if facts.has_lease || stops_waiting { Step::RenderShared(reason) } else { Step::Wait(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_needs_no_redis() {
        let (fresh, stale, unstorable) = (Some(Reuse::Fresh), Some(Reuse::Stale), Some(Reason::Private));
        for (local, only_if_cached, hit_for_miss, circuit_is_open, expected) in [
            (fresh, false, None, false, FirstStep::ServeLocal),
            (fresh, false, None, true, FirstStep::ServeLocal),
            (stale, false, None, false, FirstStep::LookUp),
            (stale, false, None, true, FirstStep::WithoutRedis),
            (None, false, unstorable, false, FirstStep::Bypass(Reason::Private)),
            (None, false, unstorable, true, FirstStep::Bypass(Reason::Private)),
            (None, true, unstorable, false, FirstStep::LookUp),
            (None, false, None, false, FirstStep::LookUp),
            (None, false, None, true, FirstStep::WithoutRedis),
        ] {
            let step = first_step(local, only_if_cached, || hit_for_miss, circuit_is_open);
            assert_eq!(step, expected, "{local:?} {only_if_cached} {hit_for_miss:?} {circuit_is_open}");
        }
    }

    /// A GET without cookies for a popular page that is not stored, whose lease another request holds.
    const MISS: StepFacts = StepFacts {
        stored: None,
        has_variants: false,
        state: PageState::Unknown,
        has_lease: false,
        is_near: false,
        popularity: Ok(()),
        is_exact: true,
        eligibility: Eligibility::AnyPage,
        only_if_cached: false,
        is_reload: false,
        failed_meanwhile: false,
        is_never_fresh: false,
        may_replace_error: false,
        wait: None,
    };
    const UNPOPULAR: StepFacts = StepFacts { popularity: Err(Reason::Unpopular), ..MISS };
    const STALE: StepFacts = StepFacts { stored: Some(Reuse::Forward(ForwardReason::Stale)), ..MISS };
    const TOO_OLD: StepFacts = StepFacts { stored: Some(Reuse::Forward(ForwardReason::Request)), ..MISS };
    const NO_CACHE: StepFacts = StepFacts { is_reload: true, ..TOO_OLD };
    const WAITED: Waited = Waited { reason: ForwardReason::Stale, is_over: false, bypass: None };

    #[test]
    fn a_stored_page_answers_if_its_age_and_the_request_allow_it() {
        let with = |stored| StepFacts { stored: Some(stored), ..MISS };
        for (name, facts, expected) in [
            ("fresh", with(Reuse::Fresh), Step::Serve { collapsed: None }),
            ("stale while revalidate", with(Reuse::Stale), Step::Serve { collapsed: None }),
            (
                "fresh, personal request",
                StepFacts { eligibility: Eligibility::SharedPages, ..with(Reuse::Fresh) },
                Step::Serve { collapsed: None },
            ),
            (
                "fresh, another spelling",
                StepFacts { is_exact: false, ..with(Reuse::Fresh) },
                Step::Serve { collapsed: None },
            ),
            (
                "stale, only if cached",
                StepFacts { only_if_cached: true, ..STALE },
                Step::GatewayTimeout(ForwardReason::Stale),
            ),
            (
                "missing, only if cached",
                StepFacts { only_if_cached: true, ..MISS },
                Step::GatewayTimeout(ForwardReason::UriMiss),
            ),
            ("stale, origin fails", StepFacts { may_replace_error: true, ..STALE }, Step::ServeOnError),
        ] {
            assert_eq!(next_step(&facts), expected, "{name}");
        }
    }

    #[test]
    fn the_lease_holder_renders_for_everybody_and_the_others_wait() {
        let with_lease = |facts: StepFacts| StepFacts { has_lease: true, ..facts };
        for (name, facts, expected) in [
            ("miss, lease", with_lease(MISS), Step::RenderShared(ForwardReason::UriMiss)),
            ("miss", MISS, Step::Wait(ForwardReason::UriMiss)),
            ("other variants", StepFacts { has_variants: true, ..MISS }, Step::Wait(ForwardReason::VaryMiss)),
            ("stale, lease", with_lease(STALE), Step::RenderShared(ForwardReason::Stale)),
            ("stale", STALE, Step::Wait(ForwardReason::Stale)),
            ("no-cache, lease", with_lease(NO_CACHE), Step::RenderShared(ForwardReason::Request)),
            ("no-cache", NO_CACHE, Step::Wait(ForwardReason::Request)),
            ("fresh and too old for the request", TOO_OLD, Step::RenderShared(ForwardReason::Request)),
            ("unpopular, plain request", with_lease(UNPOPULAR), Step::RenderShared(ForwardReason::UriMiss)),
            (
                "the render failed meanwhile",
                StepFacts { failed_meanwhile: true, ..MISS },
                Step::Bypass(Reason::OriginDown),
            ),
            (
                "the render failed meanwhile, lease",
                with_lease(StepFacts { failed_meanwhile: true, ..MISS }),
                Step::RenderShared(ForwardReason::UriMiss),
            ),
            (
                "the render failed meanwhile, stale page",
                StepFacts { failed_meanwhile: true, ..STALE },
                Step::RenderShared(ForwardReason::Stale),
            ),
            ("never fresh", StepFacts { is_never_fresh: true, ..STALE }, Step::RenderShared(ForwardReason::Stale)),
            (
                "never fresh, reload",
                StepFacts { is_never_fresh: true, is_reload: true, ..STALE },
                Step::Wait(ForwardReason::Stale),
            ),
        ] {
            assert_eq!(next_step(&facts), expected, "{name}");
        }
    }

    #[test]
    fn a_personal_request_gets_a_shared_page_only_if_the_page_is_known_to_be_shared() {
        let personal = |facts: StepFacts| StepFacts { eligibility: Eligibility::SharedPages, has_lease: true, ..facts };
        for (name, facts, expected) in [
            ("unknown, unpopular", personal(UNPOPULAR), Step::RenderPersonal(ForwardReason::UriMiss)),
            ("popular", personal(MISS), Step::RenderShared(ForwardReason::UriMiss)),
            (
                "stored before",
                StepFacts { state: PageState::Shared, ..personal(UNPOPULAR) },
                Step::RenderShared(ForwardReason::UriMiss),
            ),
            ("stored and stale", personal(STALE), Step::RenderShared(ForwardReason::Stale)),
            ("another spelling", StepFacts { is_exact: false, ..MISS }, Step::RenderPersonal(ForwardReason::UriMiss)),
        ] {
            assert_eq!(next_step(&facts), expected, "{name}");
        }
    }

    #[test]
    fn a_visitor_whom_a_cookie_may_identify_gets_no_shared_page() {
        let identified = |facts: StepFacts| StepFacts { eligibility: Eligibility::NoPage, has_lease: true, ..facts };
        for (name, facts, expected) in [
            ("popular", identified(MISS), Step::RenderPersonal(ForwardReason::UriMiss)),
            (
                "stored before",
                StepFacts { state: PageState::Shared, ..identified(MISS) },
                Step::RenderPersonal(ForwardReason::UriMiss),
            ),
            (
                "another request renders it",
                StepFacts { has_lease: false, ..identified(MISS) },
                Step::RenderPersonal(ForwardReason::UriMiss),
            ),
            (
                "only if cached",
                StepFacts { only_if_cached: true, ..identified(MISS) },
                Step::GatewayTimeout(ForwardReason::UriMiss),
            ),
        ] {
            assert_eq!(next_step(&facts), expected, "{name}");
        }
    }

    #[test]
    fn a_reply_of_a_read_region_answers_all_that_needs_no_lease() {
        let near = |facts: StepFacts| StepFacts { is_near: true, ..facts };
        for (name, facts, expected) in [
            ("miss", MISS, Step::AskPrimary),
            ("unpopular", UNPOPULAR, Step::AskPrimary),
            ("stale", STALE, Step::AskPrimary),
            ("may be served stale", StepFacts { stored: Some(Reuse::Stale), ..MISS }, Step::AskPrimary),
            ("no-cache", NO_CACHE, Step::AskPrimary),
            ("fresh", StepFacts { stored: Some(Reuse::Fresh), ..MISS }, Step::Serve { collapsed: None }),
            ("failing origin", StepFacts { may_replace_error: true, ..STALE }, Step::ServeOnError),
            (
                "only if cached",
                StepFacts { only_if_cached: true, ..MISS },
                Step::GatewayTimeout(ForwardReason::UriMiss),
            ),
            (
                "hit for miss",
                StepFacts { state: PageState::Unstorable(Reason::Private), ..MISS },
                Step::Bypass(Reason::Private),
            ),
            (
                "hit for miss, only if cached",
                StepFacts { state: PageState::Unstorable(Reason::Private), only_if_cached: true, ..MISS },
                Step::GatewayTimeout(ForwardReason::UriMiss),
            ),
            ("outdated", StepFacts { state: PageState::Outdated, ..MISS }, Step::Bypass(Reason::Invalidated)),
        ] {
            assert_eq!(next_step(&near(facts)), expected, "{name}");
        }
    }

    #[test]
    fn a_wait_ends_with_the_page_or_a_note_or_its_time() {
        let waited = |facts: StepFacts, wait| StepFacts { wait: Some(wait), ..facts };
        let fresh = StepFacts { stored: Some(Reuse::Fresh), ..MISS };
        for (name, facts, expected) in [
            ("stored meanwhile", waited(fresh, WAITED), Step::Serve { collapsed: Some(ForwardReason::Stale) }),
            ("not yet", waited(MISS, WAITED), Step::Wait(ForwardReason::UriMiss)),
            (
                "time is over",
                waited(MISS, Waited { is_over: true, ..WAITED }),
                Step::RenderShared(ForwardReason::UriMiss),
            ),
            (
                "cannot be stored",
                waited(MISS, Waited { bypass: Some(Reason::SetCookie), ..WAITED }),
                Step::Bypass(Reason::SetCookie),
            ),
            (
                "noted in Redis",
                StepFacts { state: PageState::Unstorable(Reason::Private), ..MISS },
                Step::Bypass(Reason::Private),
            ),
        ] {
            assert_eq!(next_step(&facts), expected, "{name}");
        }
    }
}
