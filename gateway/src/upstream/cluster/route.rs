//! Routes: the slot of a command's key, any server, or all servers. Only the first key counts, because the server
//! itself checks that all keys of a command are in one slot.

use crate::request::Command;

/// Number of hash slots in a cluster.
const SLOT_COUNT: u16 = 16_384;

/// Destination of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The server that owns this slot.
    Slot(u16),
    /// Any server, because the command has no key.
    AnyNode,
    /// All servers, because the command concerns all keys or all servers.
    AllNodes,
}

impl Route {
    /// The destination of this command.
    pub(super) fn of(command: &Command) -> Self {
        let arg = |index| Some(command.arg(index)).filter(|arg: &&[u8]| !arg.is_empty());
        let first_key = match command.name().as_str() {
            "DBSIZE" | "FLUSHALL" | "FLUSHDB" | "KEYS" | "SCRIPT" => return Self::AllNodes,
            "FUNCTION" if changes_functions(command) => return Self::AllNodes,
            "COMMAND" | "ECHO" | "FUNCTION" | "INFO" | "LASTSAVE" | "LOLWUT" | "PING" | "PUBLISH" | "PUBSUB"
            | "RANDOMKEY" | "TIME" => return Self::AnyNode,
            "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" => {
                arg(3).filter(|_| command.arg(2) != b"0")
            }
            "BITOP" | "LMPOP" | "MEMORY" | "OBJECT" | "SINTERCARD" | "XGROUP" | "XINFO" | "ZDIFF" | "ZINTER"
            | "ZINTERCARD" | "ZMPOP" | "ZUNION" => arg(2),
            "XREAD" | "XREADGROUP" => {
                let streams = command.stream_options().find(|(_, word)| word.eq_ignore_ascii_case(b"STREAMS"));
                streams.and_then(|(index, _)| arg(index + 1))
            }
            _ => arg(1),
        };
        first_key.map_or(Self::AnyNode, |key| Self::Slot(key_slot(key)))
    }
}

/// Returns whether FUNCTION changes the libraries. Each server has libraries of its own.
fn changes_functions(command: &Command) -> bool {
    let changes = ["DELETE", "FLUSH", "LOAD", "RESTORE"];
    changes.iter().any(|subcommand| command.word(1).eq_ignore_ascii_case(subcommand.as_bytes()))
}

/// The slot of a key: CRC-16/XMODEM modulo 16,384. If the key has a hash tag (text between its first `{` and the next
/// `}`), only the tag is hashed. Source: Redis Cluster specification, "Hash tags".
fn key_slot(key: &[u8]) -> u16 {
    let hash_tag = || {
        let (_, after) = key.split_at_checked(key.iter().position(|byte| *byte == b'{')? + 1)?;
        let (tag, _) = after.split_at_checked(after.iter().position(|byte| *byte == b'}')?)?;
        (!tag.is_empty()).then_some(tag)
    };
    let crc = hash_tag().unwrap_or(key).iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    });
    crc % SLOT_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected slots are the replies of a server to CLUSTER KEYSLOT.
    #[test]
    fn a_keys_slot_is_that_of_its_hash_tag() {
        for (key, expected) in [
            ("foo", 12_182),
            ("123456789", 12_739),
            ("{foo}bar", 12_182),
            ("login:{0}", 13_907),
            ("a{foo}{bar}", 12_182),
            ("{}foo", 9_500),
            ("", 0),
        ] {
            assert_eq!(key_slot(key.as_bytes()), expected, "{key}");
        }
        assert_ne!(key_slot(b"{}foo"), key_slot(b"{}bar"), "an empty hash tag does not count");
    }

    #[test]
    fn a_command_goes_to_the_slot_of_its_first_key() {
        let foo = Route::Slot(12_182);
        for (command, expected) in [
            ("GET foo", foo),
            ("get foo", foo),
            ("EVALSHA 0123 2 foo bar x", foo),
            ("EVAL return_1 0 foo", Route::AnyNode),
            ("XREAD COUNT 1 STREAMS foo 0", foo),
            ("XREADGROUP GROUP streams c STREAMS foo >", foo),
            ("OBJECT ENCODING foo", foo),
            ("ZUNION 2 foo bar", foo),
            ("PING", Route::AnyNode),
            ("GET", Route::AnyNode),
            ("DBSIZE", Route::AllNodes),
            ("SCRIPT LOAD x", Route::AllNodes),
            ("FUNCTION load x", Route::AllNodes),
            ("FUNCTION LIST", Route::AnyNode),
        ] {
            let words: Vec<_> = command.split(' ').collect();
            assert_eq!(Route::of(&Command::from_words(&words)), expected, "{command}");
        }
    }
}
