//! The same actions concurrently, without a gate. Redis executes them in any order, and the invariants hold in each.

use std::{rc::Rc, time::Duration};

use futures_util::future::join_all;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    PIECES,
    action::{self, Action},
    actor, explore,
    model::at_rest,
    put_sale, ready,
    state::State,
    world::World,
};
use crate::support::Store;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Case {
    actors: Vec<Vec<Action>>,
}

/// Leaves out the actions that remove mugs from a cart, so that the added mugs can be counted.
fn case() -> impl Strategy<Value = Case> {
    use Action::*;
    let visitor = action::visitor().prop_filter_map("it takes out", |action| match action {
        Set(..) | Clear(..) | Order(..) | OrderAndStop(..) | OrderAgain(..) => None,
        Add(token, _, quantity) => Some(Add(token, action::Item::Mug, quantity)),
        action => Some(action),
    });
    let visitors = prop::collection::vec(prop::collection::vec(visitor, 1..8), 4..=8);
    let crons = prop::collection::vec(prop::collection::vec(action::cron(), 1..4), 2..=4);
    (visitors, crons).prop_map(|(visitors, crons)| Case { actors: visitors.into_iter().chain(crons).collect() })
}

async fn play(store: &Store, case: &Case) -> Result<(), String> {
    store.raw(&["FLUSHDB"]).await;
    let app = store.app(&[("SESSION_LIMIT", "4"), ("SESSION_IDLE", "120"), ("FLASH_HOLD", "120")]);
    let now = app.clock.now();
    put_sale(store, now - Duration::from_mins(1), now + Duration::from_hours(1)).await;
    let world = Rc::new(World::without_gate(app, &store.clock, case.actors.len()));
    let actors = case.actors.iter().enumerate().map(|(number, actions)| actor(world.clone(), number, actions.clone()));
    join_all(actors).await.into_iter().collect::<Result<(), _>>()?;

    let state = State::read(&store.aside).await;
    at_rest(&state)?;
    let carts = state.carts.values().chain(state.abandoned.iter().map(|(_, cart)| cart));
    let mugs: u64 = carts.filter_map(|cart| cart.get("mug")).sum();
    if mugs != world.accepted() {
        return Err(format!("{} mugs were accepted: {state:?}", world.accepted()));
    }
    if state.sold > PIECES || state.holds.len() as u64 > PIECES {
        return Err(format!("more than there is: {state:?}"));
    }
    if world.logged_out().iter().any(|token| state.login.contains_key(token.as_str())) {
        return Err(format!("a token that was logged out is there: {state:?}"));
    }
    Ok(())
}

#[test]
fn concurrent_accepted_writes_are_kept_once() {
    explore(40, &case(), async { ready(Store::book().await).await }, &play);
}
