//! Reads the commands of a request: from a JSON body, or from path, body and query. An argument is bytes, and what the
//! body or the path holds arrives at Redis unchanged.

use std::{borrow::Cow, fmt};

use percent_encoding::percent_decode_str;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

/// Commands of one request. Redis itself has no limit; a thousand is what clients of Upstash keep to.
const MAX_COMMANDS: usize = 1_000;

/// How commands arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One command, from the path or from a JSON array.
    Single,
    /// `/pipeline`: independent commands.
    Pipeline,
    /// `/multi-exec`: a transaction.
    Transaction,
}

/// A command's name and arguments: never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The name first.
    pub args: Vec<Vec<u8>>,
}

impl Command {
    /// The name in upper case; what is no plausible name is `?`, so that a misplaced value is never logged.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.arg(0);
        let plausible = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        if name.len() > 32 || !name.iter().all(plausible) {
            return "?".to_owned();
        }
        String::from_utf8_lossy(name).to_ascii_uppercase()
    }

    /// The argument at `index`, the name being 0; empty when there is none.
    #[must_use]
    pub fn arg(&self, index: usize) -> &[u8] {
        self.args.get(index).map_or(&[], Vec::as_slice)
    }

    /// Bytes of name and arguments.
    #[must_use]
    pub fn size(&self) -> usize {
        self.args.iter().map(Vec::len).sum()
    }
}

/// Reads `["SET","k","v"]`.
///
/// # Errors
/// With the text for the client: not JSON, no array, empty, null or nested arguments.
pub fn single(body: &[u8]) -> Result<Vec<Command>, String> {
    Ok(vec![json(body)?])
}

/// Reads `[["SET","k","v"],["GET","k"]]`.
///
/// # Errors
/// As [`single`], and for no or more than 1,000 commands.
pub fn batch(body: &[u8]) -> Result<Vec<Command>, String> {
    let commands: Vec<Command> = json(body)?;
    match commands.len() {
        0 => Err("ERR empty command".to_owned()),
        count if count > MAX_COMMANDS => {
            Err(format!("ERR max commands in a request exceeded. Limit: {MAX_COMMANDS}, Actual: {count}"))
        }
        _ => Ok(commands),
    }
}

/// Reads `/SET/k/v`, with a body as the next argument and the query's pairs after it: `POST /SET/k?EX=100` with the body
/// `v` is `SET k v EX 100`.
///
/// # Errors
/// When the path names no command.
pub fn path(path: &str, query: &[(Vec<u8>, Vec<u8>)], body: &[u8]) -> Result<Vec<Command>, String> {
    let segments = path.strip_prefix('/').unwrap_or(path).split('/');
    let mut args: Vec<Vec<u8>> = segments.map(|part| percent_decode_str(part).collect()).collect();
    if args.first().is_none_or(Vec::is_empty) {
        return Err("ERR empty command".to_owned());
    }
    if !body.is_empty() {
        args.push(body.to_vec());
    }
    for (name, value) in query {
        args.push(name.clone());
        // `?NX` is the option without a value.
        if !value.is_empty() {
            args.push(value.clone());
        }
    }
    Ok(vec![Command { args }])
}

/// The pairs of a query, decoded, in order.
#[must_use]
pub fn query_pairs(query: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let decode = |text: &str| -> Vec<u8> {
        let text: Cow<str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
        percent_decode_str(&text).collect()
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn json<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, String> {
    if body.trim_ascii().is_empty() {
        return Err("EOF".to_owned());
    }
    serde_json::from_slice(body).map_err(|error| {
        if !error.is_data() {
            return format!("ERR failed to parse the request body at line {}, column {}", error.line(), error.column());
        }
        // Ours start with a code; serde's would quote the value.
        match error.to_string().split(" at line ").next() {
            Some(text) if text.starts_with("ERR ") => text.to_owned(),
            _ => "expected JSON array".to_owned(),
        }
    })
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandVisitor)
    }
}

struct CommandVisitor;

impl<'de> Visitor<'de> for CommandVisitor {
    type Value = Command;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a JSON array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Command, A::Error> {
        let mut args = Vec::with_capacity(items.size_hint().unwrap_or(4));
        while let Some(Argument(bytes)) = items.next_element()? {
            args.push(bytes);
        }
        if args.first().is_none_or(Vec::is_empty) {
            return Err(de::Error::custom("ERR empty command"));
        }
        Ok(Command { args })
    }
}

/// One argument: a string, or a number or boolean as JSON writes it.
struct Argument(Vec<u8>);

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentVisitor)
    }
}

struct ArgumentVisitor;

impl<'de> Visitor<'de> for ArgumentVisitor {
    type Value = Argument;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("a string, number or boolean")
    }

    fn visit_str<E>(self, text: &str) -> Result<Argument, E> {
        Ok(Argument(text.as_bytes().to_vec()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Argument, E> {
        Ok(Argument(value.to_string().into_bytes()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Argument, E> {
        Err(E::custom("ERR null args are not supported"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Argument, A::Error> {
        Err(de::Error::custom(r#"ERR unsupported arg type: "[": json.Delim"#))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, _: A) -> Result<Argument, A::Error> {
        Err(de::Error::custom(r#"ERR unsupported arg type: "{": json.Delim"#))
    }
}
