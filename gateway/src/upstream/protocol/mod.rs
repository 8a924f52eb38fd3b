//! RESP2, the wire format of Redis. It replaces the parser of the crate `redis`, which ends the connection that all
//! requests share in three cases. Any client can cause the first two:
//!
//! - An error or a status is not UTF-8. Redis quotes the bytes of a command in many errors.
//! - A reply has more than 100 levels. A script can return more.
//! - A reply does not fit into memory; this decoder drops what exceeds the limit for a result while it reads.

/// Lines and strings.
mod token;

/// Whole replies.
mod decoder;

pub(crate) use decoder::{Decoder, ReplyScope};

use crate::request::Command;

/// The server broke the protocol. Replies cannot be told apart anymore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server does not speak RESP2")]
pub(crate) struct ProtocolError;

/// Appends a command to `out`.
pub(crate) fn encode(command: &Command, out: &mut Vec<u8>) {
    out.reserve(command.size() + 16 * (command.args.len() + 1));
    write_header(b'*', command.args.len(), out);
    for arg in &command.args {
        write_header(b'$', arg.len(), out);
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_header(kind: u8, count: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(count.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Properties for any bytes.
#[cfg(test)]
mod tests;
