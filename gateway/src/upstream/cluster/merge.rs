//! Merges the replies of several servers into one.

use crate::{request::Command, upstream::value::Value};

/// One reply from the replies of all servers that got the command. The first error wins. Arrays are concatenated,
/// numbers added; of other replies the first counts.
pub(super) fn merge_replies(command: &Command, replies: Vec<Value>) -> Value {
    if let Some(error) = replies.iter().find(|reply| matches!(reply, Value::ServerError(_))) {
        return error.clone();
    }
    let is_script_exists = command.name() == "SCRIPT" && command.arg(1).eq_ignore_ascii_case(b"EXISTS");
    let merged = replies.into_iter().reduce(|left, right| match (left, right) {
        // A script exists if every server has it.
        (Value::Array(left), Value::Array(right)) if is_script_exists => Value::Array(
            left.into_iter().zip(right).map(|(left, right)| if left == right { left } else { Value::Int(0) }).collect(),
        ),
        (Value::Array(left), Value::Array(right)) => Value::Array(left.into_iter().chain(right).collect()),
        (Value::Int(left), Value::Int(right)) => Value::Int(left.saturating_add(right)),
        (left, _) => left,
    });
    merged.unwrap_or(Value::Nil)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::value::Value::{Array, Int, Nil, Okay};

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
