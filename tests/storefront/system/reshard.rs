//! `SHARDS` changes under traffic: visitors shop while isolates with the old and the new number run side by side.
//! `EDGEFRONT_RESHARD=100000` sets the number of visitors.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    env,
    num::NonZeroU16,
    rc::Rc,
    time::Instant,
};

use edgefront::{App, metrics::storage, schema::token::Token, sessions};
use futures_util::{StreamExt, stream};
use serde_json::json;
use upstash_rest::Command;

use crate::{
    schema::shards::{lines, log_in, put},
    support::Store,
};

/// Visits of each visitor after the first one.
const VISITS: usize = 3;
/// Visitors with a request in flight.
const CONCURRENT: usize = 200;

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
}

impl Rollout {
    fn new(store: &Store, steps: &[(&str, &str)], visitors: usize) -> Self {
        // A call may wait for all others of a busy machine.
        let patient = ("REDIS_TIMEOUT_MS", "120000");
        let app = |(shards, known): &(&str, &str)| store.app(&[("SHARDS", shards), ("SHARDS_KNOWN", known), patient]);
        Self { isolates: steps.iter().map(app).collect(), visits: Cell::new(0), of: visitors * VISITS }
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
    let count = env::var("EDGEFRONT_RESHARD").map_or(300, |text| text.parse().expect("a number of visitors"));
    let (rollout, started) = (Rollout::new(store, steps, count), Instant::now());
    let start = async |number| {
        let token = put(&rollout.isolates[0], None, "mug", 1).await;
        Visitor { number, token, mugs: 1, logouts: 0 }
    };
    let mut visitors: Vec<_> = stream::iter(0..count).map(start).buffer_unordered(CONCURRENT).collect().await;
    let filled = started.elapsed();
    // All visitors make their visits at the same pace, so that all have a session before the change.
    for round in 0..VISITS {
        let shop = async |mut visitor: Visitor| {
            rollout.visit(&mut visitor, round).await;
            visitor
        };
        visitors = stream::iter(visitors).map(shop).buffer_unordered(CONCURRENT).collect().await;
    }
    let last = rollout.isolates.last().expect("a step");
    let left = stream::iter(&visitors).map(async |visitor| {
        assert_eq!(lines(last, &visitor.token).await, Some(json!({"mug": visitor.mugs})));
    });
    left.buffer_unordered(CONCURRENT).collect::<()>().await;
    let mut layouts = BTreeMap::<u16, u64>::new();
    for visitor in &visitors {
        *layouts.entry(visitor.token.layout().map_or(1, NonZeroU16::get)).or_default() += 1;
    }
    let stats = storage::read_stats(&last.redis, last.clock.now()).await.unwrap();
    assert_eq!(stats.sessions, count as u64);
    let carts: BTreeSet<String> =
        store.aside.run::<Vec<_>>(Command::read("KEYS").arg("cart:*")).await.unwrap().into_iter().collect();
    let cart_of = |visitor: &Visitor| last.redis.keys().shard_of(&visitor.token).cart(&visitor.token);
    assert_eq!(carts, visitors.iter().map(cart_of).collect(), "a cart without a visitor");
    assert_eq!(stats.earlier_sessions, layouts.get(&1).copied().unwrap_or_default());
    assert_eq!(layouts.len(), 2, "{layouts:?}");
    let logouts: u32 = visitors.iter().map(|visitor| visitor.logouts).sum();
    println!(
        "{count} visitors, {} visits, {logouts} logouts: sessions of each layout {layouts:?}; {:.1} s to fill, {:.1} s in all",
        rollout.of,
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
