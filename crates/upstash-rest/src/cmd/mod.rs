//! Typed commands: each function makes a command that knows the type of its reply, and whether the client may repeat it
//! after a lost reply.
//!
//! A command is repeatable here if a second execution leaves the same data and gives the same reply, such as SET, but
//! not DEL, which replies with the number of keys that it deleted. Add [`Typed::repeatable`](crate::Typed::repeatable)
//! to repeat a DEL whose reply does not matter.
//!
//! Options that have no function of their own are arguments: `cmd::set("k", "v").arg("KEEPTTL")`. Any other command is
//! a [`Command`] in its free form.

mod hashes;
mod keys;
mod lists;
mod scripts;
mod sets;
mod sorted_sets;
mod streams;
mod strings;

use std::time::Duration;

pub use self::{hashes::*, keys::*, lists::*, scripts::*, sets::*, sorted_sets::*, streams::*, strings::*};
use crate::command::Command;

fn read(name: &'static str, key: impl AsRef<[u8]>) -> Command {
    Command::read(name).arg(key)
}

fn write(name: &'static str, key: impl AsRef<[u8]>) -> Command {
    Command::write(name).arg(key)
}

/// Adds pairs as `a 1 b 2`.
fn with_pairs<A: AsRef<[u8]>, B: AsRef<[u8]>>(command: Command, pairs: impl IntoIterator<Item = (A, B)>) -> Command {
    pairs.into_iter().fold(command, |command, (one, other)| command.arg(one).arg(other))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
