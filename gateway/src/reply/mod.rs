//! Converts replies of Redis into the formats of Upstash: JSON, JSON with base64 strings, or RESP2.

/// The result of one command.
mod result;

/// The format that a client asks for.
mod format;

/// Results in JSON.
mod json;

/// Results in RESP2.
mod resp2;

/// All formats at once, for fuzz tests.
mod render;

pub(crate) use format::ReplyFormat;
pub(crate) use json::JsonResult;
pub use render::{Rendered, render};
pub(crate) use resp2::write_resp2;
pub(crate) use result::{CommandResult, from_reply};
