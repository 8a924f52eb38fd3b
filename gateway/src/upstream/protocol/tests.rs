use bytes::BytesMut;
use proptest::{collection::vec, prelude::*};

use super::{Decoder, ProtocolError, ReplyScope};
use crate::{
    reply::{from_reply, write_resp2},
    upstream::value::{ServerError, Value},
};

/// Decodes a stream that arrives in parts.
fn decode(parts: &[&[u8]], scope: ReplyScope) -> Result<Vec<Value>, ProtocolError> {
    let (mut decoder, mut input, mut replies) = (Decoder::default(), BytesMut::new(), Vec::new());
    for part in parts {
        input.extend_from_slice(part);
        while let Some(reply) = decoder.decode(&mut input, scope)? {
            replies.push(reply);
        }
    }
    Ok(replies)
}

fn error(text: &str) -> Value {
    Value::ServerError(ServerError::new(text))
}

#[test]
fn every_kind_of_reply_is_read() {
    let stream =
        b"+OK\r\n+a\xff\r\n-ERR \xff\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n*1\r\n:1\r\n$0\r\n\r\n";
    let expected = [
        Value::Okay,
        Value::SimpleString(b"a\xff".to_vec()),
        error("ERR \u{fffd}"),
        Value::Int(-7),
        Value::BulkString(b"a\r\n".to_vec()),
        Value::Nil,
        Value::Nil,
        Value::Array(vec![]),
        Value::Array(vec![Value::Array(vec![Value::Int(1)]), Value::BulkString(vec![])]),
    ];
    assert_eq!(decode(&[stream], ReplyScope::Result).as_deref(), Ok(expected.as_slice()));
}

#[test]
fn other_bytes_are_an_error() {
    for stream in [&b"hello\r\n"[..], b"\r\n", b":x\r\n", b"*\r\n", b"$x\r\n", b"$1\r\nabc", b"%1\r\n", b"*1\r\n?\r\n"]
    {
        assert_eq!(decode(&[stream], ReplyScope::Result), Err(ProtocolError), "{stream:?}");
    }
}

#[test]
fn the_limit_is_for_the_result_of_one_command() {
    let bulk = [b"$6000000\r\n".as_slice(), &vec![b'x'; 6_000_000], b"\r\n"].concat();
    let two = [b"*2\r\n", bulk.as_slice(), &bulk, b":1\r\n"].concat();
    let text = "ERR max request size exceeded. Limit: 10485760 bytes, Actual: 12000016 bytes";
    assert_eq!(decode(&[&two], ReplyScope::Result), Ok(vec![error(text), Value::Int(1)]));
    let values = Value::Array(vec![Value::BulkString(vec![b'x'; 6_000_000]); 2]);
    assert!(decode(&[&two], ReplyScope::Transaction) == Ok(vec![values, Value::Int(1)]));
}

#[test]
fn a_huge_count_takes_no_memory() {
    let stream = format!("*{0}\r\n*{0}\r\n:1\r\n${0}\r\nabc", i64::MAX - 2);
    assert_eq!(decode(&[stream.as_bytes()], ReplyScope::Result), Ok(vec![]));
}

fn value() -> impl Strategy<Value = Value> {
    let line = || vec(any::<u8>().prop_filter("a line", |byte| !b"\r\n".contains(byte)), 0..20);
    let leaf = prop_oneof![
        Just(Value::Nil),
        Just(Value::Okay),
        any::<i64>().prop_map(Value::Int),
        line().prop_filter("another status", |text| text != b"OK").prop_map(Value::SimpleString),
        vec(any::<u8>(), 0..40).prop_map(Value::BulkString),
        line().prop_map(|text| error(&format!("ERR {}x", String::from_utf8_lossy(&text)))),
    ];
    leaf.prop_recursive(6, 40, 6, |item| vec(item, 0..6).prop_map(Value::Array))
}

proptest! {
    #[test]
    fn a_stream_of_replies_is_read_however_it_is_split(replies in vec(value(), 1..6), cuts in vec(any::<usize>(), 0..8)) {
        let mut stream = Vec::new();
        for reply in &replies {
            write_resp2(&from_reply(reply.clone()), &mut stream);
        }
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut % stream.len()).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let parts: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        for scope in [ReplyScope::Result, ReplyScope::Transaction] {
            let read = decode(&parts, scope);
            prop_assert_eq!(read.as_ref(), Ok(&replies));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(stream in vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"+-:*$\r\n0129"[..])], 0..200)) {
        let whole = decode(&[&stream], ReplyScope::Result);
        let bytes: Vec<_> = stream.chunks(1).collect();
        prop_assert_eq!(whole, decode(&bytes, ReplyScope::Result));
    }
}
