//! Pace of background writes: how often an isolate writes views, touches and counters, and how many views it samples.
//!
//! A policy without I/O and without a clock. If Redis refuses calls, does not answer or becomes slow, [`Pace`] rises by
//! one level: each level doubles the interval, and the upper levels also sample. After a calm time it falls by one
//! level. A level that Redis cannot carry makes the next calm time longer, so the pace does not oscillate.
//!
//! | level | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | interval, s | 0.1 | 0.2 | 0.4 | 0.8 | 1.6 | 3.2 | 6.4 | 12.8 |
//! | weight of a sampled view | 1 | 1 | 1 | 1 | 2 | 4 | 8 | 16 |
//!
//! Sampling is unbiased: a view that is written with probability 1/w counts w times. So the expected ranking is exact.

use std::{
    hash::{Hash, Hasher},
    time::Duration,
};

use rustc_hash::FxHasher;

use crate::ports::time::Timestamp;

/// The highest level.
pub const MAX_LEVEL: u32 = 7;
/// The interval of level 0. A Worker has 30 s after its response (`waitUntil`), so the longest one is 12.8 s.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Up to this level, longer intervals suffice: only the levels above sample.
const LAST_EXACT_LEVEL: u32 = 3;
/// The longest interval of the traffic counters. Their figures are minutes.
const MAX_COUNTER_INTERVAL: Duration = Duration::from_mins(1);

/// Calm time before the level falls: the shortest, and the longest.
const MIN_CALM: Duration = Duration::from_secs(10);
const MAX_CALM: Duration = Duration::from_secs(160);

/// Redis is slow if an exchange takes `SLOW_FACTOR` times the usual time and `SLOW_MARGIN` more, or `ALWAYS_SLOW`. It is
/// calm below half of that.
const SLOW_FACTOR: u64 = 4;
const SLOW_MARGIN: u64 = 200;
const ALWAYS_SLOW: u64 = 1_000;
/// Longer exchanges count as this long, so that a single one is soon forgotten.
const MAX_LATENCY: u64 = 1_200;

/// The replies and troubles of Redis that an isolate saw since its last observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observation {
    /// Redis refused a call: the plan's rate limit, or its quota.
    pub is_refused: bool,
    /// A call got no reply.
    pub is_silent: bool,
    /// The time of the last exchange that was answered.
    pub latency: Option<Duration>,
}

/// The effect of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LevelChange {
    /// The level rose: wait for the new interval before the next write.
    Raised,
    Kept,
    Lowered,
}

/// The pace of one isolate.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    level: u32,
    /// No trouble was seen since this moment.
    calm_since: Option<Timestamp>,
    /// Doublings of [`MIN_CALM`].
    calm_doublings: u32,
    /// True if the last change lowered the level. If it rises next, the lower level was too fast.
    fell_last: bool,
    latency: Latency,
}

impl Pace {
    /// Adjusts the pace to what the isolate saw.
    pub fn observe(&mut self, observation: Observation, now: Timestamp) -> LevelChange {
        let speed = observation.latency.map_or(Speed::Calm, |latency| self.latency.record(latency));
        if observation.is_refused || observation.is_silent || speed == Speed::Slow {
            return self.raise(now);
        }
        if speed == Speed::Unclear {
            self.calm_since = Some(now);
        }
        self.lower(now)
    }

    fn raise(&mut self, now: Timestamp) -> LevelChange {
        self.calm_since = Some(now);
        if std::mem::take(&mut self.fell_last) && self.base_calm_time() < MAX_CALM {
            self.calm_doublings += 1;
        }
        if self.level == MAX_LEVEL {
            return LevelChange::Kept;
        }
        self.level += 1;
        LevelChange::Raised
    }

    /// Falls by one level for each calm time that has passed.
    fn lower(&mut self, now: Timestamp) -> LevelChange {
        // A later moment is from before the clock was set back.
        self.calm_since = self.calm_since.map(|since| since.min(now));
        let mut change = LevelChange::Kept;
        while self.level > 0
            && let Some(since) = self.calm_since
            && now.since(since) >= self.calm_time()
        {
            self.calm_since = Some(since + self.calm_time());
            self.level -= 1;
            if std::mem::replace(&mut self.fell_last, true) {
                // The level fell twice in a row: Redis carries the lower level.
                self.calm_doublings = self.calm_doublings.saturating_sub(1);
            }
            change = LevelChange::Lowered;
        }
        change
    }

    /// The calm time before the next level: long enough for at least two writes.
    fn calm_time(&self) -> Duration {
        self.base_calm_time().max(self.base_interval() * 2)
    }

    fn base_calm_time(&self) -> Duration {
        MIN_CALM * 2_u32.saturating_pow(self.calm_doublings)
    }

    /// 0 is the usual pace, [`MAX_LEVEL`] the slowest one.
    #[must_use]
    pub const fn level(&self) -> u32 {
        self.level
    }

    /// The time between two writes of an isolate. While the pace is reduced, `random` moves it by up to a quarter, so
    /// that isolates do not write at the same moments.
    #[must_use]
    pub fn interval(&self, random: u8) -> Duration {
        let interval = self.base_interval();
        if self.level == 0 { interval } else { interval * (192 + u32::from(random) / 2) / 256 }
    }

    fn base_interval(&self) -> Duration {
        MIN_INTERVAL * (1 << self.level)
    }

    /// The time between two entries of the traffic counters, which is `usual` at level 0.
    #[must_use]
    pub fn counter_interval(&self, usual: Duration) -> Duration {
        usual.max(usual.saturating_mul(1 << self.level).min(MAX_COUNTER_INTERVAL))
    }

    /// The most touches, and the most counted views, in one pipeline. At the slowest pace they are few, so that a plan
    /// whose limit is low does not refuse each of them.
    #[must_use]
    pub const fn batch_size(&self) -> usize {
        if self.level < MAX_LEVEL { 200 } else { 25 }
    }

    /// The views that a sampled view stands for: a power of two.
    #[must_use]
    pub fn weight(&self) -> u32 {
        1 << self.level.saturating_sub(LAST_EXACT_LEVEL)
    }
}

/// Returns whether the views of `event` are sampled: one event in `weight`. The same event gives the same answer in all
/// isolates, so a repeated view has no second chance. An event that is sampled at a weight is also sampled at every smaller weight.
#[must_use]
pub fn is_sampled(event: &impl Hash, weight: u32) -> bool {
    let mut hasher = FxHasher::default();
    event.hash(&mut hasher);
    // The best bits of this hash that each platform has. In wasm it has 32 bits.
    (hasher.finish() >> 8).is_multiple_of(weight.into())
}

/// Thins `count` views of an item for one write. From `weight` views on, the count is exact. Fewer views become
/// `weight` views with probability `count / weight`, or none: one command in place of several, and the same expectation.
#[must_use]
pub const fn thin(count: u32, weight: u32, random: u32) -> Option<u32> {
    if count >= weight {
        Some(count)
    } else if random % weight < count {
        Some(weight)
    } else {
        None
    }
}

/// The usual time of an exchange, and the recent one, in milliseconds.
#[derive(Debug, Clone, Default)]
struct Latency {
    /// The shortest recent time. It grows slowly, by at least 1 ms for each longer exchange, because the round trip to
    /// Redis may become longer for good.
    usual: Option<u64>,
    recent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speed {
    Calm,
    /// Neither slow nor calm.
    Unclear,
    Slow,
}

impl Latency {
    fn record(&mut self, latency: Duration) -> Speed {
        let millis = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX).min(MAX_LATENCY);
        let usual = self.usual.map_or(millis, |usual| millis.min(usual + millis.saturating_sub(usual).div_ceil(128)));
        self.recent = if self.usual.is_some() { self.recent.midpoint(millis) } else { millis };
        self.usual = Some(usual);
        let slow = (usual * SLOW_FACTOR + SLOW_MARGIN).min(ALWAYS_SLOW);
        match self.recent {
            recent if recent >= slow => Speed::Slow,
            recent if recent >= slow / 2 => Speed::Unclear,
            _ => Speed::Calm,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_000);
    const CALM: Observation = Observation { is_refused: false, is_silent: false, latency: None };
    const REFUSED: Observation = Observation { is_refused: true, ..CALM };
    const SILENT: Observation = Observation { is_silent: true, ..CALM };

    fn answered(millis: u64) -> Observation {
        Observation { latency: Some(Duration::from_millis(millis)), ..CALM }
    }

    fn at(seconds: u64) -> Timestamp {
        START + Duration::from_secs(seconds)
    }

    fn pace_of_level(level: u32) -> Pace {
        Pace { level, calm_since: Some(START), ..Pace::default() }
    }

    #[test]
    fn the_table_of_the_levels() {
        let table = [(100, 1), (200, 1), (400, 1), (800, 1), (1_600, 2), (3_200, 4), (6_400, 8), (12_800, 16)];
        let mut pace = Pace::default();
        for (interval, weight) in table {
            assert_eq!((pace.interval(128), pace.weight()), (Duration::from_millis(interval), weight));
            pace.observe(REFUSED, START);
        }
        assert_eq!((pace.level(), pace.observe(SILENT, START)), (MAX_LEVEL, LevelChange::Kept));
        let counters = [0, 2, 300].map(|usual| pace.counter_interval(Duration::from_secs(usual)).as_secs());
        assert_eq!(counters, [0, 60, 300]);
    }

    #[test]
    fn the_steps_between_levels() {
        use LevelChange::{Kept, Lowered, Raised};
        for (level, observation, seconds, change) in [
            (0, CALM, 100, Kept),
            (0, REFUSED, 0, Raised),
            (0, SILENT, 0, Raised),
            (0, answered(999), 0, Kept),
            (0, answered(1_000), 0, Raised),
            (3, CALM, 9, Kept),
            (3, CALM, 10, Lowered),
            (3, answered(700), 10, Kept),
            (7, CALM, 25, Kept),
            (7, CALM, 26, Lowered),
            (7, REFUSED, 100, Kept),
        ] {
            let mut pace = pace_of_level(level);
            assert_eq!(pace.observe(observation, at(seconds)), change, "{level} {observation:?} {seconds}");
        }
    }

    #[test]
    fn a_redis_that_becomes_slow_is_noticed_and_a_distant_one_is_not_slow() {
        let mut pace = Pace::default();
        for second in 0..20 {
            pace.observe(answered(250), at(second));
        }
        assert_eq!(pace.level(), 0, "a distant Redis is no slow Redis");
        let mut pace = Pace::default();
        pace.observe(answered(10), START);
        for second in 1..10 {
            pace.observe(answered(400), at(second));
        }
        assert_eq!(pace.level(), MAX_LEVEL);
    }

    #[test]
    fn the_pace_recovers_if_redis_stays_a_little_slower() {
        let mut pace = Pace::default();
        pace.observe(answered(10), START);
        for _ in 0..MAX_LEVEL {
            pace.observe(REFUSED, START);
        }
        for second in 1..200 {
            pace.observe(answered(130), at(second));
        }
        assert_eq!(pace.level(), 0);
    }

    #[test]
    fn a_level_falls_after_the_clock_was_set_back() {
        let mut pace = pace_of_level(1);
        let earlier = START - Duration::from_hours(24);
        assert_eq!(pace.observe(CALM, earlier), LevelChange::Kept);
        assert_eq!(pace.observe(CALM, earlier + pace.calm_time()), LevelChange::Lowered);
    }

    #[test]
    fn a_level_that_redis_cannot_carry_is_tried_less_and_less_often() {
        let mut pace = pace_of_level(4);
        let mut attempts = Vec::new();
        for second in 1..600 {
            // Redis carries level 4.
            let observation = if pace.level() < 4 { REFUSED } else { CALM };
            if pace.observe(observation, at(second)) == LevelChange::Lowered {
                attempts.push(second);
            }
        }
        assert_eq!(attempts, [10, 31, 72, 153, 314, 475]);
    }

    #[test]
    fn an_isolate_without_requests_recovers() {
        let mut pace = pace_of_level(MAX_LEVEL);
        assert_eq!(pace.observe(CALM, at(150)), LevelChange::Lowered);
        assert_eq!(pace.level(), 0);
    }

    #[test]
    fn a_weight_takes_its_share_of_events_and_smaller_weights_take_them_too() {
        for weight in [1, 2, 4, 8, 16] {
            let sampled = |visitor: &u32| is_sampled(&(format!("token-{visitor}"), "mug"), weight);
            let taken: Vec<_> = (0..16_000).filter(sampled).collect();
            let expected = 16_000 / weight;
            // Five standard deviations of a binomial distribution.
            let margin = 5.0 * f64::from(expected).sqrt();
            let error = (f64::from(expected) - f64::from(u32::try_from(taken.len()).unwrap())).abs();
            assert!(error <= margin, "{weight}: {} {expected}", taken.len());
            assert!(taken.iter().all(|visitor| is_sampled(&(format!("token-{visitor}"), "mug"), weight.div_ceil(2))));
        }
    }

    proptest! {
        /// Over all values of the random number, the mean is the count.
        #[test]
        fn thinned_counts_have_the_same_expectation(count in 1_u32..40, level in 0_u32..5) {
            let weight = 1 << level;
            let sum: u32 = (0..weight).filter_map(|random| thin(count, weight, random)).sum();
            prop_assert_eq!(sum, count * weight);
        }

        #[test]
        fn a_pace_stays_within_its_bounds_and_recovers(
            steps in vec((any::<bool>(), any::<bool>(), proptest::option::of(0_u64..100_000), 0_u64..30_000), 0..200),
            random in any::<u8>(),
        ) {
            let (mut pace, mut now) = (Pace::default(), START);
            for (is_refused, is_silent, latency, pause) in steps {
                let before = pace.level();
                let latency = latency.map(Duration::from_millis);
                let change = pace.observe(Observation { is_refused, is_silent, latency }, now);
                prop_assert_eq!(change == LevelChange::Raised, pace.level() == before + 1);
                prop_assert_eq!(change == LevelChange::Lowered, pace.level() < before);
                prop_assert!(pace.level() <= MAX_LEVEL && pace.base_calm_time() <= MAX_CALM);
                let interval = pace.interval(random);
                prop_assert!(interval >= MIN_INTERVAL && interval <= Duration::from_secs(16), "{:?}", interval);
                now = now + Duration::from_millis(pause);
            }
            // Each level takes at most the longest calm time, after the slow exchanges are forgotten.
            for _ in 0..MAX_LEVEL + 10 {
                now = now + MAX_CALM;
                pace.observe(answered(0), now);
            }
            prop_assert_eq!(pace.level(), 0);
        }
    }
}
