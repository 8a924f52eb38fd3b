//! The platform's rate limits, configured by `[[ratelimits]]` in `wrangler.toml`. Each location counts for itself,
//! approximately.
//!
//! Without limits, or if they fail, every request is allowed: the shop stays open. `GET /readyz` reports whether limits
//! are set.

use std::{cell::RefCell, fmt::Display, rc::Rc, time::Duration};

use futures_util::future::LocalBoxFuture;

use crate::ports::{error::Error, network::ClientNetwork, recent::RecentSet, time::Timestamp};

pub trait RateLimiter {
    /// Counts one event of `key`. False if the limit for [`PERIOD`] is exceeded.
    fn count(&self, key: String) -> LocalBoxFuture<'_, bool>;
}

/// The period of all limits.
pub const PERIOD: Duration = Duration::from_mins(1);
/// Largest number of barred networks in each of two generations.
const MAX_BARRED: usize = 10_000;

/// The limits of edgefront.
pub struct RateLimits {
    /// `LOGIN_LIMIT`: unsafe requests to `LOGIN_ROUTES` and wrong service keys, per network. Demo shop: sign-ins, per
    /// account.
    pub logins: RateLimit,
    /// `WRITE_LIMIT`: unsafe API calls, per route and network, and cart changes by the origin, per network.
    pub writes: RateLimit,
    /// `VIEW_LIMIT`: views of visitors who are not signed in, per item and network.
    pub views: RateLimit,
    barred: RefCell<RecentSet>,
}

/// One limit; unlimited by default.
#[derive(Clone, Default)]
pub struct RateLimit(Option<Rc<dyn RateLimiter>>);

impl RateLimit {
    #[must_use]
    pub const fn new(counter: Option<Rc<dyn RateLimiter>>) -> Self {
        Self(counter)
    }

    /// Counts one `action` of `subject`. An unknown subject is not limited.
    ///
    /// # Errors
    /// [`Error::TooOften`].
    pub async fn check(&self, action: &str, subject: Option<impl Display>) -> Result<(), Error> {
        let (Some(counter), Some(subject)) = (&self.0, subject) else { return Ok(()) };
        if counter.count(format!("{action} {subject}")).await { Ok(()) } else { Err(Error::TooOften) }
    }
}

impl RateLimits {
    #[must_use]
    pub fn new(logins: RateLimit, writes: RateLimit, views: RateLimit) -> Self {
        Self { logins, writes, views, barred: RefCell::new(RecentSet::new(PERIOD, MAX_BARRED)) }
    }

    /// Returns whether the platform has all limits.
    #[must_use]
    pub const fn are_set(&self) -> bool {
        self.logins.0.is_some() && self.writes.0.is_some() && self.views.0.is_some()
    }

    /// Counts a wrong service key. Too many bar the network for a period, even with the right key: otherwise the status
    /// would reveal whether a guess was right.
    ///
    /// # Errors
    /// [`Error::TooOften`].
    pub async fn check_guess(&self, network: Option<ClientNetwork>, now: Timestamp) -> Result<(), Error> {
        let checked = self.logins.check("service", network).await;
        if checked.is_err() {
            self.barred.borrow_mut().insert(&network, now);
        }
        checked
    }

    /// Refuses a barred network.
    ///
    /// # Errors
    /// [`Error::TooOften`].
    pub fn check_barred(&self, network: Option<ClientNetwork>, now: Timestamp) -> Result<(), Error> {
        if self.barred.borrow().contains(&network, now) { Err(Error::TooOften) } else { Ok(()) }
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self::new(RateLimit::default(), RateLimit::default(), RateLimit::default())
    }
}
