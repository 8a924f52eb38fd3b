//! Medians and quantiles.

use std::time::Duration;

/// The value below which the share `q` of the values lies; zero for no values. `sorted` must be in ascending order.
pub fn quantile(sorted: &[Duration], q: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index below the length")]
    let index = (to_f64(sorted.len() as u64) * q) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// The median; for an even number of values, the mean of the two in the middle. `None` for no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = values.get(half).copied()?;
    if values.len().is_multiple_of(2) { Some((values.get(half - 1)? + upper) / 2.0) } else { Some(upper) }
}

/// The largest value; 0 for no values.
pub fn max(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

/// Converts a count.
#[expect(clippy::cast_precision_loss, reason = "the counts of a run are far below 2^52")]
pub fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([]), None);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let times: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&times, 0.5).as_millis(), 51);
        assert_eq!(quantile(&times, 0.99).as_millis(), 100);
        assert_eq!(quantile(&times[..1], 0.99).as_millis(), 1);
        assert_eq!(quantile(&[], 0.5).as_millis(), 0);
    }
}
