//! The lease of a render, and its end: the other requests for the page get a stored page, a note, or the lease.

use std::rc::Rc;

use super::{
    background::BackgroundRender,
    render::{StreamingPage, acquire_memory},
};
use crate::{
    App,
    page_cache::{
        hit_for_miss::Unstorable,
        lookup::Lease,
        memory::RenderGuard,
        store::{self, PageWriter},
        stored_page::StoredPage,
    },
    ports::{answer::BackgroundTask, error::Error},
};

/// The lease of a render that is under way, marked in the isolate.
pub struct RenderLease {
    lease: Lease,
    /// Requests of this isolate wait until it is dropped.
    guard: RenderGuard,
}

/// The end of a lease.
pub enum LeaseEnd {
    /// The page is stored.
    Store(Box<StoredPage>),
    /// The copy of a streamed body is stored. If the page cannot be stored and nobody else has it, a hit-for-miss note remains.
    StoreCopy { page: Box<StreamingPage>, others_have_page: bool },
    /// A hit-for-miss note takes the place of the lease in Redis. The isolate has its own note already.
    HitForMiss(Unstorable),
    /// The page is rendered again, uncompressed.
    RenderUncompressed(Box<BackgroundRender>),
    /// The next request may render the page.
    Release,
}

impl RenderLease {
    /// Marks the render in the isolate.
    #[must_use]
    pub fn new(app: &App, lease: Lease) -> Self {
        let guard = app.pages.renders.start(lease.key().hash(), app.clock.now() + app.config.origin.timeout);
        Self { lease, guard }
    }

    /// The [stamp](Lease::stamp) of the lease.
    #[must_use]
    pub const fn stamp(&self) -> u64 {
        self.lease.stamp()
    }

    /// Ends the lease. The requests of this isolate wait until then.
    pub async fn end(self, app: &Rc<App>, end: LeaseEnd) {
        finish(app, self.lease, Some(self.guard), end).await;
    }

    /// Ends the lease after the response. Requests of this isolate wait for it only if a page may be stored.
    #[must_use]
    pub fn end_later(self, app: Rc<App>, end: LeaseEnd) -> BackgroundTask {
        let Self { lease, guard } = self;
        let may_bring_page = matches!(end, LeaseEnd::Store(_) | LeaseEnd::StoreCopy { .. });
        let guard = may_bring_page.then_some(guard);
        Box::pin(async move { finish(&app, lease, guard, end).await })
    }
}

async fn finish(app: &Rc<App>, lease: Lease, guard: Option<RenderGuard>, end: LeaseEnd) {
    match end {
        LeaseEnd::Store(page) => store_page(app, &lease, *page, guard).await,
        LeaseEnd::StoreCopy { page, others_have_page } => match page.complete(app, lease.key()).await {
            Ok(page) => store_page(app, &lease, page, guard).await,
            Err(why) if why.reason.is_lasting() && !others_have_page => {
                app.pages.note_unstorable(lease.key().hash(), why.reason, app.clock.now());
                log_error(store::note_unstorable(&app.redis, &lease, &why).await);
            }
            Err(_) => log_error(store::release(&app.redis, &lease).await),
        },
        LeaseEnd::HitForMiss(why) => log_error(store::note_unstorable(&app.redis, &lease, &why).await),
        LeaseEnd::RenderUncompressed(render) => render.run(lease, None).await,
        LeaseEnd::Release => log_error(store::release(&app.redis, &lease).await),
    }
}

/// Stores a page, and keeps a copy only if Redis stored it: a purged page must not stay in the isolate. Then drops the
/// render's `guard`, so that waiting requests find the copy.
async fn store_page(app: &App, lease: &Lease, page: StoredPage, guard: Option<RenderGuard>) {
    let (now, limit) = (app.clock.now(), app.config.page.total_bytes);
    let epoch = app.pages.epoch(now);
    let Some(_permit) = acquire_memory(app, Some(page.body.len())) else {
        log::warn!("page cache: a page was not stored: other pages take all of the memory for pages");
        return log_error(store::release(&app.redis, lease).await);
    };
    let page = StoredPage { render: lease.id().to_owned(), ..page };
    let writer = PageWriter { redis: &app.redis, account: &app.pages.account, now, limit };
    match writer.put(lease, &page).await {
        Ok((is_stored, due)) => {
            if is_stored {
                let page = Rc::new(page);
                app.pages.keep(lease.key().hash(), page.clone(), epoch);
                app.pages.note_success(lease.key().hash());
                drop(guard);
                app.location.put(lease.key(), &page, app.clock.now()).await;
            }
            log_error(writer.complete_account(due).await);
        }
        Err(error) => {
            log::warn!("page cache: a page was not stored: {error}");
            // Other requests for the page wait for this lease.
            log_error(store::release(&app.redis, lease).await);
        }
    }
}

/// Releases a lease that Redis may grant although its reply was late. While the circuit is open, Redis gets no such request; then
/// the lease expires.
pub fn release_late(app: Rc<App>, lease: Lease) -> BackgroundTask {
    Box::pin(async move {
        let redis = app.redis.for_retry().await;
        if !app.circuit.is_open() {
            log_error(store::release(&redis, &lease).await);
        }
    })
}

/// Releases a lease without a page.
pub fn release(app: &Rc<App>, lease: Lease) -> BackgroundTask {
    let app = app.clone();
    Box::pin(async move { log_error(store::release(&app.redis, &lease).await) })
}

pub fn log_error(result: Result<(), Error>) {
    if let Err(error) = result {
        log::warn!("page cache: {error}");
    }
}
