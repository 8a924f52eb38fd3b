//! The script flag `#!lua flags=allow-key-locking`. It asks Upstash to lock only the script's keys. Redis and Valkey
//! reject the flag, so the gateway removes it. That changes the script's SHA-1; the gateway translates the SHA-1 of the
//! client's text in both directions.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha1::{Digest, Sha1};

use crate::{request::Command, upstream::Value};

const FLAG: &str = "allow-key-locking";
/// Bound of the translation table. A program has tens of scripts. A client whose entry was evicted gets NOSCRIPT and
/// sends EVAL again.
const MAX_ENTRIES: usize = 1_000;

/// Translation table for the scripts that were changed: SHA-1 of the client's text → SHA-1 of the server's text.
#[derive(Debug, Default)]
pub(crate) struct ScriptShas(Mutex<HashMap<String, String>>);

/// SHA-1 in hex that replaces the server's reply to SCRIPT LOAD; `None` if the reply stays.
pub(crate) type ClientSha = Option<String>;

impl ScriptShas {
    /// Translates a script command from the client's text and SHA-1 to the server's.
    pub(crate) fn translate_command(&self, command: &mut Command) -> ClientSha {
        match command.name().as_str() {
            "EVAL" | "EVAL_RO" => {
                self.remove_flag(command.args.get_mut(1)?);
            }
            "EVALSHA" | "EVALSHA_RO" => self.translate_sha(command.args.get_mut(1)?),
            "SCRIPT" => match command.word(1).to_ascii_uppercase().as_slice() {
                b"LOAD" => return self.remove_flag(command.args.get_mut(2)?),
                b"EXISTS" => command.args.iter_mut().skip(2).for_each(|sha| self.translate_sha(sha)),
                _ => {}
            },
            _ => {}
        }
        None
    }

    /// Removes the flag from a script and returns the SHA-1 of the client's text; `None` if the script has no such
    /// flag.
    fn remove_flag(&self, script: &mut Vec<u8>) -> ClientSha {
        let changed = without_flag(script)?;
        let client_sha = sha1_hex(script);
        let mut shas = self.lock();
        if shas.len() >= MAX_ENTRIES {
            shas.clear();
        }
        shas.insert(client_sha.clone(), sha1_hex(&changed));
        *script = changed;
        Some(client_sha)
    }

    fn translate_sha(&self, sha: &mut Vec<u8>) {
        let client_sha = String::from_utf8_lossy(sha).to_ascii_lowercase();
        if let Some(server_sha) = self.lock().get(&client_sha) {
            *sha = server_sha.clone().into_bytes();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Translates the reply to a command that [`ScriptShas::translate_command`] returned `client_sha` for.
pub(crate) fn translate_reply(reply: Value, client_sha: ClientSha) -> Value {
    match (reply, client_sha) {
        (Value::BulkString(_), Some(sha)) => Value::BulkString(sha.into_bytes()),
        (reply, _) => reply,
    }
}

/// The script without the flag, or `None` if it has no such flag. The first line keeps its other flags; without any, it
/// stays as an empty line, so line numbers in error messages stay correct.
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
    let mut changed = Vec::with_capacity(script.len());
    if !others.is_empty() {
        changed.extend_from_slice(format!("{interpreter}flags={}", others.join(",")).as_bytes());
    }
    changed.extend_from_slice(rest);
    Some(changed)
}

fn sha1_hex(script: &[u8]) -> String {
    Sha1::digest(script).iter().fold(String::with_capacity(40), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::without_flag;

    #[test]
    fn only_the_flag_is_removed_and_only_from_the_first_line() {
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
            let changed = without_flag(script.as_bytes());
            assert_eq!(changed.as_deref(), expected.map(str::as_bytes), "{script}");
        }
    }
}
