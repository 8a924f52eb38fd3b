//! Moments and the clock. The standard library's clocks panic on wasm, so `now` is an argument, and only `edge` reads a
//! clock.

use std::{
    fmt,
    ops::{Add, Sub},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::{
    FutureExt,
    future::{Either, LocalBoxFuture, abortable, select},
};

/// A moment, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl From<Timestamp> for SystemTime {
    fn from(moment: Timestamp) -> Self {
        UNIX_EPOCH + Duration::from_millis(moment.0)
    }
}

impl Timestamp {
    /// A moment from milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// A moment from a Redis score: Unix seconds with a fraction. A score before the epoch counts as the epoch.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, as documented")]
    pub fn from_score(seconds: f64) -> Self {
        Self((seconds * 1000.0).round() as u64)
    }

    /// Unix seconds with a fraction; exact to the millisecond for 285,000 years.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "exact, as documented")]
    pub const fn as_score(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the Unix epoch.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// Time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns whether less than `duration` has passed since `earlier`. If `earlier` is later, the clock was set back
    /// and the time that passed is unknown: then false.
    #[must_use]
    pub fn is_within(self, duration: Duration, earlier: Self) -> bool {
        earlier <= self && self.since(earlier) < duration
    }

    /// Returns whether less than `duration` lies between the two moments, in any order. Requests may run in another
    /// order than they arrived, so a later `other` does not mean that the clock was set back.
    #[must_use]
    pub fn is_near(self, duration: Duration, other: Self) -> bool {
        self.since(other) < duration && other.since(self) < duration
    }
}

/// The form of a Redis score: Unix seconds with three decimals.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }
}

/// Saturates at the epoch.
impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis(duration)))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The platform's clock and timer.
pub trait Clock {
    /// The current moment. In a Worker it stands still between I/O.
    fn now(&self) -> Timestamp;
    /// Resolves after `duration`.
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()>;

    /// Yields to the event loop: resolves when all events that arrived before have started, even if the waiting request
    /// is cancelled.
    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        self.sleep(Duration::ZERO)
    }

    /// A sleep that another request may end early. The sleeper resumes in its own request context.
    fn alarm(&self, duration: Duration) -> (Alarm, Wake) {
        let (alarm, handle) = abortable(self.sleep(duration));
        (Box::pin(alarm.map(drop)), Box::new(move || handle.abort()))
    }
}

/// A sleep that its [`Wake`] may end.
pub type Alarm = LocalBoxFuture<'static, ()>;
/// Ends an [`Alarm`] early.
pub type Wake = Box<dyn FnOnce()>;

/// Waits for `future`, at most for `duration`. None if the future is late; it is dropped then.
pub fn within<F: Future + Unpin>(
    clock: &dyn Clock,
    duration: Duration,
    future: F,
) -> impl Future<Output = Option<F::Output>> + use<F> {
    select(future, clock.sleep(duration)).map(|first| match first {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_a_score_and_read_back() {
        let moment = Timestamp::from_millis(1_732_203_263_007);
        assert_eq!(moment.to_string(), "1732203263.007");
        assert_eq!(Timestamp::from_score(1_732_203_263.007), moment);
        assert_eq!(Timestamp::from_score(-1.0), Timestamp::from_millis(0));
    }

    #[test]
    fn a_moment_of_a_clock_that_was_set_back_is_within_no_time() {
        let [earlier, now] = [5_000, 5_999].map(Timestamp::from_millis);
        let second = Duration::from_secs(1);
        assert!(now.is_within(second, earlier) && earlier.is_within(second, earlier));
        assert!(!(earlier + second).is_within(second, earlier) && !earlier.is_within(second, now));
    }

    #[test]
    fn moments_are_near_in_any_order() {
        let [earlier, now] = [5_000, 5_999].map(Timestamp::from_millis);
        let second = Duration::from_secs(1);
        assert!(now.is_near(second, earlier) && earlier.is_near(second, now));
        assert!(!(earlier + second).is_near(second, earlier) && !earlier.is_near(second, earlier + second));
    }
}
