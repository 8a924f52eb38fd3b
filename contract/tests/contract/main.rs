//! The command against a small origin that keeps the contract, and against the same origin with one fault at a time.
//!
//! - [`faults`]: each broken clause is found. [`errors`]: what the command cannot examine.

mod errors;
mod faults;
mod support;
