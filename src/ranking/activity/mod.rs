//! Records session activity and item views. Batches writes and flushes them after the response.
//!
//! All requests of a tenth of a second share one pipeline. The first of these requests sends it; activity that arrives
//! meanwhile waits for the next pipeline, which the same request sends. A busy shop writes a hundred views with one
//! Redis request. If Redis refuses calls or is slow, the [`pace`] is reduced. Pipelines of activity carry nothing that a
//! visitor waits for.
//!
//! Anybody can start a session, so only a user's session vouches for a view by itself: its views of an item count once
//! in [`SessionConfig::view_window`], checked by Redis. All other views count once for a network and an item: in that
//! window as far as this isolate remembers, and once a minute by the platform's rate limit, which the isolates of a
//! location share.
//!
//! If the platform evicts an isolate, it loses the views of a tenth of a second, of the pipeline in flight, and of the
//! touches whose replies were not counted yet. A refused pipeline was not executed, so its activity waits for the next
//! one. A pipeline without a reply is not repeated, because Redis may have executed it: its views are lost, and nothing
//! else.
//!
//! - [`pending`]: the activity that is not written yet.
//! - [`writer`]: the background task that writes it.
//! - [`pace`]: how often it is written, and how many views are sampled.
//! - [`relay`]: the batches from the edge tier to the home tier.

pub mod pace;
mod pending;
mod relay;
mod writer;

use std::{
    cell::{Cell, RefCell},
    time::Duration,
};

use self::{
    pace::{Pace, is_sampled},
    pending::{PendingActivity, PendingTouch, PendingView},
};
use crate::{
    config::SessionConfig,
    ports::{
        network::ClientNetwork,
        rate_limit::RateLimit,
        recent::RecentSet,
        time::Timestamp,
        writer_lease::{LeaseHolder, WriterLease},
    },
    schema::{ids::ItemId, token::Token},
    sessions::{SessionTouch, TOUCH_EVERY, TouchOutcome},
};
use upstash_rest::Troubles;

/// The evidence for a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViewSource {
    /// edgefront served the item's page with status 200, so the item exists.
    Served,
    /// A client reports that another cache served the page. The view counts only if the item ranks already: invented
    /// ids cannot push real items out of the ranking.
    Reported,
}

/// The visitor that views an item, as far as edgefront can identify them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Viewer<'a> {
    /// The token of a cookie with a valid MAC. Redis decides later whether its session is alive.
    pub token: Option<&'a Token>,
    /// None off the platform: then every view without a session counts.
    pub network: Option<ClientNetwork>,
}

/// A view of an item without a session that vouches for it.
#[derive(Clone, Copy)]
struct View<'a> {
    item: &'a ItemId,
    source: ViewSource,
    /// The views that it stands for.
    weight: u32,
    /// The `Idempotency-Key` of a reported view.
    idempotency_key: Option<&'a str>,
}

impl View<'_> {
    fn to_pending(self) -> PendingView {
        let idempotency_key = self.idempotency_key.map(str::to_owned);
        PendingView { item: self.item.clone(), source: self.source, weight: self.weight, idempotency_key }
    }
}

/// Entries in each of two generations of a [`RecentSet`]: visits for [`TOUCH_EVERY`], views of networks for
/// [`SessionConfig::view_window`]. Both sets together take 2 MB.
const MAX_REMEMBERED: usize = 20_000;

/// The activity that one isolate has recorded and not yet written to Redis.
pub struct Activity {
    config: SessionConfig,
    pending: RefCell<PendingActivity>,
    /// Visits, each a session and the item that it viewed. If two visits share a hash, one touch is lost, which does no
    /// harm.
    recent_visits: RefCell<RecentSet>,
    /// Views without a session, each a network and an item.
    recent_network_views: RefCell<RecentSet>,
    /// The lease of the request that writes, or that sends batches to the home tier.
    writer_lease: WriterLease,
    pace: RefCell<Pace>,
    /// The last write.
    written: Cell<Option<Timestamp>>,
    /// The failed calls that the pace has seen.
    seen_troubles: Cell<Troubles>,
}

impl Activity {
    /// Starts empty.
    #[must_use]
    pub fn new(config: &SessionConfig) -> Self {
        Self {
            config: config.clone(),
            pending: RefCell::default(),
            recent_visits: RefCell::new(RecentSet::new(TOUCH_EVERY, MAX_REMEMBERED)),
            recent_network_views: RefCell::new(RecentSet::new(config.view_window, MAX_REMEMBERED)),
            writer_lease: WriterLease::default(),
            pace: RefCell::default(),
            written: Cell::default(),
            seen_troubles: Cell::default(),
        }
    }

    /// The current pace.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.pace.borrow().clone()
    }

    /// Records a visit, and a view of `item` if there is one. Skips a repetition within [`TOUCH_EVERY`]: it would
    /// change nothing.
    pub fn record_visit(&self, viewer: Viewer<'_>, item: Option<&ItemId>, now: Timestamp) {
        let Some(token) = viewer.token else {
            if let Some(item) = item {
                let view = View { item, source: ViewSource::Served, weight: 1, idempotency_key: None };
                self.record_sessionless_view(viewer.network, view, now);
            }
            return;
        };
        if !self.recent_visits.borrow_mut().insert_new(&(token, item), now) {
            return;
        }
        let touch = SessionTouch { token: token.clone(), item: item.cloned(), at: now };
        let (source, network) = (ViewSource::Served, viewer.network);
        self.push_touch(PendingTouch { touch, source, weight: 1, idempotency_key: None, network });
    }

    /// Adds a touch. At a pace that samples, only some views keep their items. The others are visits without an item, one
    /// for each session in [`TOUCH_EVERY`]. A view with a key always keeps its item.
    fn push_touch(&self, mut pending: PendingTouch) {
        let touch = &mut pending.touch;
        let weight = self.pace.borrow().weight();
        if let (Some(item), true) = (&touch.item, weight > 1 && pending.idempotency_key.is_none()) {
            // Visitors can start many sessions, but do not choose their network.
            let is_sampled = match pending.network {
                Some(network) => is_sampled(&(network, item), weight),
                None => is_sampled(&(&touch.token, item), weight),
            };
            if is_sampled {
                pending.weight = pending.weight.max(weight);
            } else {
                touch.item = None;
                if !self.recent_visits.borrow_mut().insert_new(&(&touch.token, None::<&ItemId>), touch.at) {
                    return;
                }
            }
        }
        if touch.item.is_some() {
            // Viewing an item is a visit, too.
            self.recent_visits.borrow_mut().insert(&(&touch.token, None::<&ItemId>), touch.at);
        }
        self.pending.borrow_mut().push_touch(pending);
    }

    /// Records a view that a client reports. Without a living session, `idempotency_key` makes it count once.
    pub fn record_reported_view(
        &self,
        viewer: Viewer<'_>,
        item: &ItemId,
        idempotency_key: Option<&str>,
        now: Timestamp,
    ) {
        let (source, network) = (ViewSource::Reported, viewer.network);
        match viewer.token {
            Some(token) => {
                let touch = SessionTouch { token: token.clone(), item: Some(item.clone()), at: now };
                let idempotency_key = idempotency_key.map(str::to_owned);
                self.push_touch(PendingTouch { touch, source, weight: 1, idempotency_key, network });
            }
            None => self.record_sessionless_view(network, View { item, source, weight: 1, idempotency_key }, now),
        }
    }

    /// Records a view that no user's session vouches for, unless its network viewed the item recently.
    fn record_sessionless_view(&self, network: Option<ClientNetwork>, view: View<'_>, now: Timestamp) {
        let Some(network) = network else { return self.pending.borrow_mut().push_allowed_view(view.to_pending()) };
        if self.recent_network_views.borrow_mut().insert_new(&(network, view.item), now) {
            self.pending.borrow_mut().push_unchecked_view(network, view);
        }
    }

    /// Counts the view of a touch as its outcome in Redis demands.
    fn apply_touch_outcome(&self, pending: &PendingTouch, outcome: TouchOutcome) {
        let PendingTouch { touch, source, weight, idempotency_key, network } = pending;
        let Some(item) = &touch.item else { return };
        let record_sessionless = |idempotency_key: Option<&str>| {
            let view = View { item, source: *source, weight: *weight, idempotency_key };
            self.record_sessionless_view(*network, view, touch.at);
        };
        match outcome {
            TouchOutcome::Seen => {}
            TouchOutcome::ViewCounts => self.pending.borrow_mut().count_views(item.clone(), *source, *weight),
            TouchOutcome::GuestViewCounts => record_sessionless(None),
            // A visitor whose session has ended counts as one without a session.
            TouchOutcome::Ended => record_sessionless(idempotency_key.as_deref()),
        }
    }

    /// Returns whether nothing waits to be written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pending.borrow().is_empty()
    }

    /// Returns whether a full batch waits to be written.
    #[must_use]
    pub fn has_full_batch(&self) -> bool {
        self.pending.borrow().full_batches(self.pace.borrow().batch_size()) > 0
    }

    /// Drops the views that another isolate has counted within the last minute. The platform answers from memory, so
    /// asking one view after another costs little.
    async fn check_view_limit(&self, view_limit: &RateLimit) {
        let unchecked = self.pending.borrow_mut().take_unchecked_views();
        for (network, view) in unchecked {
            let key = format!("{network} {}", view.item);
            if view_limit.check("view", Some(key)).await.is_ok() {
                self.pending.borrow_mut().push_allowed_view(view);
            }
        }
    }

    /// Takes the writer's lease for `duration` if activity is pending and no other request holds the lease.
    fn acquire_writer_lease(&self, now: Timestamp, duration: Duration) -> Option<LeaseHolder> {
        if self.is_idle() { None } else { self.writer_lease.try_take(now, duration) }
    }
}
