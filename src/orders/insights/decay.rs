//! How counts fade: by whole half-lives, as in the ranking. Time is cut into half-lives that begin at multiples of their length;
//! what was counted in one weighs half in the next. So all counts of one half-life are exact multiples of each other, and a key
//! is brought to the present by one factor, whenever it is touched next.

use std::time::Duration;

use crate::ports::time::Timestamp;

/// Counts of a key say nothing any more after so many half-lives in which nothing was added: 2⁻¹⁰ of what they were.
pub const LIFETIME: i32 = 10;

/// The present half-life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfLife {
    /// The Unix second in which it began.
    pub began: u64,
    /// Its length in seconds.
    pub length: u64,
}

impl HalfLife {
    /// The one that `now` is in.
    #[must_use]
    pub fn of(now: Timestamp, length: Duration) -> Self {
        let length = length.as_secs().max(1);
        // A moment and not a number of half-lives, so that another INSIGHTS_HALF_LIFE does not turn into years of decay.
        Self { began: now.as_secs() / length * length, length }
    }

    /// What a count of the half-life that began at `since` weighs now: 0.5 ^ half-lives that have ended since. A clock that runs
    /// behind adds no weight.
    #[must_use]
    pub fn weight(self, since: f64) -> f64 {
        0.5_f64.powi(self.ended(since))
    }

    /// Returns whether nothing is left of counts that were last touched in the half-life that began at `since`.
    #[must_use]
    pub fn is_over(self, since: f64) -> bool {
        self.ended(since) >= LIFETIME
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "saturates; seconds are exact")]
    fn ended(self, since: f64) -> i32 {
        ((self.began as f64 - since) / self.length as f64).floor().max(0.0) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_weighs_half_after_each_half_life() {
        let week = 7 * 86_400;
        // The present half-life, so many weeks after the one that began at second 0.
        let present = |weeks: u64| HalfLife::of(Timestamp::from_millis(weeks * week * 1000), Duration::from_secs(week));
        for (weeks, weight) in [(0, 1.0), (1, 0.5), (2, 0.25), (9, 1.0 / 512.0)] {
            assert_eq!(
                (present(weeks).weight(0.0).to_bits(), present(weeks).is_over(0.0)),
                (f64::to_bits(weight), false)
            );
        }
        assert!(present(10).is_over(0.0));
        assert!(present(0).weight(1e9) >= 1.0, "a clock that runs behind");
        assert!(present(3_000).weight(0.0) >= 0.0 && present(3_000).is_over(0.0));
    }
}
