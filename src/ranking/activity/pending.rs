//! The activity that is recorded and not yet written to Redis, in bounded queues.

use std::{
    collections::{HashMap, hash_map::Entry},
    mem,
};

use super::{
    View, ViewSource,
    pace::{Pace, thin},
};
use crate::{
    ports::{network::ClientNetwork, random},
    schema::ids::ItemId,
    sessions::SessionTouch,
};

/// Entries of each queue. A queue grows so long only if Redis does not reply; further activity is dropped. All queues
/// together take at most 20 MB: 10,000 touches of 700 bytes (with the longest ids and keys), as many unchecked and keyed
/// views of 500 bytes, and as many counts of 200 bytes, whose map may have twice the space.
const MAX_PENDING: usize = 10_000;

/// A touch of a session.
#[derive(Clone)]
pub(super) struct PendingTouch {
    pub touch: SessionTouch,
    pub source: ViewSource,
    /// The views that the touch's view stands for.
    pub weight: u32,
    /// The `Idempotency-Key` of a reported view.
    pub idempotency_key: Option<String>,
    pub network: Option<ClientNetwork>,
}

/// A [`View`] that outlives its request.
pub(super) struct PendingView {
    pub item: ItemId,
    pub source: ViewSource,
    /// The views that it stands for. A view with a key is one view.
    pub weight: u32,
    pub idempotency_key: Option<String>,
}

/// The content of one pipeline.
#[derive(Default)]
pub(super) struct Batch {
    pub touches: Vec<PendingTouch>,
    pub view_counts: Vec<((ItemId, ViewSource), u32)>,
    pub keyed_views: Vec<(ItemId, String)>,
}

#[derive(Default)]
pub(super) struct PendingActivity {
    touches: Vec<PendingTouch>,
    /// Views that the rate limit has not checked yet.
    unchecked_views: Vec<(ClientNetwork, PendingView)>,
    view_counts: HashMap<(ItemId, ViewSource), u32>,
    /// Reported views without a session, each with its `Idempotency-Key`.
    keyed_views: Vec<(ItemId, String)>,
}

impl PendingActivity {
    pub fn push_touch(&mut self, touch: PendingTouch) {
        if self.touches.len() < MAX_PENDING {
            self.touches.push(touch);
        }
    }

    pub fn push_unchecked_view(&mut self, network: ClientNetwork, view: View<'_>) {
        if self.unchecked_views.len() < MAX_PENDING {
            self.unchecked_views.push((network, view.to_pending()));
        }
    }

    /// Adds a view that passed the rate limit, or needs no check.
    pub fn push_allowed_view(&mut self, PendingView { item, source, weight, idempotency_key }: PendingView) {
        match idempotency_key {
            Some(key) if self.keyed_views.len() < MAX_PENDING => self.keyed_views.push((item, key)),
            Some(_) => {}
            None => self.count_views(item, source, weight),
        }
    }

    pub fn count_views(&mut self, item: ItemId, source: ViewSource, views: u32) {
        let is_full = self.view_counts.len() >= MAX_PENDING;
        match self.view_counts.entry((item, source)) {
            Entry::Vacant(_) if is_full => {}
            entry => {
                let count = entry.or_default();
                *count = count.saturating_add(views);
            }
        }
    }

    /// Puts back what Redis refused, before anything newer.
    pub fn put_back(&mut self, Batch { mut touches, view_counts, mut keyed_views }: Batch) {
        touches.append(&mut self.touches);
        touches.truncate(MAX_PENDING);
        self.touches = touches;
        keyed_views.append(&mut self.keyed_views);
        keyed_views.truncate(MAX_PENDING);
        self.keyed_views = keyed_views;
        for ((item, source), views) in view_counts {
            self.count_views(item, source, views);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.view_counts.is_empty()
            && self.keyed_views.is_empty()
            && self.touches.is_empty()
            && self.unchecked_views.is_empty()
    }

    /// The number of full batches of `size`.
    pub fn full_batches(&self, size: usize) -> usize {
        self.touches.len().max(self.view_counts.len()).max(self.keyed_views.len()) / size
    }

    /// Takes the views that the rate limit has to check.
    pub fn take_unchecked_views(&mut self) -> Vec<(ClientNetwork, PendingView)> {
        mem::take(&mut self.unchecked_views)
    }

    /// Takes a batch. Counts below the weight of `pace` are thinned.
    pub fn take_batch(&mut self, pace: &Pace) -> Batch {
        let (size, weight) = (pace.batch_size(), pace.weight());
        let keys: Vec<_> = self.view_counts.keys().take(size).cloned().collect();
        let view_counts = keys.into_iter().filter_map(|key| self.view_counts.remove_entry(&key));
        let thinned = view_counts.filter_map(|(key, count)| {
            // Without random bits, the count stays exact.
            let random = if weight > 1 { random::bytes().ok() } else { None };
            let thinned = random.map_or(Some(count), |random| thin(count, weight, u32::from_le_bytes(random)));
            Some((key, thinned?))
        });
        Batch {
            view_counts: thinned.collect(),
            touches: take_front(&mut self.touches, size),
            keyed_views: take_front(&mut self.keyed_views, size),
        }
    }
}

/// Takes the oldest entries, at most `size`.
fn take_front<T>(queue: &mut Vec<T>, size: usize) -> Vec<T> {
    queue.drain(..queue.len().min(size)).collect()
}
