//! Latencies: one histogram for each kind.

use std::time::Duration;

use crate::ports::histogram::Histogram;

/// The work that a duration measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyKind {
    /// A stored page, fresh or stale, until its head is sent.
    Hit,
    /// Any other response of the storefront, until its head is sent.
    Render,
    /// A response of the API to a visitor.
    Api,
    /// An HTTP request to Redis, until its whole response has arrived. Requests of jobs are left out.
    Redis,
    /// A request to the origin, until the response's head has arrived.
    Origin,
    /// A request of the edge tier to the home tier, until the response's head has arrived.
    Home,
}

impl LatencyKind {
    pub const ALL: [Self; 6] = [Self::Hit, Self::Render, Self::Api, Self::Redis, Self::Origin, Self::Home];

    /// The name in the stream and in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Render => "render",
            Self::Api => "api",
            Self::Redis => "redis",
            Self::Origin => "origin",
            Self::Home => "home",
        }
    }
}

static EMPTY: Histogram = Histogram::new();

/// A histogram for each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Latencies([Histogram; LatencyKind::ALL.len()]);

impl Latencies {
    pub fn record(&mut self, kind: LatencyKind, duration: Duration) {
        if let Some(histogram) = self.of_mut(kind) {
            histogram.record(duration);
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (kind, histogram) in other.iter() {
            self.merge_one(kind, histogram);
        }
    }

    pub fn merge_one(&mut self, kind: LatencyKind, other: &Histogram) {
        if let Some(histogram) = self.of_mut(kind) {
            histogram.merge(other);
        }
    }

    /// The histograms in the order of [`LatencyKind::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (LatencyKind, &Histogram)> {
        LatencyKind::ALL.into_iter().zip(&self.0)
    }

    #[must_use]
    pub fn of(&self, kind: LatencyKind) -> &Histogram {
        self.0.get(kind as usize).unwrap_or(&EMPTY)
    }

    pub(super) fn of_mut(&mut self, kind: LatencyKind) -> Option<&mut Histogram> {
        self.0.get_mut(kind as usize)
    }
}
