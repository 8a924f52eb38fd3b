//! Runs of the models in `models`, executed by the real functions and scripts on a real server. After each action the
//! real state must be the model's. Two kinds of runs:
//!
//! - random runs, until nothing can happen any more. `EDGEFRONT_REPLAYS=500` sets their number for each bound of a model;
//! - the counterexample of every mutation: a run that only a model without one of its rules permits.

use std::{env, fmt::Debug};

use edgefront_models::{Counterexample, Protocol, random_runs};

use super::races::ready;
use crate::support::Store;

mod flash;
mod pages;
mod sessions;

/// Random runs for each of a model's bounds.
const RUNS: usize = 25;
const SEED: u64 = 20_261_123;

/// The real counterpart of a model.
trait Real<M: Protocol> {
    /// In an empty database.
    fn new(store: &Store, model: &M) -> impl Future<Output = Self>;

    /// Executes an action. The model goes from the state `before` to the state `after`; `rest` are the later actions.
    async fn act(&mut self, store: &Store, step: &Step<'_, M>) -> Result<(), String>;

    /// Compares the real state with the model's.
    async fn compare(&self, store: &Store, model: &M, state: &M::State) -> Result<(), String>;
}

/// A step of a run.
struct Step<'a, M: Protocol> {
    model: &'a M,
    before: &'a M::State,
    action: &'a M::Action,
    after: &'a M::State,
    rest: &'a [M::Action],
}

/// Executes `actions`. Actions that cannot happen with all rules are left out.
async fn replay<M: Protocol, R: Real<M>>(store: &Store, model: &M, actions: &[M::Action]) -> Result<(), String> {
    store.raw(&["FLUSHDB"]).await;
    store.gateway.set_fault(None);
    let mut real = R::new(store, model).await;
    let mut before = model.init_states().remove(0);
    for (position, action) in actions.iter().enumerate() {
        let Some(after) = model.step(&before, action) else { continue };
        let step = Step { model, before: &before, action, after: &after, rest: &actions[position + 1..] };
        let compared = match real.act(store, &step).await {
            Ok(()) => real.compare(store, model, &after).await,
            Err(wrong) => Err(wrong),
        };
        compared.map_err(|wrong| format!("{wrong}\nafter {:?}\nmodel: {after:?}", &actions[..=position]))?;
        before = after;
    }
    Ok(())
}

/// Executes random runs within all bounds, and `counterexamples`.
async fn replay_all<M: Protocol<Rule: Debug>, R: Real<M>>(counterexamples: Vec<(M::Rule, Option<Counterexample<M>>)>) {
    let store = ready(Store::book().await).await;
    let count = env::var("EDGEFRONT_REPLAYS").map_or(RUNS, |count| count.parse().expect("a number of runs"));
    for model in M::all_bounds() {
        for run in random_runs(&model, count, SEED) {
            if let Err(wrong) = replay::<M, R>(&store, &model, &run).await {
                panic!("{wrong}");
            }
        }
    }
    for (rule, found) in counterexamples {
        let Counterexample { model, actions, .. } = found.expect("every mutation is found");
        if let Err(wrong) = replay::<M, R>(&store, &model, &actions).await {
            panic!("does the real code lack {rule:?}? {wrong}");
        }
    }
}

/// An error with both sides, unless they are equal.
fn equal<T: PartialEq + Debug>(what: &str, real: &T, model: &T) -> Result<(), String> {
    if real == model { Ok(()) } else { Err(format!("{what}: {real:?}, and in the model {model:?}")) }
}
