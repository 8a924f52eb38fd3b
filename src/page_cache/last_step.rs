//! The last of the three decisions about a request for a page: the step after a shared render. [`decide`](super::decide) has
//! the first two.

use http::StatusCode;

use super::policy::{is_failure, is_refusal};

/// The outcome of a shared render, as far as the next step depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderFacts {
    /// A page that can be stored.
    Storable {
        status: StatusCode,
        /// The visitor may get the page.
        may_be_served: bool,
    },
    /// A response that cannot be stored.
    Unstorable {
        status: StatusCode,
        /// After a [refusal](is_refusal), the visitor's own request may follow.
        may_ask_for_visitor: bool,
        /// The visitor's own request may get another response.
        may_differ: bool,
    },
    /// A page whose ESI edgefront cannot process.
    RefusedEsi,
    /// No response: the origin is down, or there is no room for the page.
    NoResponse,
}

impl RenderFacts {
    /// Returns whether the stored page may replace this outcome (`stale-if-error`, RFC 5861 §4).
    #[must_use]
    pub fn has_failed(self) -> bool {
        match self {
            Self::Storable { status, .. } | Self::Unstorable { status, .. } => is_failure(status),
            Self::RefusedEsi | Self::NoResponse => true,
        }
    }
}

/// The step after a shared render: the visitor's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastStep {
    /// The stored page in place of the error.
    ServeOnError,
    /// The rendered page.
    Serve,
    /// The response to the visitor's own request. The response to the shared render is dropped, because its `Set-Cookie` would
    /// replace the visitor's session at the origin.
    Forward,
    /// `Forward`; its response shows whether the origin refuses only shared renders.
    ForwardAfterRefusal,
    /// The response to the shared render.
    PassOn,
    /// An error of edgefront: 502, 503 or 504.
    Fail,
}

/// Decides the step after a shared render. `may_replace_error`: the request and the stored page allow the stored page in place of
/// an error.
#[must_use]
pub fn last_step(facts: RenderFacts, may_replace_error: bool) -> LastStep {
    if facts.has_failed() && may_replace_error {
        return LastStep::ServeOnError;
    }
    match facts {
        RenderFacts::Storable { may_be_served: true, .. } => LastStep::Serve,
        // A cookie may identify the visitor, or ESI is refused: the visitor's own request does not announce ESI.
        RenderFacts::Storable { .. } | RenderFacts::RefusedEsi => LastStep::Forward,
        RenderFacts::Unstorable { status, may_ask_for_visitor: true, .. } if is_refusal(status) => {
            LastStep::ForwardAfterRefusal
        }
        RenderFacts::Unstorable { may_differ: true, .. } if !facts.has_failed() => LastStep::Forward,
        RenderFacts::Unstorable { .. } => LastStep::PassOn,
        RenderFacts::NoResponse => LastStep::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_follows_from_the_outcome_of_the_render() {
        let page = |status, may_be_served| RenderFacts::Storable { status, may_be_served };
        let response = |status, may_ask_for_visitor, may_differ| RenderFacts::Unstorable {
            status,
            may_ask_for_visitor,
            may_differ,
        };
        let (ok, forbidden, down) = (StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE);
        for (facts, with_stored_page, without) in [
            (page(ok, true), LastStep::Serve, LastStep::Serve),
            (page(ok, false), LastStep::Forward, LastStep::Forward),
            (page(down, true), LastStep::ServeOnError, LastStep::Serve),
            (page(down, false), LastStep::ServeOnError, LastStep::Forward),
            (response(ok, true, false), LastStep::PassOn, LastStep::PassOn),
            (response(ok, true, true), LastStep::Forward, LastStep::Forward),
            (response(forbidden, true, true), LastStep::ForwardAfterRefusal, LastStep::ForwardAfterRefusal),
            (response(forbidden, false, true), LastStep::Forward, LastStep::Forward),
            (response(down, true, true), LastStep::ServeOnError, LastStep::ForwardAfterRefusal),
            (response(down, false, true), LastStep::ServeOnError, LastStep::PassOn),
            (RenderFacts::RefusedEsi, LastStep::ServeOnError, LastStep::Forward),
            (RenderFacts::NoResponse, LastStep::ServeOnError, LastStep::Fail),
        ] {
            let steps = [true, false].map(|may_replace_error| last_step(facts, may_replace_error));
            assert_eq!(steps, [with_stored_page, without], "{facts:?}");
        }
    }
}
