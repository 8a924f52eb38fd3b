//! Records session activity and item views. Batches writes and flushes them after the response.
//!
//! All that the requests of a tenth of a second leave goes into one pipeline: the first of them sends it, and whatever comes meanwhile waits
//! for the next, which the same request sends. A busy shop writes a hundred views with one request.
//!
//! A session is made by whoever wants one, so only a user's counts by itself: once in a window, as Redis knows. All other views count once
//! for a network, item and window, as this isolate knows, and once in a minute, as the platform's rate limit knows that all isolates ask.
//!
//! An isolate that is evicted loses what waits at that moment: the views of a tenth of a second and of the pipeline that is on its way, and
//! what the last one said is to be counted.
//! A pipeline that fails is not repeated, since nobody knows whether it was executed: its views are lost, and so is nothing else.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Duration,
};

use crate::{
    App,
    config::SessionConfig,
    ports::{answer::BackgroundTask, error::Error, network::ClientNetwork, recent::RecentSet, sort, time::Timestamp},
    ranking,
    schema::{ids::ItemId, redis::Redis, token::Token},
    sessions::{self, SessionTouch, TOUCH_EVERY, TouchOutcome},
};
use upstash_rest::FromReply;

/// The source of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// We served the item's page, with status 200: it exists.
    Served,
    /// Somebody says that another cache served it. It counts only if the item ranks already: made-up names cannot push real items out
    /// of the ranking.
    Reported,
}

/// The viewer, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Viewer<'a> {
    /// Whose MAC is right; whether the session lives, Redis says.
    pub token: Option<&'a Token>,
    /// None off the platform: then every view counts that is no session's.
    pub network: Option<ClientNetwork>,
}

/// Redis deadline of a flush; no visitor waits.
const DEADLINE: Duration = Duration::from_secs(5);
/// Events within this time share a pipeline.
const GATHER: Duration = Duration::from_millis(100);
/// How long one request goes on sending what others leave; a Worker has 30 s after its answer.
const LONGEST_TURN: Duration = Duration::from_secs(15);
/// Sights in one call of the script, and counts in one pipeline.
const MOST_AT_ONCE: usize = 200;
/// Sights, and counts, that wait at most: more can only be where Redis is silent.
const MOST_WAITING: usize = 10_000;
/// Visits that are remembered for [`TOUCH_EVERY`], and views of networks for [`SessionConfig::view_window`], in each of two generations:
/// 2 MB of them all.
const MOST_RECENT: usize = 20_000;

/// Session activity and views of one isolate that are not yet written.
pub struct Activity {
    sights: RefCell<Vec<Waiting>>,
    /// Views that the rate limit has not let through yet.
    claims: RefCell<Vec<(ClientNetwork, Claim)>>,
    counts: RefCell<HashMap<(ItemId, View), u32>>,
    /// Reported views of nobody's, each with its idempotency key.
    once: RefCell<Vec<(ItemId, String)>>,
    /// Recent activity by session and item. A hash collision drops one touch, which is harmless.
    visits: RefCell<RecentSet>,
    /// Recent views by network and item.
    viewed: RefCell<RecentSet>,
    /// Until when the request that sends is trusted to be alive.
    turn: Cell<Option<Timestamp>>,
}

impl Activity {
    /// Nothing yet.
    #[must_use]
    pub fn new(config: &SessionConfig) -> Self {
        let (sights, claims, counts, once, turn) = Default::default();
        let visits = RefCell::new(RecentSet::new(TOUCH_EVERY, MOST_RECENT));
        let viewed = RefCell::new(RecentSet::new(config.view_window, MOST_RECENT));
        Self { sights, claims, counts, once, visits, viewed, turn }
    }

    /// Notes a visit, and the view of `item`. What the same session did a moment ago changes nothing and is left out.
    pub fn note(&self, viewer: Viewer<'_>, item: Option<&ItemId>, now: Timestamp) {
        let Some(token) = viewer.token else {
            return item.into_iter().for_each(|item| self.claim(viewer.network, (item, View::Served, None), now));
        };
        let mut visits = self.visits.borrow_mut();
        if visits.is_repeated(&(token, item), now) {
            return;
        }
        if item.is_some() {
            // Whoever looks at an item is here, too.
            visits.note(&(token, None::<&ItemId>), now);
        }
        self.push(viewer, SessionTouch { token: token.clone(), item: item.cloned(), at: now }, View::Served, None);
    }

    /// Notes a view that somebody reports; `key` makes it count once, where no session does.
    pub fn note_reported(&self, viewer: Viewer<'_>, item: &ItemId, key: Option<&str>, now: Timestamp) {
        match viewer.token {
            Some(token) => {
                let sight = SessionTouch { token: token.clone(), item: Some(item.clone()), at: now };
                self.push(viewer, sight, View::Reported, key.map(str::to_owned));
            }
            None => self.claim(viewer.network, (item, View::Reported, key), now),
        }
    }

    /// Returns whether something waits, and no other request is at it.
    fn take_turn(&self, now: Timestamp) -> bool {
        let is_free = !self.is_empty() && self.turn.get().is_none_or(|until| until <= now);
        if is_free {
            self.turn.set(Some(now + DEADLINE * 2));
        }
        is_free
    }

    fn push(&self, viewer: Viewer<'_>, sight: SessionTouch, view: View, key: Option<String>) {
        let mut sights = self.sights.borrow_mut();
        if sights.len() < MOST_WAITING {
            sights.push(Waiting { sight, view, key, network: viewer.network });
        }
    }

    /// A view that no user's session vouches for.
    fn claim(&self, network: Option<ClientNetwork>, (item, view, key): (&ItemId, View, Option<&str>), now: Timestamp) {
        let claim = || (item.clone(), view, key.map(str::to_owned));
        let Some(network) = network else { return self.admit(claim()) };
        if !self.viewed.borrow_mut().is_repeated(&(network, item), now) && self.claims.borrow().len() < MOST_WAITING {
            self.claims.borrow_mut().push((network, claim()));
        }
    }

    fn admit(&self, (item, view, key): Claim) {
        match key {
            Some(key) if self.once.borrow().len() < MOST_WAITING => self.once.borrow_mut().push((item, key)),
            Some(_) => {}
            None => self.count(&item, view, 1),
        }
    }

    fn count(&self, item: &ItemId, view: View, number: u32) {
        let mut counts = self.counts.borrow_mut();
        if counts.len() < MOST_WAITING {
            *counts.entry((item.clone(), view)).or_default() += number;
        }
    }

    /// Redis knows of the session.
    fn noted(&self, Waiting { sight, view, key, network }: &Waiting, noted: TouchOutcome) {
        let Some(item) = &sight.item else { return };
        match noted {
            TouchOutcome::Seen => {}
            TouchOutcome::ViewCounts => self.count(item, *view, 1),
            TouchOutcome::GuestViewCounts => self.claim(*network, (item, *view, None), sight.at),
            // A session that has ended is a visitor without one.
            TouchOutcome::Ended => self.claim(*network, (item, *view, key.as_deref()), sight.at),
        }
    }

    /// Returns whether there is a pipeline's worth.
    fn is_full(&self) -> bool {
        self.sights.borrow().len().max(self.counts.borrow().len()) >= MOST_AT_ONCE
    }

    fn is_empty(&self) -> bool {
        let is_known = self.counts.borrow().is_empty() && self.once.borrow().is_empty();
        is_known && self.sights.borrow().is_empty() && self.claims.borrow().is_empty()
    }

    /// Takes what one pipeline carries.
    fn take(&self) -> Batch {
        let mut sights = self.sights.borrow_mut();
        let first = sights.len().min(MOST_AT_ONCE);
        let sights = sights.drain(..first).collect();
        let mut counts = self.counts.borrow_mut();
        let some: Vec<_> = counts.keys().take(MOST_AT_ONCE).cloned().collect();
        let counts = some.into_iter().filter_map(|what| counts.remove_entry(&what)).collect();
        let mut once = self.once.borrow_mut();
        let first = once.len().min(MOST_AT_ONCE);
        Batch { sights, counts, once: once.drain(..first).collect() }
    }
}

/// A visit.
struct Waiting {
    sight: SessionTouch,
    view: View,
    /// The idempotency key of who reported it.
    key: Option<String>,
    network: Option<ClientNetwork>,
}

/// A view that counts if nobody of the same network had it recently, with the idempotency key of who reported it.
type Claim = (ItemId, View, Option<String>);

struct Batch {
    sights: Vec<Waiting>,
    counts: Vec<((ItemId, View), u32)>,
    once: Vec<(ItemId, String)>,
}

/// The work that writes what waits; None if nothing does, or another request is at it.
#[must_use]
pub fn flush(app: &Rc<App>, now: Timestamp) -> Option<BackgroundTask> {
    app.activity.take_turn(now).then(|| -> BackgroundTask { Box::pin(write(app.clone())) })
}

async fn write(app: Rc<App>) {
    let redis = app.redis.with_deadline(DEADLINE);
    let end = app.clock.now() + LONGEST_TURN;
    while !app.activity.is_empty() {
        if !app.activity.is_full() {
            app.clock.sleep(GATHER).await;
        }
        if let Err(error) = send(&app, &redis).await {
            log::warn!("views were not written: {error}");
        }
        let now = app.clock.now();
        if now >= end {
            // The next request goes on.
            break;
        }
        app.activity.turn.set(Some(now + DEADLINE * 2));
    }
    app.activity.turn.set(None);
}

/// Asks the platform's rate limit which views are new to all isolates. It answers out of memory, so they wait for each other.
async fn ask_limit(app: &App) {
    let mut claims = app.activity.claims.take();
    let later = claims.split_off(claims.len().min(MOST_AT_ONCE));
    app.activity.claims.borrow_mut().extend(later);
    for (network, claim) in claims {
        let who = format!("{network} {}", claim.0);
        if app.limits.views.check("view", Some(who)).await.is_ok() {
            app.activity.admit(claim);
        }
    }
}

/// Sends one pipeline. What counts as a view is known by its reply, and is written by the next one.
async fn send(app: &App, redis: &Redis) -> Result<(), Error> {
    ask_limit(app).await;
    let (keys, Batch { mut sights, counts, once }) = (redis.keys(), app.activity.take());
    // Each call of the script is for the sessions of one shard.
    let shard_of = |waiting: &Waiting| keys.shard_of(&waiting.sight.token);
    sort::sort_by(&mut sights, |one, other| shard_of(one).cmp(&shard_of(other)));
    let shards: Vec<_> =
        sights.chunk_by(|one, next| keys.shard_of(&one.sight.token) == keys.shard_of(&next.sight.token)).collect();
    let touches = shards.iter().filter_map(|sights| {
        let shard = keys.shard_of(&sights.first()?.sight.token);
        let sights: Vec<_> = sights.iter().map(|waiting| &waiting.sight).collect();
        Some(sessions::touch_command(shard, &sights, &app.config.session))
    });
    let counts = counts.iter().map(|((item, view), number)| match view {
        View::Served => ranking::count(keys, item, *number),
        View::Reported => ranking::count_if_ranked(keys, item, *number),
    });
    let once = once.iter().map(|(item, key)| ranking::count_once(keys, item, key));
    let commands: Vec<_> = touches.chain(counts).chain(once).collect();

    let mut replies = redis.pipeline(&commands).await?.into_iter();
    let mut result = Ok(());
    for (sights, reply) in shards.into_iter().zip(replies.by_ref()) {
        match reply.and_then(Vec::<TouchOutcome>::from_reply) {
            Ok(noted) => sights.iter().zip(noted).for_each(|(waiting, noted)| app.activity.noted(waiting, noted)),
            Err(error) => result = Err(error),
        }
    }
    Ok(replies.try_for_each(|reply| reply.map(drop)).and(result)?)
}
