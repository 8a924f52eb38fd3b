//! The ranking as Redis holds it: views that halve every half-life.

use std::time::Duration;

use edgefront::ports::time::Timestamp;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Poisson};
use rustc_hash::FxHashMap;

use crate::catalogue::{Catalogue, Item};

/// A score below this is forgotten (`rescale.lua`).
const DUST: f64 = 1.0 / 1024.0;
/// How often the rank limit is compared with all scores.
const REFRESH: Duration = Duration::from_secs(10);
/// Number of scores that are compared each time.
const FEW: usize = 1_000;

/// See the [module](self).
pub enum Ranking {
    /// Every view is simulated: the scores are exact.
    Exact(Scores),
    /// A sample of the views is simulated: an item ranks at its place in the catalogue. Scores are so high that chance
    /// changes ranks little.
    Expected,
}

pub struct Scores {
    half_life: f64,
    limit: usize,
    known: FxHashMap<Item, (f64, Timestamp)>,
    /// The score of the item at the rank limit; None if fewer items rank.
    threshold: Option<f64>,
    refreshed: Timestamp,
}

impl Scores {
    /// An empty ranking, whose first `limit` items may be stored.
    #[must_use]
    pub fn new(half_life: Duration, limit: u64, now: Timestamp) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { half_life: half_life.as_secs_f64(), limit, known: FxHashMap::default(), threshold: None, refreshed: now }
    }

    /// Fills the ranking as it is after a long time with `views` a second.
    pub fn fill(&mut self, catalogue: &Catalogue, (items, views): (u32, f64), random: &mut SmallRng, now: Timestamp) {
        let lasting = views * self.half_life / std::f64::consts::LN_2;
        for item in 0..items {
            let expected = catalogue.share(item) * lasting;
            let score = Poisson::new(expected).map_or(0.0, |views| views.sample(random));
            if score > 0.0 {
                self.known.insert(item, (score, now));
            }
        }
        self.refresh(now);
    }

    fn decayed(&self, (score, at): (f64, Timestamp), now: Timestamp) -> f64 {
        score * (-now.since(at).as_secs_f64() / self.half_life).exp2()
    }

    fn refresh(&mut self, now: Timestamp) {
        self.refreshed = now;
        let mut scores: Vec<f64> = self.known.values().map(|score| self.decayed(*score, now)).collect();
        scores.retain(|score| *score >= DUST);
        self.threshold = (scores.len() > self.limit && self.limit > 0).then(|| {
            let (_, at_limit, _) = scores.select_nth_unstable_by(self.limit - 1, |one, other| other.total_cmp(one));
            *at_limit
        });
    }
}

impl Ranking {
    pub fn count(&mut self, item: Item, views: f64, now: Timestamp) {
        if let Self::Exact(scores) = self {
            let before = scores.known.get(&item).map_or(0.0, |score| scores.decayed(*score, now));
            scores.known.insert(item, (before + views, now));
        }
    }

    /// The rank of an item. With [`Self::Exact`] scores, only its side of the limit is right.
    pub fn rank(&mut self, item: Item, now: Timestamp) -> Option<u64> {
        let Self::Exact(scores) = self else { return Some(u64::from(item)) };
        if scores.known.len() <= FEW || now.since(scores.refreshed) >= REFRESH {
            scores.refresh(now);
        }
        let score = scores.known.get(&item).map(|score| scores.decayed(*score, now)).filter(|score| *score >= DUST)?;
        let is_below = scores.threshold.is_none_or(|threshold| score >= threshold);
        Some(if is_below { 0 } else { scores.limit as u64 })
    }
}
