//! Compares random interleavings of visitors, the shop and overlapping crons with a naive model, request by request.
//!
//! A gate holds each request until the schedule of the case releases it. So the actions and the schedule determine a
//! case: proptest can shrink it, and a failure prints everything that replays it.
//!
//! - `EDGEFRONT_RACES=1000` runs 1,000 cases of each kind. The default is small enough for `cargo xtask test`.
//! - `EDGEFRONT_RACE='…'` replays the case that a failure printed. Run the test that printed it.

use std::{cell::Cell, fmt, panic, rc::Rc, sync::Once, time::Duration};

use edgefront::ports::time::Timestamp;
use proptest::{
    prelude::*,
    test_runner::{TestError, TestRunner},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use self::{
    action::Action,
    gate::Actor,
    model::{Model, at_rest},
    state::State,
    world::World,
};
use crate::support::{Store, TestOrigin};

/// The actions.
mod action;
/// The same actions without a gate.
mod crowd;
/// The gate: a schedule decides the order of the requests.
pub mod gate;
/// The model of the expected results.
mod model;
/// Orders.
mod orders;
/// Pages and purges.
mod pages;
/// Rows and their refreshes.
mod rows;
/// The state of Redis.
pub mod state;
/// The execution of the actions.
mod world;

/// Pieces of the flash sale.
const PIECES: u64 = 1;
/// Small limits and short times, so that the actions collide.
const VARIABLES: &[(&str, &str)] = &[
    ("SESSION_LIMIT", "4"),
    ("SESSION_IDLE", "120"),
    ("CART_MAX_LINES", "2"),
    ("CART_MAX_QUANTITY", "5"),
    ("VIEW_WINDOW", "60"),
    ("RANKING_HALF_LIFE", "300"),
    ("FLASH_HOLD", "120"),
];

/// The concurrent actions of several actors, and the order of their requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Actors<A> {
    actors: Vec<Vec<A>>,
    schedule: Vec<u8>,
}

/// [`Actors`], with actions that come before them.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Case {
    /// The actions before all others, one after another.
    first: Vec<Action>,
    actors: Vec<Vec<Action>>,
    schedule: Vec<u8>,
}

fn case() -> impl Strategy<Value = Case> {
    let several = |one, most| prop::collection::vec(one, 1..=most);
    let actors = (
        prop::collection::vec(several(action::visitor().boxed(), 5), 2..=4),
        prop::collection::vec(several(action::cron().boxed(), 2), 2..=4),
    );
    let first = prop::collection::vec(action::arrival(), 0..8);
    (first, actors, prop::collection::vec(0..12_u8, 0..120)).prop_map(|(first, (visitors, crons), schedule)| {
        let actors = visitors.into_iter().chain(crons).collect();
        Case { first, actors, schedule }
    })
}

/// Plays a case. The error names the violation and the requests released until then.
async fn play(store: &Store, case: &Case) -> Result<(), String> {
    store.raw(&["FLUSHDB"]).await;
    let app = store.app(VARIABLES);
    let (starts, ends) = (app.clock.now() - Duration::from_mins(1), app.clock.now() + Duration::from_hours(1));
    put_sale(store, starts, ends).await;

    let world = Rc::new(World::new(app.clone(), &store.clock, case.actors.len() + 1));
    let mut model = Model::new(&app.config, store.redis.keys(), Timestamp::from_millis(ends.as_secs() * 1000));
    let mut executed = async |door: usize| {
        let after = State::read(&store.aside).await;
        let mut doing = world.doing[door].borrow_mut();
        model.executed(doing.as_mut().ok_or("a request of nobody")?, after)
    };
    let actor = |(number, actions): (usize, &Vec<Action>)| actor(world.clone(), number, actions.clone());
    let mut outcome = world.gate.play(vec![actor((0, &case.first))], &[], &mut executed).await;
    if outcome.is_ok() {
        let actors = (1..).zip(&case.actors).map(actor).collect();
        outcome = world.gate.play(actors, &case.schedule, &mut executed).await;
    }
    let outcome = outcome.and_then(|()| at_rest(&model.now));
    outcome.map_err(|wrong| world.named(&format!("{wrong}\nreleased requests:\n{}", world.gate.trace())))
}

fn actor(world: Rc<World>, number: usize, actions: Vec<Action>) -> Actor {
    Box::pin(async move {
        let redis = world.redis(number);
        for action in actions {
            world.perform(number, &redis, action).await?;
        }
        Ok(())
    })
}

async fn put_sale(store: &Store, starts: Timestamp, ends: Timestamp) {
    let row = json!({
        "id": "pan", "sale_starts_at": starts.as_secs(), "sale_ends_at": ends.as_secs(), "sale_pieces": PIECES,
        "sale_sold": 0,
    });
    store.raw(&["SET", "inv:pan", &row.to_string()]).await;
    store.raw(&["ZADD", "schedule:", &ends.to_string(), "pan"]).await;
    store.raw(&["ZADD", "delay:", "3600", "pan"]).await;
}

/// A store, and an origin.
struct Place {
    store: Store,
    origin: TestOrigin,
}

impl Place {
    async fn new() -> Self {
        Self { store: ready(Store::book().await).await, origin: TestOrigin::start() }
    }
}

/// Loads all scripts. Otherwise the first call of a script would take one request more, and a replay could differ.
pub async fn ready(store: Store) -> Store {
    store.load_scripts().await;
    store
}

/// Plays `cases` of a kind, or the case in `EDGEFRONT_RACE`. Shrinks and prints a failing case.
fn explore<P, C>(
    cases: u32,
    kind: &impl Strategy<Value = C>,
    place: impl Future<Output = P>,
    play: &impl AsyncFn(&P, &C) -> Result<(), String>,
) where
    C: fmt::Debug + Clone + Serialize + DeserializeOwned,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let place = runtime.block_on(place);
    let play = |case: &C| runtime.block_on(play(&place, case));
    if let Ok(text) = std::env::var("EDGEFRONT_RACE") {
        let case = serde_json::from_str(&text).expect("a case as it was printed");
        // With several shards, the shard of a new token is random.
        return (0..10).for_each(|_| play(&case).unwrap_or_else(|wrong| panic!("{wrong}")));
    }
    let cases = std::env::var("EDGEFRONT_RACES").map_or(cases, |cases| cases.parse().expect("a number of cases"));
    let config =
        ProptestConfig { cases, max_shrink_iters: 600, failure_persistence: None, ..ProptestConfig::default() };
    match quietly(|| TestRunner::new(config).run(kind, |case| play(&case).map_err(TestCaseError::fail))) {
        Ok(()) => {}
        Err(TestError::Fail(wrong, case)) => panic!("{wrong}\nEDGEFRONT_RACE='{}'", json!(case)),
        Err(aborted) => panic!("{aborted}"),
    }
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Suppresses the output of this thread's panics during `work`. Shrinking a case panics hundreds of times; the caller
/// reports the last one.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                usual(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = work();
    IS_QUIET.set(false);
    result
}

#[test]
fn concurrent_visitors_and_crons_match_the_model() {
    explore(80, &case(), async { ready(Store::book().await).await }, &play);
}

#[test]
fn concurrent_visitors_and_crons_match_the_model_with_shards() {
    explore(60, &case(), async { ready(Store::sharded().await).await }, &play);
}
