//! The facts that decide the step after a lookup.

use http::{Method, header};

use super::{PageRequest, found::Found, wait::RenderWait};
use crate::{
    page_cache::{
        admission::popularity_of_page,
        decide::{Eligibility, StepFacts},
        lookup::LookupResult,
        policy::{
            Reuse, VaryFields,
            freshness::{Popularity, is_never_fresh},
        },
        selecting::RequestClass,
        stored_page::StoredPage,
    },
    ports::time::Timestamp,
    sessions::Session,
};

impl PageRequest {
    /// The facts for [`next_step`](crate::page_cache::decide::next_step).
    pub(super) fn facts(&self, found: &Found, wait: &RenderWait, now: Timestamp) -> StepFacts {
        let (app, lookup, hash) = (&self.visit.app, &found.lookup, self.key.hash());
        let allowed = lookup.page.as_ref().filter(|page| page.may_be_served_to(&self.cookies));
        let stored = allowed.map(|page| page.state(now));
        // The page varies on a header of this request that a shared render does not send.
        let varies_on_withheld = !lookup.vary.is_empty() && self.selecting.variant(&lookup.vary).is_none();
        let asks_less = *self.request.method() != Method::GET || self.request.headers().contains_key(header::RANGE);
        // Requests that reload a page at the same time share one render (RFC 9111 §4: collapsed requests).
        let is_of_wait = |page: &StoredPage| wait.first_render.is_some_and(|first| first != page.render_number());
        let is_rendered_anew = allowed.is_some_and(|page| is_of_wait(page) && page.is_fresh(now));
        let reuse = |stored| if is_rendered_anew { Reuse::Fresh } else { self.directives.reuse(stored) };
        let reuse = stored.as_ref().map(reuse);
        let asks_origin = matches!(reuse, None | Some(Reuse::Forward(_)));
        let is_noted = || app.pages.is_unstorable_for(&self.class(&lookup.vary), now);
        // A new shared render would be withheld from this visitor, too.
        let is_withheld = allowed.is_none() && (lookup.page.is_some() || self.cookies.identify() || varies_on_withheld);
        let eligibility = if is_withheld || asks_origin && is_noted() {
            Eligibility::NoPage
        } else if self.may_identify(found.session.as_ref()) || asks_less || app.pages.is_unpopular(hash, self.visit.now)
        {
            Eligibility::SharedPages
        } else {
            Eligibility::AnyPage
        };
        StepFacts {
            stored: reuse,
            has_variants: !lookup.vary.is_empty(),
            state: lookup.state,
            has_lease: lookup.lease.is_some(),
            is_near: found.is_near,
            popularity: self.popularity(lookup),
            is_exact: self.key.is_exact(),
            eligibility,
            only_if_cached: self.directives.only_if_cached(),
            is_reload: self.directives.is_reload(),
            failed_meanwhile: app.pages.has_failed_since(hash, self.visit.now, now),
            is_never_fresh: asks_origin
                && allowed.is_some_and(|page| is_never_fresh(&page.headers, self.key.is_at_shared_path())),
            may_replace_error: app.pages.has_failed(hash, now)
                && stored.is_some_and(|stored| self.directives.allows_on_error(&stored, false)),
            wait: wait.waited,
        }
    }

    /// Returns whether the request may identify its visitor: by its headers, or by the user of its session.
    pub(super) fn may_identify(&self, session: Option<&Session>) -> bool {
        self.has_personal_headers || session.is_some_and(|session| session.user.is_some())
    }

    /// The class of this request. `vary`: as in the lookup.
    pub(super) fn class(&self, vary: &VaryFields) -> RequestClass {
        RequestClass::of(self.key.hash(), &self.selecting, vary, self.has_personal_headers)
    }

    pub(super) fn popularity(&self, lookup: &LookupResult) -> Popularity {
        popularity_of_page(&self.visit.app.config.page, &self.key, lookup.rank)
    }
}
