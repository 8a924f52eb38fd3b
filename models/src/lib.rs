//! Models of edgefront's protocols. A model reads as the specification of its protocol: a state, the actions that may
//! happen next, and the properties that hold in every interleaving of them. `stateright` explores all interleavings
//! within the model's bounds, with lost replies, repeated requests, crashes and the passage of time.
//!
//! - [`sessions`]: activity, login, logout, cleanup.
//! - [`pages`]: renders and copies against purges and unsafe requests.
//! - [`flash`]: reservations and orders of a flash sale.
//!
//! [`histories`] checks what clients of a running shop saw.
//!
//! Each protocol is a set of rules. A model with one rule switched off is a mutation, and the tests demand that the
//! checker finds a counterexample for every one. Other tests execute the actions of a model on a real Redis: see
//! `tests/storefront/system/models`.

pub mod flash;
pub mod histories;
pub mod pages;
pub mod sessions;

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    hash::Hash,
};

use stateright::{Checker, HasDiscoveries, Model};

/// A model whose rules can be switched off.
pub trait Protocol: Model<State: StateBounds, Action: ActionBounds> + Clone + Send + Sync + 'static {
    /// A rule of the protocol.
    type Rule: Copy + Debug + PartialEq + 'static;
    const RULES: &'static [Self::Rule];

    /// The bounds that the tests explore.
    fn all_bounds() -> Vec<Self>;

    /// The same protocol without `rule`.
    #[must_use]
    fn without(self, rule: Self::Rule) -> Self;

    /// The state after `action`; `None` if it cannot happen in `state`.
    fn step(&self, state: &Self::State, action: &Self::Action) -> Option<Self::State> {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        let action = actions.into_iter().find(|other| other == action)?;
        self.next_state(state, action)
    }

    /// Nothing can happen any more.
    fn is_at_rest(&self, state: &Self::State) -> bool {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions.is_empty()
    }
}

/// The bounds of every model's states.
pub trait StateBounds: Clone + Debug + PartialEq + Hash + Send + Sync {}
impl<T: Clone + Debug + PartialEq + Hash + Send + Sync> StateBounds for T {}

/// The bounds of every model's actions.
pub trait ActionBounds: Clone + Debug + PartialEq + Send + Sync {}
impl<T: Clone + Debug + PartialEq + Send + Sync> ActionBounds for T {}

/// The result of an exploration.
#[derive(Debug)]
pub struct Explored<A> {
    /// Different states.
    pub states: usize,
    /// Transitions between them.
    pub transitions: usize,
    /// The length of the longest path, in states.
    pub depth: usize,
    /// By the name of the violated property: the actions that lead to the violation.
    pub counterexamples: BTreeMap<&'static str, Vec<A>>,
}

/// Explores all states of `model`, or until there is a counterexample. It is a short one, because the search is
/// breadth-first.
pub fn explore<M: Protocol>(model: M) -> Explored<M::Action> {
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let counterexamples = checker.discoveries().into_iter();
    Explored {
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        depth: checker.max_depth(),
        counterexamples: counterexamples.map(|(name, path)| (name, path.into_actions())).collect(),
    }
}

/// A counterexample to the model without `rule`: the bounds, the violated property and the actions. `None` if there is
/// none within any of the bounds.
#[must_use]
pub fn counterexample<M: Protocol>(rule: M::Rule) -> Option<Counterexample<M>> {
    M::all_bounds().into_iter().find_map(|model| {
        let explored = explore(model.clone().without(rule));
        let (property, actions) = explored.counterexamples.into_iter().next()?;
        Some(Counterexample { model, property, actions })
    })
}

/// A run of a model without one of its rules, which violates a property.
#[derive(Debug)]
pub struct Counterexample<M: Protocol> {
    /// With all rules.
    pub model: M,
    pub property: &'static str,
    pub actions: Vec<M::Action>,
}

/// A function with the compiler's optimisations of this crate, for callers that have none.
macro_rules! counterexamples {
    ($name:ident, $model:ty) => {
        /// The counterexample of each rule.
        #[must_use]
        pub fn $name() -> Vec<(<$model as Protocol>::Rule, Option<Counterexample<$model>>)> {
            <$model as Protocol>::RULES.iter().map(|rule| (*rule, counterexample::<$model>(*rule))).collect()
        }
    };
}
counterexamples!(of_flash, flash::Flash);
counterexamples!(of_pages, pages::Pages);
counterexamples!(of_sessions, sessions::Sessions);

/// `count` random runs from the first state until nothing can happen any more. The same `seed` gives the same runs.
#[must_use]
pub fn random_runs<M: Protocol>(model: &M, count: usize, seed: u64) -> Vec<Vec<M::Action>> {
    // Marsaglia's xorshift (2003).
    let mut random = seed | 1;
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap_or(0) % limit
    };
    let run = |_| {
        let mut state = model.init_states().remove(0);
        let mut actions = Vec::new();
        loop {
            let mut steps = model.next_steps(&state);
            if steps.is_empty() {
                return actions;
            }
            let (action, next) = steps.swap_remove(below(steps.len()));
            actions.push(action);
            state = next;
        }
    };
    (0..count).map(run).collect()
}

/// Returns whether no run visits a state twice, so that every run ends. An `eventually` property says nothing about
/// runs that do not end.
#[must_use]
pub fn every_run_ends<M: Protocol<State: Eq>>(model: &M) -> bool {
    // Depth-first; the value says whether the state is on the current path.
    let mut is_on_path = HashMap::new();
    let mut path: Vec<(M::State, Vec<M::State>)> = Vec::new();
    for first in model.init_states() {
        is_on_path.insert(first.clone(), true);
        let next = model.next_states(&first);
        path.push((first, next));
    }
    while let Some((state, next)) = path.last_mut() {
        let Some(next) = next.pop() else {
            is_on_path.insert(state.clone(), false);
            path.pop();
            continue;
        };
        match is_on_path.get(&next) {
            Some(true) => return false,
            Some(false) => {}
            None => {
                is_on_path.insert(next.clone(), true);
                let after = model.next_states(&next);
                path.push((next, after));
            }
        }
    }
    true
}
