//! Redis replies as Upstash writes them: JSON, JSON with base64, or RESP2 bytes. `error` and a result never stand
//! together.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, StatusCode};
use redis::{ServerError, Value};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::policy::{self, MAX_COMMAND, too_large};

/// How a client wants its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Base64,
    Resp2,
}

impl Encoding {
    /// What `Upstash-Encoding` and `Upstash-Response-Format` ask for.
    ///
    /// # Errors
    /// For unknown values, and for base64 and RESP2 together.
    pub(crate) fn asked_for(headers: &HeaderMap) -> Result<Self, Refusal> {
        let header = |name| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        match (header("upstash-encoding"), header("upstash-response-format")) {
            (b"", b"" | b"json") => Ok(Self::Plain),
            (b"base64", b"" | b"json") => Ok(Self::Base64),
            (b"", b"resp2") => Ok(Self::Resp2),
            (b"base64", b"resp2") => Err(Refusal::bad_request(
                "ERR Upstash-Encoding base64 is not allowed with Upstash-Response-Format resp2",
            )),
            (b"" | b"base64", _) => Err(Refusal::bad_request("ERR invalid Upstash-Response-Format")),
            _ => Err(Refusal::bad_request("ERR invalid Upstash-Encoding")),
        }
    }
}

/// Why a request, or one of its commands, was not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Of the answer, when the whole request is refused.
    pub(crate) status: StatusCode,
    /// `CODE text`.
    pub(crate) error: String,
}

impl Refusal {
    pub(crate) fn bad_request(error: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error: error.into() }
    }

    pub(crate) fn too_large(error: String) -> Self {
        Self { status: StatusCode::PAYLOAD_TOO_LARGE, error }
    }
}

/// The outcome of one command: its result, or `CODE text`.
pub(crate) type Outcome = Result<Value, String>;

/// What a reply means; a result over 10 MiB is an error, as a command of that size is.
pub(crate) fn outcome(reply: Value) -> Outcome {
    match reply {
        Value::ServerError(error) => Err(error_text(&error)),
        reply => match size(&reply) {
            size if size > MAX_COMMAND => Err(too_large(size)),
            _ => Ok(reply),
        },
    }
}

/// The server's error as it came: `CODE text`. Only of an unknown command it would quote arguments, so that has the text
/// of Upstash.
pub(crate) fn error_text(error: &ServerError) -> String {
    let details = error.details().unwrap_or_default();
    let unknown = details.strip_prefix("unknown command '").and_then(|rest| rest.split('\'').next());
    match unknown {
        Some(name) => policy::unavailable(name),
        None => format!("{} {details}", error.code()).trim_end().to_owned(),
    }
}

/// Bytes of all strings in a reply, with 8 for each item.
fn size(value: &Value) -> usize {
    match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::SimpleString(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 8 + size(item)).sum(),
        _ => 0,
    }
}

/// Writes `{"result":…}` or `{"error":…}`, in JSON or with strings in base64.
pub(crate) struct Json<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) base64: bool,
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.outcome {
            Ok(value) => map.serialize_entry("result", &JsonValue { value, base64: self.base64 })?,
            Err(error) => map.serialize_entry("error", error)?,
        }
        map.end()
    }
}

struct JsonValue<'a> {
    value: &'a Value,
    base64: bool,
}

impl JsonValue<'_> {
    fn string<S: Serializer>(&self, bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        if self.base64 {
            serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
        } else {
            serializer.serialize_str(&String::from_utf8_lossy(bytes))
        }
    }
}

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Okay => serializer.serialize_str("OK"),
            Value::BulkString(bytes) => self.string(bytes, serializer),
            Value::SimpleString(text) => self.string(text.as_bytes(), serializer),
            Value::ServerError(error) => self.string(error_text(error).as_bytes(), serializer),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for value in items {
                    list.serialize_element(&JsonValue { value, base64: self.base64 })?;
                }
                list.end()
            }
            // Nil, and what only RESP3 has.
            _ => serializer.serialize_unit(),
        }
    }
}

/// Appends an outcome as RESP2.
pub(crate) fn write_resp2(outcome: &Outcome, out: &mut Vec<u8>) {
    match outcome {
        Ok(value) => write_value(value, out),
        Err(error) => write_line(b'-', error.as_bytes(), out),
    }
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Int(number) => write_line(b':', number.to_string().as_bytes(), out),
        Value::Okay => write_line(b'+', b"OK", out),
        Value::SimpleString(text) => write_line(b'+', text.as_bytes(), out),
        Value::ServerError(error) => write_line(b'-', error_text(error).as_bytes(), out),
        Value::BulkString(bytes) => {
            write_line(b'$', bytes.len().to_string().as_bytes(), out);
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Value::Array(items) => {
            write_line(b'*', items.len().to_string().as_bytes(), out);
            for item in items {
                write_value(item, out);
            }
        }
        // Nil, and what only RESP3 has.
        _ => write_line(b'$', b"-1", out),
    }
}

fn write_line(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    // A line break would end the reply early; only an error that quotes its input could have one.
    out.extend(text.iter().map(|byte| if b"\r\n".contains(byte) { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}
