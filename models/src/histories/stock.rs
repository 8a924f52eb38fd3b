//! The pieces of a flash sale, during which no reservation expires.

use std::collections::BTreeMap;

use super::Sequential;

/// The pieces of every sale.
pub const PIECES: usize = 2;

/// An operation and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Reserve {
        user: u8,
        result: Option<Reserved>,
    },
    /// `result`: the reservation was the user's.
    Cancel {
        user: u8,
        reservation: u64,
        result: Option<bool>,
    },
    /// `result`: the pieces left.
    Look {
        result: Option<usize>,
    },
}

/// The result of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// A hash of the reservation's id.
    Held(u64),
    SoldOut,
}

/// The specification.
pub struct Stock;

impl Sequential for Stock {
    /// The reservation of each user, `None` if no response has named its id.
    type State = BTreeMap<u8, Option<u64>>;
    type Operation = Operation;

    fn apply(operation: &Operation, state: &Self::State) -> Option<Self::State> {
        let mut next = state.clone();
        match operation {
            Operation::Reserve { user, result } => {
                let is_free = state.len() < PIECES;
                match (state.get(user), result) {
                    (Some(Some(held)), Some(Reserved::Held(id))) if held == id => {}
                    (Some(None), Some(Reserved::Held(id))) => drop(next.insert(*user, Some(*id))),
                    (None, Some(Reserved::Held(id))) if is_free => drop(next.insert(*user, Some(*id))),
                    (None, Some(Reserved::SoldOut)) if !is_free => {}
                    (None, None) if is_free => drop(next.insert(*user, None)),
                    (_, None) => {}
                    (_, Some(_)) => return None,
                }
            }
            Operation::Cancel { user, reservation, result } => {
                let is_held = state.get(user) == Some(&Some(*reservation));
                if is_held {
                    next.remove(user);
                }
                if result.is_some_and(|result| result != is_held) {
                    return None;
                }
            }
            Operation::Look { result } => {
                if result.is_some_and(|left| left != PIECES - state.len()) {
                    return None;
                }
            }
        }
        Some(next)
    }
}
