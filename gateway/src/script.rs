//! `#!lua flags=allow-key-locking`, the line with which a script tells Upstash to lock only its keys. Redis and Valkey
//! reject that flag, so it is taken out; a client still calls the script by the SHA of the text that it knows.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

use redis::Value;
use sha1::{Digest, Sha1};

use crate::request::Command;

const FLAG: &str = "allow-key-locking";
/// Scripts whose SHA is remembered. A program has tens; forgetting one costs its client a NOSCRIPT and an EVAL.
const MAX_SCRIPTS: usize = 1_000;

/// The SHA a client knows → the SHA the server knows, of the scripts that were changed.
#[derive(Debug, Default)]
pub(crate) struct Scripts(Mutex<HashMap<String, String>>);

/// The SHA to answer instead of the server's, after SCRIPT LOAD of a changed script.
pub(crate) type KnownAs = Option<String>;

impl Scripts {
    /// Makes a command about scripts one that the server understands.
    pub(crate) fn translate(&self, command: &mut Command) -> KnownAs {
        match command.name().as_str() {
            "EVAL" | "EVAL_RO" => {
                self.strip(command.args.get_mut(1)?);
            }
            "EVALSHA" | "EVALSHA_RO" => self.rename(command.args.get_mut(1)?),
            "SCRIPT" => match command.arg(1).to_ascii_uppercase().as_slice() {
                b"LOAD" => return self.strip(command.args.get_mut(2)?),
                b"EXISTS" => command.args.iter_mut().skip(2).for_each(|sha| self.rename(sha)),
                _ => {}
            },
            _ => {}
        }
        None
    }

    /// Takes the flag out of a script, remembers its SHA and returns it; `None` if there is no such flag.
    fn strip(&self, script: &mut Vec<u8>) -> KnownAs {
        let stripped = without_flag(script)?;
        let known_as = hex_sha1(script);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_SCRIPTS {
            known.clear();
        }
        known.insert(known_as.clone(), hex_sha1(&stripped));
        *script = stripped;
        Some(known_as)
    }

    fn rename(&self, sha: &mut Vec<u8>) {
        let known_as = String::from_utf8_lossy(sha).to_ascii_lowercase();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(servers) = known.get(&known_as) {
            *sha = servers.clone().into_bytes();
        }
    }
}

/// The reply to a translated command, as its client expects it.
pub(crate) fn translate_back(reply: Value, known_as: KnownAs) -> Value {
    match (reply, known_as) {
        (Value::BulkString(_), Some(sha)) => Value::BulkString(sha.into_bytes()),
        (reply, _) => reply,
    }
}

/// The script without the flag: its first line keeps other flags, or is left empty, so that the line numbers of errors
/// stay right. `None` if the flag is not there.
fn without_flag(script: &[u8]) -> Option<Vec<u8>> {
    let end = script.iter().position(|byte| *byte == b'\n').unwrap_or(script.len());
    let (shebang, rest) = script.split_at_checked(end)?;
    let shebang = std::str::from_utf8(shebang).ok()?;
    let (interpreter, flags) = shebang.split_once("flags=")?;
    if !interpreter.starts_with("#!") {
        return None;
    }
    let all = flags.trim_end().split(',');
    let others: Vec<&str> = all.clone().filter(|flag| *flag != FLAG).collect();
    if others.len() == all.count() {
        return None;
    }
    let mut stripped = Vec::with_capacity(script.len());
    if !others.is_empty() {
        stripped.extend_from_slice(format!("{interpreter}flags={}", others.join(",")).as_bytes());
    }
    stripped.extend_from_slice(rest);
    Some(stripped)
}

fn hex_sha1(script: &[u8]) -> String {
    Sha1::digest(script).iter().fold(String::with_capacity(40), |mut hex, byte| {
        // Writing to a String can not fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::without_flag;

    #[test]
    fn only_the_flag_is_taken_out_of_the_first_line() {
        let cases: [(&str, Option<&str>); 7] = [
            ("#!lua flags=allow-key-locking\nreturn 1", Some("\nreturn 1")),
            ("#!lua flags=no-writes,allow-key-locking\nreturn 1", Some("#!lua flags=no-writes\nreturn 1")),
            ("#!lua flags=allow-key-locking\r\nreturn 1", Some("\nreturn 1")),
            ("#!lua flags=allow-key-locking", Some("")),
            ("#!lua flags=no-writes\nreturn 1", None),
            ("return 1 -- flags=allow-key-locking", None),
            ("-- x\n#!lua flags=allow-key-locking\nreturn 1", None),
        ];
        for (script, expected) in cases {
            let stripped = without_flag(script.as_bytes());
            assert_eq!(stripped.as_deref(), expected.map(str::as_bytes), "{script}");
        }
    }
}
