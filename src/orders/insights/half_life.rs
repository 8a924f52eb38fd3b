//! Exponential decay in steps: counts halve with each half-life, as in the ranking. Half-lives begin at multiples of
//! their length. So all counts of one half-life have the same weight, and one factor brings a whole key up to date.

use std::time::Duration;

use crate::ports::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfLife {
    /// The Unix second of its start.
    pub start: u64,
    /// Its length in seconds.
    pub length: u64,
}

impl HalfLife {
    /// The half-life that contains `now`.
    #[must_use]
    pub fn containing(now: Timestamp, length: Duration) -> Self {
        let length = length.as_secs().max(1);
        // The start is a time, not a number of half-lives: a changed INSIGHTS_HALF_LIFE then causes no years of decay.
        Self { start: now.as_secs() / length * length, length }
    }

    /// The present weight of a count from the half-life that started at `since`: 0.5 ^ half-lives that have ended since
    /// then. It is at most 1, even if the clock is behind.
    #[must_use]
    pub fn weight(self, since: f64) -> f64 {
        0.5_f64.powi(self.ended_since(since))
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "saturates; seconds are exact")]
    fn ended_since(self, since: f64) -> i32 {
        ((self.start as f64 - since) / self.length as f64).floor().max(0.0) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_halves_with_each_half_life() {
        let week = 7 * 86_400;
        let after =
            |weeks: u64| HalfLife::containing(Timestamp::from_millis(weeks * week * 1000), Duration::from_secs(week));
        for (weeks, weight) in [(0, 1.0), (1, 0.5), (2, 0.25), (9, 1.0 / 512.0)] {
            assert_eq!(after(weeks).weight(0.0).to_bits(), f64::to_bits(weight));
        }
        assert!(after(0).weight(1e9) >= 1.0, "a clock that is behind");
        assert!(after(3_000).weight(0.0) >= 0.0);
    }
}
