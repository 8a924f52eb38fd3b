//! Reads commands from JSON. Error texts never quote the body, which may contain secrets.
//!
//! Limits apply while the body is read, so a body takes a bounded multiple of its size. Arguments of a command that
//! exceeds 10 MiB are counted, but not kept.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::{
    MAX_COMMANDS,
    argument::{ArgumentSeed, NEEDS_TEXT, Numbers},
    budget::Budget,
    command::Command,
    surrogates,
};
use crate::error::MAX_COMMAND_BYTES;

/// Parses one command.
///
/// # Errors
/// With the text for the client.
pub(super) fn command(body: &[u8]) -> Result<Command, String> {
    parse(body, |body, numbers| read(body, CommandSeed(&mut Budget::new(), numbers)))
}

/// Parses a list of commands.
///
/// # Errors
/// With the text for the client.
pub(super) fn commands(body: &[u8]) -> Result<Vec<Command>, String> {
    parse(body, |body, numbers| read(body, CommandsSeed(Budget::new(), numbers)))
}

fn read<'de, S: DeserializeSeed<'de>>(body: &'de [u8], seed: S) -> serde_json::Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value))
}

fn parse<T>(body: &[u8], read: impl Fn(&[u8], Numbers) -> serde_json::Result<T>) -> Result<T, String> {
    if body.trim_ascii().is_empty() {
        return Err("EOF".to_owned());
    }
    let read = |body: &[u8]| match read(body, Numbers::Parsed) {
        Err(error) if needs_text(&error) => read(body, Numbers::Text),
        parsed => parsed,
    };
    let parsed = read(body).or_else(|error| match surrogates::replace_lone(body) {
        Some(body) => read(&body),
        None => Err(error),
    });
    parsed.map_err(|error| {
        if !error.is_data() {
            return format!("ERR failed to parse the request body at line {}, column {}", error.line(), error.column());
        }
        // The texts of this module begin with ERR. Those of serde quote the body.
        match error.to_string().split(" at line ").next() {
            Some(text) if text.starts_with("ERR ") => text.to_owned(),
            _ => "expected JSON array".to_owned(),
        }
    })
}

fn needs_text(error: &serde_json::Error) -> bool {
    let text = error.to_string();
    error.is_data() && text.starts_with(NEEDS_TEXT) || text.starts_with("number out of range")
}

struct CommandsSeed(Budget, Numbers);

impl<'de> DeserializeSeed<'de> for CommandsSeed {
    type Value = Vec<Command>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CommandsSeed {
    type Value = Vec<Command>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Vec<Command>, A::Error> {
        let mut commands = Vec::new();
        while commands.len() < MAX_COMMANDS {
            match items.next_element_seed(CommandSeed(&mut self.0, self.1))? {
                Some(command) => commands.push(command),
                None if commands.is_empty() => return Err(de::Error::custom("ERR empty command")),
                None => return Ok(commands),
            }
        }
        let mut count = MAX_COMMANDS;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        if count == MAX_COMMANDS {
            return Ok(commands);
        }
        Err(de::Error::custom(format_args!(
            "ERR max commands in a request exceeded. Limit: {MAX_COMMANDS}, Actual: {count}"
        )))
    }
}

struct CommandSeed<'a>(&'a mut Budget, Numbers);

impl<'de> DeserializeSeed<'de> for CommandSeed<'_> {
    type Value = Command;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Command, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CommandSeed<'_> {
    type Value = Command;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Command, A::Error> {
        let mut args: Vec<Vec<u8>> = Vec::new();
        let mut size: usize = 0;
        let mut is_named = false;
        let seed = |size| ArgumentSeed { room: MAX_COMMAND_BYTES.saturating_sub(size), numbers: self.1 };
        while let Some(argument) = items.next_element_seed(seed(size))? {
            let kept = argument.kept.unwrap_or_default();
            self.0.take()?;
            is_named |= args.is_empty() && argument.len > 0;
            size += argument.len;
            if size <= MAX_COMMAND_BYTES || args.is_empty() {
                args.push(kept);
            } else {
                // Too large to be sent. Only the name is of use.
                args.truncate(1);
            }
        }
        if !is_named {
            return Err(de::Error::custom("ERR empty command"));
        }
        Ok(Command::of_size(args, size))
    }
}
