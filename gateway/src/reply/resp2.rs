//! Results in RESP2, the wire format of Redis.

use super::result::CommandResult;
use crate::{error, upstream::Value};

/// Appends a result to `out`.
pub(crate) fn write_resp2(result: &CommandResult, out: &mut Vec<u8>) {
    match result {
        Ok(value) => write_value(value, out),
        Err(error) => write_line(b'-', error.as_bytes(), out),
    }
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Int(number) => write_line(b':', number.to_string().as_bytes(), out),
        Value::Okay => write_line(b'+', b"OK", out),
        Value::SimpleString(text) => write_line(b'+', text, out),
        Value::ServerError(error) => write_line(b'-', error::server_error_text(error).as_bytes(), out),
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
        Value::Nil => write_line(b'$', b"-1", out),
    }
}

/// Appends a line. Line breaks in the text become spaces, because a line break ends the reply. Only an error of the
/// gateway that quotes its input can contain one.
fn write_line(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend(text.iter().map(|byte| if b"\r\n".contains(byte) { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}
