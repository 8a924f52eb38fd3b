//! Histories of concurrent operations on a running shop, and the check that they are linearizable: that each operation
//! took effect at one moment between its call and its response. `todc-utils` decides, with the algorithm of Wing, Gong
//! and Lowe: docs/adr/0009-model-checker.md.
//!
//! - [`cart`]: an item of a cart; [`stock`]: the pieces of a flash sale.
//! - [`clients`]: clients that share a cart or a sale, and give up requests.

pub mod cart;
pub mod clients;
pub mod stock;

use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt,
    hash::Hash,
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use todc_utils::{
    linearizability::{
        WGLChecker,
        history::{Action, History},
    },
    specifications::Specification,
};

/// The memory of the search, in bytes: it remembers one byte per event of the history in each step.
const MEMORY: usize = 64 << 20;
/// The most steps of the search.
const STEPS: usize = 1 << 20;

/// An object that executes one operation at a time.
pub trait Sequential {
    type State: Clone + fmt::Debug + Default + Eq + Hash;
    /// An operation with its result. The result is unknown if there was no response.
    type Operation: Clone + fmt::Debug;

    /// The state after the operation, `None` if the operation cannot have this result.
    fn apply(operation: &Self::Operation, state: &Self::State) -> Option<Self::State>;
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Linearizable,
    Violated,
    /// The search reached its bounds.
    Undecided,
}

/// Records operations, by the name of the object. The order of calls and responses is the order in which they are
/// recorded.
pub struct Recorder<O> {
    events: Mutex<Vec<(String, Event<O>)>>,
}

/// A call, or a response with the result.
#[derive(Debug, Clone)]
enum Event<O> {
    Call(usize, O),
    Response(usize, O),
}

/// An operation that was called, by its object and its number.
#[derive(Debug)]
pub struct Call {
    object: String,
    number: usize,
}

impl<O> Default for Recorder<O> {
    fn default() -> Self {
        Self { events: Mutex::default() }
    }
}

impl<O: Clone + fmt::Debug> Recorder<O> {
    /// Records a call before it is sent, as an operation without a result.
    pub fn call(&self, object: &str, operation: O) -> Call {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let number = events.len();
        events.push((object.to_owned(), Event::Call(number, operation)));
        Call { object: object.to_owned(), number }
    }

    /// Records the response of a call. A call without a response may take effect at any later time, or never.
    pub fn response(&self, call: Call, operation: O) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push((call.object, Event::Response(call.number, operation)));
    }

    /// The verdict for each object.
    pub fn check<S: Sequential<Operation = O>>(&self) -> BTreeMap<String, Verdict> {
        let mut objects = BTreeMap::<String, Vec<Event<O>>>::new();
        for (object, event) in self.events.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            objects.entry(object.clone()).or_default().push(event.clone());
        }
        objects.into_iter().map(|(object, events)| (object, check::<S>(&events))).collect()
    }

    /// The number of recorded calls, and of those without a response.
    pub fn count(&self) -> (usize, usize) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = events.iter().filter(|(_, event)| matches!(event, Event::Call(..))).count();
        (calls, 2 * calls - events.len())
    }
}

fn check<S: Sequential>(events: &[Event<S::Operation>]) -> Verdict {
    // Each operation is a process of its own, numbered from 0.
    let mut open = BTreeMap::new();
    let mut actions = Vec::new();
    for event in events {
        match event {
            Event::Call(number, operation) => {
                let process = open.len();
                open.insert(*number, (process, Some(operation)));
                actions.push((process, Action::Call(operation.clone())));
            }
            Event::Response(number, operation) => {
                if let Some((process, unanswered)) = open.get_mut(number) {
                    *unanswered = None;
                    actions.push((*process, Action::Response(operation.clone())));
                }
            }
        }
    }
    // Without a response, the operation may come last of all, where nobody sees its effect.
    let unanswered = open.values().filter_map(|(process, operation)| Some((*process, (*operation)?)));
    actions.extend(unanswered.map(|(process, operation)| (process, Action::Response(operation.clone()))));
    if actions.is_empty() {
        return Verdict::Linearizable;
    }
    STEPS_LEFT.set((MEMORY / actions.len()).min(STEPS));
    let is_linearizable = WGLChecker::<Bounded<S>>::is_linearizable(History::from_actions(actions));
    match STEPS_LEFT.get() {
        _ if is_linearizable => Verdict::Linearizable,
        0 => Verdict::Undecided,
        _ => Verdict::Violated,
    }
}

thread_local! {
    static STEPS_LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Refuses every operation after the last step, so that the search ends.
struct Bounded<S>(PhantomData<S>);

impl<S: Sequential> Specification for Bounded<S> {
    type State = S::State;
    type Operation = S::Operation;

    fn init() -> Self::State {
        S::State::default()
    }

    fn apply(operation: &Self::Operation, state: &Self::State) -> (bool, Self::State) {
        let left = STEPS_LEFT.get();
        STEPS_LEFT.set(left.saturating_sub(1));
        let next = if left > 1 { S::apply(operation, state) } else { None };
        (next.is_some(), next.unwrap_or_else(|| state.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Recorder, Verdict,
        cart::{Item, Operation},
        stock::{self, Stock},
    };

    fn verdict(record: impl FnOnce(&Recorder<Operation>)) -> Verdict {
        let recorder = Recorder::default();
        record(&recorder);
        recorder.check::<Item>()["mug"]
    }

    fn add(recorder: &Recorder<Operation>, result: Option<u32>) {
        let call = recorder.call("mug", Operation::Add(1, None));
        recorder.response(call, Operation::Add(1, result));
    }

    fn read(recorder: &Recorder<Operation>, quantity: u32) {
        let call = recorder.call("mug", Operation::Read(None));
        recorder.response(call, Operation::Read(Some(quantity)));
    }

    #[test]
    fn an_add_that_reads_and_then_writes_is_found() {
        let concurrent_adds = |results: [u32; 2], quantity| {
            verdict(|recorder| {
                let calls = [(); 2].map(|()| recorder.call("mug", Operation::Add(1, None)));
                for (call, result) in calls.into_iter().zip(results) {
                    recorder.response(call, Operation::Add(1, Some(result)));
                }
                read(recorder, quantity);
            })
        };
        assert_eq!(concurrent_adds([1, 2], 2), Verdict::Linearizable);
        assert_eq!(concurrent_adds([2, 1], 2), Verdict::Linearizable);
        assert_eq!(concurrent_adds([1, 1], 1), Verdict::Violated);
    }

    #[test]
    fn a_lost_write_is_found() {
        let history = |quantity| {
            verdict(|recorder| {
                add(recorder, Some(1));
                read(recorder, quantity);
            })
        };
        assert_eq!([history(1), history(0)], [Verdict::Linearizable, Verdict::Violated]);
    }

    #[test]
    fn an_add_without_a_response_may_happen_later_once_or_never() {
        let history = |reads: &[u32]| {
            verdict(|recorder| {
                recorder.call("mug", Operation::Add(1, None));
                for quantity in reads {
                    read(recorder, *quantity);
                }
            })
        };
        for reads in [&[0, 0][..], &[0, 1], &[1, 1]] {
            assert_eq!(history(reads), Verdict::Linearizable, "{reads:?}");
        }
        for reads in [&[1, 0][..], &[1, 2], &[2]] {
            assert_eq!(history(reads), Verdict::Violated, "{reads:?}");
        }
    }

    #[test]
    fn a_search_that_takes_too_long_is_undecided() {
        let history = verdict(|recorder| {
            // Every order of these adds has another sum on the way, and none has the one that is read.
            for quantity in 0..24 {
                recorder.call("mug", Operation::Add(1 << quantity, None));
            }
            read(recorder, u32::MAX);
        });
        assert_eq!(history, Verdict::Undecided);
    }

    #[test]
    fn a_piece_for_two_users_is_found() {
        let history = |users: &[u8]| {
            let recorder = Recorder::default();
            for user in users {
                let call = recorder.call("sale", stock::Operation::Reserve { user: *user, result: None });
                let held = stock::Reserved::Held(u64::from(*user));
                recorder.response(call, stock::Operation::Reserve { user: *user, result: Some(held) });
            }
            recorder.check::<Stock>()["sale"]
        };
        assert_eq!(history(&[1, 2, 2]), Verdict::Linearizable);
        assert_eq!(history(&[1, 2, 3]), Verdict::Violated, "there are {} pieces", stock::PIECES);
    }
}
