//! How often somebody may try: the rate limits of the platform, which `[[ratelimits]]` in `wrangler.toml` sets. They count in each of its
//! locations apart, and about right.
//!
//! Where there are none, and where they fail, everything is allowed: the shop stays open. `GET /readyz` says which it is.

use std::{cell::RefCell, fmt::Display, rc::Rc, time::Duration};

use futures_util::future::LocalBoxFuture;

use crate::{
    ports::recent::RecentSet,
    ports::{error::Error, network::ClientNetwork, time::Timestamp},
};

/// A rate limit of the platform.
pub trait RateLimiter {
    /// Counts one more of `key`. False if there were too many within [`PERIOD`].
    fn count(&self, key: String) -> LocalBoxFuture<'_, bool>;
}

/// The period of all of them.
pub const PERIOD: Duration = Duration::from_mins(1);
/// Networks that are barred, in each of two generations.
const MOST_BARRED: usize = 10_000;

/// All of them.
pub struct RateLimits {
    /// `LOGIN_LIMIT`: unsafe requests to `LOGIN_ROUTES` and wrong service keys of a network; with the demo shop, sign-ins to an account.
    pub logins: RateLimit,
    /// `WRITE_LIMIT`: unsafe calls of the API, each route for itself, and changes of carts that the origin asks for; of a network.
    pub writes: RateLimit,
    /// `VIEW_LIMIT`: views of an item by a network, but for those of users.
    pub views: RateLimit,
    barred: RefCell<RecentSet>,
}

/// One of them; by default there is none.
#[derive(Clone, Default)]
pub struct RateLimit(Option<Rc<dyn RateLimiter>>);

impl RateLimit {
    #[must_use]
    pub const fn new(counter: Option<Rc<dyn RateLimiter>>) -> Self {
        Self(counter)
    }

    /// Counts that `who` does `what`; nobody known is not counted.
    ///
    /// # Errors
    /// [`Error::TooOften`].
    pub async fn check(&self, what: &str, who: Option<impl Display>) -> Result<(), Error> {
        let (Some(counter), Some(who)) = (&self.0, who) else { return Ok(()) };
        if counter.count(format!("{what} {who}")).await { Ok(()) } else { Err(Error::TooOften) }
    }
}

impl RateLimits {
    #[must_use]
    pub fn new(logins: RateLimit, writes: RateLimit, views: RateLimit) -> Self {
        Self { logins, writes, views, barred: RefCell::new(RecentSet::new(PERIOD, MOST_BARRED)) }
    }

    /// Whether the platform has them all.
    #[must_use]
    pub const fn are_set(&self) -> bool {
        self.logins.0.is_some() && self.writes.0.is_some() && self.views.0.is_some()
    }

    /// Counts a wrong service key. Whoever has sent too many is barred for a while, with the right one too: else a guess that is
    /// answered by 429 would still tell whether it was right.
    ///
    /// # Errors
    /// [`Error::TooOften`].
    pub async fn check_guess(&self, network: Option<ClientNetwork>, now: Timestamp) -> Result<(), Error> {
        let checked = self.logins.check("service", network).await;
        if checked.is_err() {
            self.barred.borrow_mut().note(&network, now);
        }
        checked
    }

    /// Refuses who is barred.
    ///
    /// # Errors
    /// [`Error::TooOften`].
    pub fn check_barred(&self, network: Option<ClientNetwork>, now: Timestamp) -> Result<(), Error> {
        if self.barred.borrow().has(&network, now) { Err(Error::TooOften) } else { Ok(()) }
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self::new(RateLimit::default(), RateLimit::default(), RateLimit::default())
    }
}
