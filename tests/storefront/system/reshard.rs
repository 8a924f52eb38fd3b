//! `SHARDS` changes under traffic: visitors shop while isolates with the old and the new number run side by side, and
//! clean up sessions. `EDGEFRONT_RESHARD=100000` sets the number of visitors.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    env,
    num::NonZeroU16,
    rc::Rc,
    time::{Duration, Instant},
};

use edgefront::{
    App,
    metrics::storage,
    ports::budget::Budget,
    schema::token::Token,
    sessions::{self, CleanupProbe},
};
use futures_util::{StreamExt, future::join3, stream};
use serde_json::json;
use upstash_rest::Command;

use crate::{
    schema::shards::{lines, put},
    sessions::log_in,
    support::Store,
};

/// Visits of each visitor after the first one.
const VISITS: usize = 3;
/// Visitors with a request in flight.
const CONCURRENT: usize = 200;
/// One visitor in ten leaves after the first visit. These sessions become idle.
const LEAVES: usize = 10;
/// Between two rounds of visits: less than `SESSION_IDLE`, so that each visit finds its session.
const PAUSE: Duration = Duration::from_secs(40);
const SESSION_IDLE: &str = "60";

/// A visitor, and the cart that the shop has accepted.
struct Visitor {
    number: usize,
    token: Token,
    mugs: u32,
    logouts: u32,
}

/// A shop whose isolates are deployed anew while visitors shop.
struct Rollout {
    /// An isolate of each step; between two steps, visitors meet isolates of both.
    isolates: Vec<Rc<App>>,
    visits: Cell<usize>,
    of: usize,
    /// Sessions that the cleanup ended, and their carts.
    cleaned: Cell<(u64, u64)>,
    is_open: Cell<bool>,
}

impl Rollout {
    /// The limit of sessions is as low as the layouts of all steps allow.
    fn new(store: &Store, steps: &[(&str, &str)], visitors: usize) -> Self {
        // A call may wait for all others of a busy machine.
        let patient = ("REDIS_TIMEOUT_MS", "120000");
        // Without a change of `SHARDS`, each shard has an equal share, and some shards hold more sessions than others.
        let limit = (visitors * if steps[0].0 == "1" { 1 } else { 2 }).to_string();
        let session = [("SESSION_IDLE", SESSION_IDLE), ("SESSION_LIMIT", &limit), patient];
        let app = |(shards, known): &(&str, &str)| {
            store.app(&[&[("SHARDS", *shards), ("SHARDS_KNOWN", known)], session.as_slice()].concat())
        };
        Self {
            isolates: steps.iter().map(app).collect(),
            visits: Cell::new(0),
            of: visitors * VISITS * (LEAVES - 1) / LEAVES,
            cleaned: Cell::default(),
            is_open: Cell::new(true),
        }
    }

    /// Runs the cleanup of idle sessions, and of those over the limit, over and over, each time on another isolate. At
    /// each moment, two such crons run.
    async fn clean(&self, mut random: usize) {
        while self.is_open.get() {
            random += 1;
            self.clean_once(self.isolate(random)).await;
            // Without other work, a cleanup may not wait for anything.
            tokio::task::yield_now().await;
        }
    }

    async fn clean_once(&self, app: &Rc<App>) {
        for probe in [CleanupProbe::Idle, CleanupProbe::Overflow, CleanupProbe::Skip] {
            let budget = Budget::new(app.clock.clone(), Duration::from_mins(1), 1_000_000);
            let report = sessions::clean(&app.redis, &app.config.session, probe, &budget).await.unwrap();
            let (sessions, carts) = self.cleaned.get();
            self.cleaned.set((sessions + report.sessions, carts + report.carts));
        }
    }

    /// The isolate that a request meets. A step begins at an equal part of all visits and ends in the middle of the
    /// next part, so half of the time isolates of two steps run.
    fn isolate(&self, random: usize) -> &Rc<App> {
        let place = self.visits.get() * self.isolates.len() * 2 / self.of;
        let late = place / 2 * 2 == place && place > 0 && random.is_multiple_of(2);
        let step = (place / 2 - usize::from(late)).min(self.isolates.len() - 1);
        &self.isolates[step]
    }

    /// One visit: a read, and a change of the cart, a login or a logout.
    async fn visit(&self, visitor: &mut Visitor, round: usize) {
        let random = visitor.number * 7 + round * 3;
        self.visits.set(self.visits.get() + 1);
        assert_eq!(lines(self.isolate(random + 1), &visitor.token).await, Some(json!({"mug": visitor.mugs})));
        let app = self.isolate(random);
        match random % 8 {
            0 => {
                visitor.token = log_in(app, Some(&visitor.token), &format!("user-{}", visitor.number)).await;
            }
            1 => {
                let (now, config) = (app.clock.now(), &app.config.session);
                sessions::log_out(&app.redis, &visitor.token, now, config).await.unwrap();
                visitor.logouts += 1;
                // With the cookie of the ended session.
                visitor.token = put(self.isolate(random + 1), Some(&visitor.token), "mug", visitor.mugs).await;
            }
            _ => {
                visitor.mugs += 1;
                let token = put(app, Some(&visitor.token), "mug", visitor.mugs).await;
                assert_eq!(token, visitor.token, "the session was unknown");
            }
        }
    }
}

/// Lets all visitors shop during the `steps`, each with its `SHARDS` and `SHARDS_KNOWN`. No cart is lost or doubled.
async fn reshard(store: &Store, steps: &[(&str, &str)]) {
    let count: usize = env::var("EDGEFRONT_RESHARD").map_or(300, |text| text.parse().expect("a number of visitors"));
    let (rollout, started) = (Rollout::new(store, steps, count), Instant::now());
    let start = async |number| {
        let token = put(&rollout.isolates[0], None, "mug", 1).await;
        Visitor { number, token, mugs: 1, logouts: 0 }
    };
    let mut visitors: Vec<_> = stream::iter(0..count).map(start).buffer_unordered(CONCURRENT).collect().await;
    let filled = started.elapsed();
    let (left, mut visitors): (Vec<_>, Vec<_>) = visitors.drain(..).partition(|visitor| visitor.number % LEAVES == 0);
    // All visitors make their visits at the same pace, so that all have a session before the change.
    let shopping = async {
        for round in 0..VISITS {
            store.clock.advance(PAUSE);
            let shop = async |mut visitor: Visitor| {
                rollout.visit(&mut visitor, round).await;
                visitor
            };
            visitors = stream::iter(visitors).map(shop).buffer_unordered(CONCURRENT).collect().await;
        }
        rollout.is_open.set(false);
        visitors
    };
    let (visitors, ..) = join3(Box::pin(shopping), Box::pin(rollout.clean(0)), Box::pin(rollout.clean(1))).await;
    let last = rollout.isolates.last().expect("a step");
    rollout.clean_once(last).await;
    let live = stream::iter(&visitors).map(async |visitor| {
        assert_eq!(lines(last, &visitor.token).await, Some(json!({"mug": visitor.mugs})));
    });
    live.buffer_unordered(CONCURRENT).collect::<()>().await;
    let mut layouts = BTreeMap::<u16, u64>::new();
    for visitor in &visitors {
        *layouts.entry(visitor.token.layout().map_or(1, NonZeroU16::get)).or_default() += 1;
    }
    let stats = storage::read_stats(&last.redis, last.clock.now()).await.unwrap();
    assert_eq!(stats.sessions, visitors.len() as u64);
    // Each session that became idle ended once, with its cart.
    assert_eq!(rollout.cleaned.get(), (left.len() as u64, left.len() as u64));
    assert!(!left.is_empty() && !visitors.is_empty());
    let carts: BTreeSet<String> =
        store.aside.run::<Vec<_>>(Command::read("KEYS").arg("cart:*")).await.unwrap().into_iter().collect();
    let cart_of = |visitor: &Visitor| last.redis.keys().shard_of(&visitor.token).cart(&visitor.token);
    assert_eq!(carts, visitors.iter().map(cart_of).collect(), "a cart without a visitor");
    assert_eq!(stats.earlier_sessions, layouts.get(&1).copied().unwrap_or_default());
    assert_eq!(layouts.len(), 2, "{layouts:?}");
    let logouts: u32 = visitors.iter().map(|visitor| visitor.logouts).sum();
    println!(
        "{count} visitors, {} visits, {logouts} logouts, {} sessions ended by the cleanup: sessions of each layout {layouts:?}; {:.1} s to fill, {:.1} s in all",
        visitors.len() * VISITS,
        left.len(),
        filled.as_secs_f64(),
        started.elapsed().as_secs_f64(),
    );
}

#[tokio::test]
async fn no_session_or_cart_is_lost_on_one_server() {
    reshard(&Store::book().await, &[("1", ""), ("1", "1, 16"), ("16", "1, 16")]).await;
}

#[tokio::test]
async fn no_session_or_cart_is_lost_on_a_cluster() {
    reshard(&Store::spread().await, &[("4", ""), ("4", "4, 16"), ("16", "4, 16")]).await;
}
