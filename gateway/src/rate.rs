//! A limit of commands per second, like the limit of a plan. A request over the limit is refused as a whole.

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// The limit of a gateway. Without one, every request is allowed.
#[derive(Debug, Default)]
pub(crate) struct CommandLimit(Mutex<Option<Bucket>>);

/// A token bucket with one token for each command.
#[derive(Debug)]
struct Bucket {
    /// Commands of one second, which may arrive at once.
    capacity: f64,
    tokens: f64,
    /// The moment of the last refill. None: the bucket is refilled by [`CommandLimit::set_budget`] only.
    refilled: Option<Instant>,
}

impl CommandLimit {
    /// Allows `limit` commands per second.
    pub(crate) fn per_second(limit: Option<u32>, now: Instant) -> Self {
        Self(Mutex::new(limit.map(|limit| Bucket::full(limit, Some(now)))))
    }

    /// Allows `budget` commands until the next call.
    pub(crate) fn set_budget(&self, budget: Option<u32>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = budget.map(|budget| Bucket::full(budget, None));
    }

    /// Returns whether a request with `commands` commands is allowed, and counts it if so.
    pub(crate) fn allows(&self, commands: usize, now: Instant) -> bool {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.as_mut().is_none_or(|bucket| bucket.take(commands, now))
    }
}

impl Bucket {
    fn full(capacity: u32, refilled: Option<Instant>) -> Self {
        Self { capacity: capacity.into(), tokens: capacity.into(), refilled }
    }

    fn take(&mut self, commands: usize, now: Instant) -> bool {
        if let Some(refilled) = &mut self.refilled {
            let seconds = now.saturating_duration_since(std::mem::replace(refilled, now)).as_secs_f64();
            self.tokens = (self.tokens + seconds * self.capacity).min(self.capacity);
        }
        let commands = u32::try_from(commands).map_or(f64::MAX, f64::from);
        // A request with more commands than the limit needs a full bucket, and owes the rest.
        let is_allowed = self.tokens >= commands.min(self.capacity);
        if is_allowed {
            self.tokens -= commands;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_limit_allows_a_second_at_once_and_refills_with_time() {
        let start = Instant::now();
        let limit = CommandLimit::per_second(Some(10), start);
        let after = |millis, commands| limit.allows(commands, start + Duration::from_millis(millis));
        let allowed =
            [(0, 6), (0, 5), (0, 4), (0, 1), (300, 4), (300, 3), (1_299, 25), (1_300, 25), (2_700, 1), (2_900, 1)]
                .map(|(millis, commands)| after(millis, commands));
        assert_eq!(allowed, [true, false, true, false, false, true, false, true, false, true]);
    }

    #[test]
    fn a_budget_lasts_until_it_is_set_again() {
        let limit = CommandLimit::default();
        let allows = |commands| limit.allows(commands, Instant::now() + Duration::from_hours(1));
        assert!(allows(1_000_000));
        limit.set_budget(Some(3));
        assert_eq!([allows(2), allows(2), allows(1), allows(1)], [true, false, true, false]);
        limit.set_budget(Some(3));
        assert!(allows(3) && !allows(1));
        limit.set_budget(None);
        assert!(allows(1_000_000));
    }
}
