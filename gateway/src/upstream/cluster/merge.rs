//! Merges the replies of several servers into one.

use crate::{
    error::{self, MAX_COMMAND_BYTES},
    request::Command,
    upstream::value::{ServerError, Value},
};

/// One reply from the replies of all servers that got the command. The first error wins. Arrays are concatenated,
/// numbers added; of other replies the first counts. The decoder limits the reply of each server; together, they may be
/// too large.
pub(super) fn merge_replies(command: &Command, replies: Vec<Value>) -> Value {
    if let Some(error) = replies.iter().find(|reply| matches!(reply, Value::ServerError(_))) {
        return error.clone();
    }
    let is_single = replies.len() == 1;
    let is_script_exists = command.name() == "SCRIPT" && command.word(1).eq_ignore_ascii_case(b"EXISTS");
    let merged = replies.into_iter().reduce(|left, right| match (left, right) {
        // A script exists if every server has it.
        (Value::Array(left), Value::Array(right)) if is_script_exists => Value::Array(
            left.into_iter().zip(right).map(|(left, right)| if left == right { left } else { Value::Int(0) }).collect(),
        ),
        (Value::Array(left), Value::Array(right)) => Value::Array(left.into_iter().chain(right).collect()),
        (Value::Int(left), Value::Int(right)) => Value::Int(left.saturating_add(right)),
        (left, _) => left,
    });
    match merged.unwrap_or(Value::Nil) {
        merged if is_single => merged,
        merged => match size(&merged) {
            bytes if bytes > MAX_COMMAND_BYTES => Value::ServerError(ServerError::new(error::size_exceeded(bytes))),
            _ => merged,
        },
    }
}

/// Size of a reply in bytes: its strings, and 8 for each array element.
fn size(value: &Value) -> usize {
    match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::SimpleString(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 8 + size(item)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::value::Value::{Array, BulkString, Int, Nil, Okay};

    #[test]
    fn merged_lists_have_the_limit_of_a_result() {
        let keys = || Array(vec![BulkString(vec![b'k'; 4 << 20])]);
        let merge = |replies| merge_replies(&Command::from_words(&["KEYS", "*"]), replies);
        assert!(matches!(merge(vec![keys(), keys()]), Array(items) if items.len() == 2));
        let Value::ServerError(error) = merge(vec![keys(), keys(), keys()]) else { panic!("no error") };
        assert!(error.text().starts_with("ERR max request size exceeded"), "{}", error.text());
    }

    #[test]
    fn numbers_add_up_arrays_are_joined_and_a_script_exists_if_all_have_it() {
        for (command, replies, expected) in [
            ("DBSIZE", vec![Int(1), Int(2), Int(3)], Int(6)),
            ("KEYS *", vec![Array(vec![Int(1)]), Array(vec![]), Array(vec![Int(2)])], Array(vec![Int(1), Int(2)])),
            (
                "SCRIPT EXISTS a b",
                vec![Array(vec![Int(1), Int(1)]), Array(vec![Int(0), Int(1)])],
                Array(vec![Int(0), Int(1)]),
            ),
            ("FLUSHALL", vec![Okay, Okay], Okay),
            ("GET k", vec![], Nil),
        ] {
            let words: Vec<_> = command.split(' ').collect();
            assert_eq!(merge_replies(&Command::from_words(&words), replies), expected, "{command}");
        }
    }
}
