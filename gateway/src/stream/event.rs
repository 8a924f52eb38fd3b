//! Values of Redis as server-sent events (WHATWG HTML, section 9.2), in the form of Upstash:
//! `data: message,channel,text`.

use std::borrow::Cow;

use crate::{error, upstream::Value};

/// A comment: clients ignore it, proxies see that the connection is in use.
pub(super) const HEARTBEAT: &[u8] = b": heartbeat\n\n";

/// The kind of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// SUBSCRIBE or PSUBSCRIBE.
    Subscription,
    /// MONITOR. The server shows the commands of all databases; the stream shows those of one, as its token does.
    Monitor {
        /// The database.
        database: u32,
    },
}

impl StreamKind {
    /// Appends the event for a value, if the client gets it.
    pub(super) fn write_event(self, value: &Value, out: &mut Vec<u8>) {
        match (self, value) {
            (_, Value::ServerError(error)) => write_error(&error::server_error_text(error), out),
            (Self::Subscription, Value::Array(items)) if !is_pong(items) => {
                let texts: Vec<_> = items.iter().map(text).collect();
                write_data(&texts.join(","), out);
            }
            (Self::Monitor { .. }, Value::Okay) => write_data(r#""OK""#, out),
            (Self::Monitor { database }, Value::SimpleString(line)) if database_of(line) == Some(database) => {
                write_data(&String::from_utf8_lossy(line), out);
            }
            _ => {}
        }
    }
}

/// Appends the event `error,,text`. `@upstash/redis` passes it to the listeners of `error`.
pub(super) fn write_error(text: &str, out: &mut Vec<u8>) {
    write_data(&format!("error,,{text}"), out);
}

/// The reply to PING on a connection that is subscribed.
fn is_pong(items: &[Value]) -> bool {
    items.first() == Some(&Value::BulkString(b"pong".to_vec()))
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::BulkString(bytes) | Value::SimpleString(bytes) => String::from_utf8_lossy(bytes),
        Value::Int(number) => number.to_string().into(),
        Value::Okay => "OK".into(),
        Value::Nil | Value::Array(_) | Value::ServerError(_) => "".into(),
    }
}

/// The database in a line of MONITOR: `1721284005.242090 [0 127.0.0.1:60866] "GET" "k"`.
fn database_of(line: &[u8]) -> Option<u32> {
    let after_bracket = line.split(|byte| *byte == b'[').nth(1)?;
    let digits = after_bracket.split(|byte| *byte == b' ').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Appends an event. A line break would end the line, so each line of the text gets a field of its own; a client joins
/// them with `\n`. `@upstash/redis` takes each line that begins with `data: ` for an event. The standard does not ask
/// for the space, so the other lines have none: no message can pretend to be another one.
fn write_data(text: &str, out: &mut Vec<u8>) {
    let text =
        if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { Cow::from(text) };
    for (index, line) in text.split('\n').enumerate() {
        // A client removes one space after the colon.
        let needs_space = index == 0 || line.starts_with(' ');
        out.extend_from_slice(if needs_space { b"data: " } else { b"data:" });
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a stream as the standard says.
    fn parse(stream: &[u8]) -> Vec<String> {
        let stream = std::str::from_utf8(stream).expect("UTF-8").replace("\r\n", "\n").replace('\r', "\n");
        let events = stream.split_terminator("\n\n").map(|event| {
            let data = event.split('\n').filter_map(|line| line.strip_prefix("data:"));
            data.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
        });
        events.collect()
    }

    proptest! {
        #[test]
        fn any_text_is_one_event(text in "[a: \r\n]{0,12}|\\PC{0,12}|(data: x,y,z|\n|\r){0,6}") {
            let mut out = Vec::new();
            write_data(&text, &mut out);
            let expected = text.replace("\r\n", "\n").replace('\r', "\n");
            prop_assert_eq!(parse(&out), [expected]);
            let for_the_client = String::from_utf8(out).expect("UTF-8");
            let events = for_the_client.split('\n').filter_map(|line| line.strip_prefix("data: "));
            prop_assert!(events.skip(1).all(|event| event.starts_with(' ')), "another event in {:?}", for_the_client);
        }
    }

    #[test]
    fn a_monitor_line_names_its_database() {
        for (line, expected) in [
            (r#"1721284005.242090 [3 127.0.0.1:60866] "GET" "k""#, Some(3)),
            (r#"1721284005.242090 [12 lua] "GET" "[0 x""#, Some(12)),
            (r#"1721284005.242090 "GET""#, None),
            ("", None),
        ] {
            assert_eq!(database_of(line.as_bytes()), expected, "{line}");
        }
    }
}
