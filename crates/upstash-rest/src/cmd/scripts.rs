//! Scripts. A call of one is [`Command::script`]; the client loads a script by itself when the server does not know it.

use crate::{
    command::{Command, Typed},
    script::Script,
};

/// SCRIPT LOAD: makes a script known to the server. Replies with its SHA-1. Repeatable.
#[must_use]
pub fn script_load(script: &Script) -> Typed<String> {
    Command::write("SCRIPT").arg("LOAD").arg(script.source).repeatable().into()
}

/// SCRIPT EXISTS: true for each of these scripts that the server knows.
#[must_use]
pub fn script_exists<'a>(scripts: impl IntoIterator<Item = &'a Script>) -> Typed<Vec<bool>> {
    Command::read("SCRIPT").arg("EXISTS").args(scripts.into_iter().map(|script| script.sha1)).into()
}
