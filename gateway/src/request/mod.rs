//! Parses the commands of a request from a JSON body, or from path, body and query. Arguments are bytes and reach Redis
//! unchanged. The parsers are public so that fuzz tests can call them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Name and arguments.
mod command;

/// Commands in JSON.
mod json;

/// Arguments in JSON.
mod argument;

/// Half characters in JSON.
mod surrogates;

/// Bounds on a request.
pub(crate) mod budget;

pub use command::Command;

/// At most this many commands in one request. Redis has no limit; clients of Upstash keep to this number.
pub(crate) const MAX_COMMANDS: usize = 1_000;

/// Limit for a body: 64 MiB. JSON writes a byte with at most six (`\u0000`), so the largest command, 10 MiB, always
/// fits.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 20;

/// The form in which a request carries its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// One command, in the path or in a JSON array.
    Single,
    /// `/pipeline`: independent commands.
    Pipeline,
    /// `/multi-exec`: a transaction.
    Transaction,
}

/// Parses `["SET","k","v"]`.
///
/// # Errors
/// With the text for the client: the body is not JSON or not an array, an argument is null or nested, or there are more
/// than 1,048,576 arguments.
pub fn single(body: &[u8]) -> Result<Vec<Command>, String> {
    Ok(vec![json::command(body)?])
}

/// Parses `[["SET","k","v"],["GET","k"]]`.
///
/// # Errors
/// Those of [`single`]; also for no command, and for more than 1,000.
pub fn batch(body: &[u8]) -> Result<Vec<Command>, String> {
    json::commands(body)
}

/// Parses `/SET/k/v`. A body is the next argument; the query's pairs follow it. `POST /SET/k?EX=100` with the body `v`
/// is `SET k v EX 100`.
/// Hyper bounds the path and the query (400 KiB), and so the number of their arguments.
///
/// # Errors
/// With the text for the client, when the path names no command.
pub fn path(path: &str, query: &[(Vec<u8>, Vec<u8>)], body: &[u8]) -> Result<Vec<Command>, String> {
    let segments = path.strip_prefix('/').unwrap_or(path).split('/');
    let mut args: Vec<Vec<u8>> = segments.map(|segment| percent_decode_str(segment).collect()).collect();
    if args.first().is_none_or(Vec::is_empty) {
        return Err("ERR empty command".to_owned());
    }
    if !body.is_empty() {
        args.push(body.to_vec());
    }
    for (name, value) in query {
        args.push(name.clone());
        // `?NX` is an option without a value.
        if !value.is_empty() {
            args.push(value.clone());
        }
    }
    Ok(vec![Command::new(args)])
}

/// The decoded pairs of a query, in order. The value of `?NX` is empty.
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
