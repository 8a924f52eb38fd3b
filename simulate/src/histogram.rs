//! Times in buckets whose borders grow by 2 %.

use std::{collections::BTreeMap, time::Duration};

const GROWTH: f64 = 1.02;

/// Weighted times; quantiles are exact to 2 %.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    buckets: BTreeMap<i32, f64>,
    total: f64,
    longest: Duration,
}

impl Histogram {
    #[expect(clippy::cast_possible_truncation, reason = "a logarithm")]
    pub fn add(&mut self, time: Duration, weight: f64) {
        let bucket = (time.as_secs_f64().max(1e-6).ln() / GROWTH.ln()).ceil() as i32;
        *self.buckets.entry(bucket).or_default() += weight;
        self.total += weight;
        self.longest = self.longest.max(time);
    }

    #[must_use]
    pub const fn total(&self) -> f64 {
        self.total
    }

    #[must_use]
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// The time that the part `quantile` of the weight does not exceed; zero without times.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        let mut below = 0.0;
        let reached = self.buckets.iter().find(|(_, weight)| {
            below += **weight;
            below >= quantile * self.total
        });
        reached.map_or(Duration::ZERO, |(bucket, _)| Duration::from_secs_f64(GROWTH.powi(*bucket)).min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_exact_to_two_percent() {
        let mut times = Histogram::default();
        (1..=1_000).for_each(|millis| times.add(Duration::from_millis(millis), 2.0));
        for (quantile, millis) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            let found = times.quantile(quantile).as_secs_f64() * 1e3;
            assert!((found / millis - 1.0).abs() <= 0.021, "{quantile}: {found}");
        }
        assert_eq!((times.longest().as_millis(), Histogram::default().quantile(0.5)), (1_000, Duration::ZERO));
    }
}
