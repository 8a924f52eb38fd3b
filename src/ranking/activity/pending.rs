//! The activity that is recorded and not yet written to Redis, in bounded queues.

use std::collections::HashMap;

use super::{View, ViewSource};
use crate::{ports::network::ClientNetwork, schema::ids::ItemId, sessions::SessionTouch};

/// Touches, and counted views, in one pipeline.
pub(super) const MAX_BATCH: usize = 200;
/// Entries of each queue. A queue grows so long only if Redis does not reply; further activity is dropped.
const MAX_PENDING: usize = 10_000;

/// A touch of a session.
pub(super) struct PendingTouch {
    pub touch: SessionTouch,
    pub source: ViewSource,
    /// The `Idempotency-Key` of a reported view.
    pub idempotency_key: Option<String>,
    pub network: Option<ClientNetwork>,
}

/// A [`View`] that outlives its request.
pub(super) struct PendingView {
    pub item: ItemId,
    pub source: ViewSource,
    pub idempotency_key: Option<String>,
}

/// The content of one pipeline.
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
    pub fn push_allowed_view(&mut self, PendingView { item, source, idempotency_key }: PendingView) {
        match idempotency_key {
            Some(key) if self.keyed_views.len() < MAX_PENDING => self.keyed_views.push((item, key)),
            Some(_) => {}
            None => self.count_view(item, source),
        }
    }

    pub fn count_view(&mut self, item: ItemId, source: ViewSource) {
        self.count_views(item, source, 1);
    }

    pub fn count_views(&mut self, item: ItemId, source: ViewSource, views: u32) {
        if self.view_counts.len() < MAX_PENDING {
            let count = self.view_counts.entry((item, source)).or_default();
            *count = count.saturating_add(views);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.view_counts.is_empty()
            && self.keyed_views.is_empty()
            && self.touches.is_empty()
            && self.unchecked_views.is_empty()
    }

    pub fn has_full_batch(&self) -> bool {
        self.touches.len().max(self.view_counts.len()) >= MAX_BATCH
    }

    /// Takes the views for one round of the rate limit.
    pub fn take_unchecked_views(&mut self) -> Vec<(ClientNetwork, PendingView)> {
        take_front(&mut self.unchecked_views)
    }

    pub fn take_batch(&mut self) -> Batch {
        let keys: Vec<_> = self.view_counts.keys().take(MAX_BATCH).cloned().collect();
        Batch {
            touches: take_front(&mut self.touches),
            view_counts: keys.into_iter().filter_map(|key| self.view_counts.remove_entry(&key)).collect(),
            keyed_views: take_front(&mut self.keyed_views),
        }
    }
}

/// Takes the oldest [`MAX_BATCH`] entries.
fn take_front<T>(queue: &mut Vec<T>) -> Vec<T> {
    queue.drain(..queue.len().min(MAX_BATCH)).collect()
}
