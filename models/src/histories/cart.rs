//! One item of a cart: a number that is set, added to and read. The items of a cart are separate objects, so that the
//! search stays small.

use super::Sequential;

/// An operation, and the quantity after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Set(u32, Option<u32>),
    Add(u32, Option<u32>),
    Read(Option<u32>),
}

/// The specification.
pub struct Item;

impl Sequential for Item {
    /// The quantity.
    type State = u32;
    type Operation = Operation;

    fn apply(operation: &Operation, state: &u32) -> Option<u32> {
        let (next, result) = match operation {
            Operation::Set(quantity, result) => (*quantity, result),
            Operation::Add(quantity, result) => (state.checked_add(*quantity)?, result),
            Operation::Read(result) => (*state, result),
        };
        result.is_none_or(|result| result == next).then_some(next)
    }
}
