//! Where a command belongs in a cluster: the slot of its key, any server, or all of them. The server checks that all keys of a
//! command are in one slot; here only the first is looked at.

use redis::Value;

use crate::request::Command;

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// Where a command is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Slot(u16),
    /// It has no key.
    Any,
    /// It is about all keys, or all servers.
    All,
}

impl Target {
    pub(crate) fn of(command: &Command) -> Self {
        let arg = |index| Some(command.arg(index)).filter(|arg: &&[u8]| !arg.is_empty());
        let key = match command.name().as_str() {
            "DBSIZE" | "FLUSHALL" | "FLUSHDB" | "KEYS" | "SCRIPT" => return Self::All,
            "COMMAND" | "ECHO" | "FUNCTION" | "INFO" | "LASTSAVE" | "LOLWUT" | "PING" | "PUBLISH" | "PUBSUB"
            | "RANDOMKEY" | "TIME" => return Self::Any,
            "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" => {
                arg(3).filter(|_| command.arg(2) != b"0")
            }
            "BITOP" | "LMPOP" | "MEMORY" | "OBJECT" | "SINTERCARD" | "XGROUP" | "XINFO" | "ZDIFF" | "ZINTER"
            | "ZINTERCARD" | "ZMPOP" | "ZUNION" => arg(2),
            "XREAD" | "XREADGROUP" => {
                let streams = command.args.iter().position(|arg| arg.eq_ignore_ascii_case(b"STREAMS"));
                streams.and_then(|at| arg(at + 1))
            }
            _ => arg(1),
        };
        key.map_or(Self::Any, |key| Self::Slot(slot(key)))
    }
}

/// Makes one reply of those that all servers gave.
pub(crate) fn combine(command: &Command, replies: Vec<Value>) -> Value {
    if let Some(error) = replies.iter().find(|reply| matches!(reply, Value::ServerError(_))) {
        return error.clone();
    }
    let is_exists = command.name() == "SCRIPT" && command.arg(1).eq_ignore_ascii_case(b"EXISTS");
    let combined = replies.into_iter().reduce(|one, other| match (one, other) {
        // A script is there if it is on every server.
        (Value::Array(one), Value::Array(other)) if is_exists => Value::Array(
            one.into_iter().zip(other).map(|(one, other)| if one == other { one } else { Value::Int(0) }).collect(),
        ),
        (Value::Array(one), Value::Array(other)) => Value::Array(one.into_iter().chain(other).collect()),
        (Value::Int(one), Value::Int(other)) => Value::Int(one + other),
        (one, _) => one,
    });
    combined.unwrap_or(Value::Nil)
}

/// The slot of a key: CRC-16/XMODEM of what stands between its first `{` and the next `}`, if that is something, else of all of it.
fn slot(key: &[u8]) -> u16 {
    let tag = || {
        let (_, after) = key.split_at_checked(key.iter().position(|byte| *byte == b'{')? + 1)?;
        let (tag, _) = after.split_at_checked(after.iter().position(|byte| *byte == b'}')?)?;
        (!tag.is_empty()).then_some(tag)
    };
    let crc = tag().unwrap_or(key).iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slots are those that a server says: CLUSTER KEYSLOT.
    #[test]
    fn a_key_has_the_slot_of_its_tag() {
        for (key, expected) in [
            ("foo", 12_182),
            ("123456789", 12_739),
            ("{foo}bar", 12_182),
            ("login:{0}", 13_907),
            ("a{foo}{bar}", 12_182),
            ("{}foo", slot(b"{}foo")),
            ("", 0),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
        assert_ne!(slot(b"{}foo"), slot(b"{}bar"));
    }

    #[test]
    fn a_command_goes_where_its_key_is() {
        let foo = Target::Slot(12_182);
        for (command, expected) in [
            ("GET foo", foo),
            ("get foo", foo),
            ("EVALSHA 0123 2 foo bar x", foo),
            ("EVAL return_1 0 foo", Target::Any),
            ("XREAD COUNT 1 STREAMS foo 0", foo),
            ("OBJECT ENCODING foo", foo),
            ("ZUNION 2 foo bar", foo),
            ("PING", Target::Any),
            ("GET", Target::Any),
            ("DBSIZE", Target::All),
            ("SCRIPT LOAD x", Target::All),
        ] {
            let args = command.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
            assert_eq!(Target::of(&Command { args }), expected, "{command}");
        }
    }
}
