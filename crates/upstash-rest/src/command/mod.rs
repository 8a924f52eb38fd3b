//! A command and its arguments. Arguments are bytes; JSON carries those that are UTF-8.

mod escape;
mod typed;

use std::{
    fmt::{self, Display, Write as _},
    io::Write as _,
};

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use self::escape::{EscapingWriter, write_escaped};
pub use self::typed::{CommandList, Typed};
use crate::{error::Error, script::Script};

/// Bytes to reserve for the arguments of a script: those of a call with five keys fit.
const SCRIPT_BYTES: usize = 512;
/// Bytes around the arguments of a script that is named by its hash.
const HEAD_BYTES: usize = 64;

/// One Redis command, or one call of a script. Its reply has the type that the caller asks for; see [`Typed`] for
/// commands that know theirs.
#[derive(Clone)]
pub struct Command {
    verb: Verb,
    /// JSON strings as they are sent, each after a comma. An argument is escaped once, where it comes from, and copied
    /// in one piece after that: with one allocation per argument, to send a page of 20 KB took 88 µs instead of 47.
    arguments: Vec<u8>,
    carrier: Carrier,
    repeatable: bool,
    is_read: bool,
    is_synced: bool,
    expected_bytes: usize,
}

#[derive(Clone, Copy)]
enum Verb {
    Name(&'static str),
    /// A script, and the number of arguments that are its keys.
    Script(&'static Script, usize),
}

/// The part of an HTTP request that can carry all arguments.
#[derive(Clone)]
enum Carrier {
    Json,
    /// A raw body for the last argument, which is not UTF-8; the path carries the others.
    Body(Vec<u8>),
    /// None: an argument before the last is not UTF-8.
    None,
}

/// The form in which a request names a script: its hash, or its text for a server that does not know the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptForm {
    Hash,
    Source,
}

impl Command {
    /// A command that only reads. The client repeats it after a lost reply.
    #[must_use]
    pub const fn read(name: &'static str) -> Self {
        let mut command = Self::write(name).repeatable();
        command.is_read = true;
        command
    }

    /// A command that writes. The client never repeats it, because the first one may have been executed.
    #[must_use]
    pub const fn write(name: &'static str) -> Self {
        let verb = Verb::Name(name);
        Self {
            verb,
            arguments: Vec::new(),
            carrier: Carrier::Json,
            repeatable: false,
            is_read: false,
            is_synced: false,
            expected_bytes: 0,
        }
    }

    /// A call of `script` with `keys`; [`Command::arg`] adds ARGV. The client never repeats it, as with a write.
    #[must_use]
    pub fn script<K: AsRef<[u8]>>(script: &'static Script, keys: impl IntoIterator<Item = K>) -> Self {
        let mut call = Self::write("");
        call.arguments.reserve(SCRIPT_BYTES);
        let mut count = 0;
        for key in keys {
            call.push(&[key.as_ref()]);
            count += 1;
        }
        Self { verb: Verb::Script(script, count), ..call }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(self, argument: impl AsRef<[u8]>) -> Self {
        self.args([argument])
    }

    /// Adds one argument that consists of several pieces, without copying them together first.
    #[must_use]
    pub fn arg_concat(mut self, pieces: &[&[u8]]) -> Self {
        self.push(pieces);
        self
    }

    /// Adds a number, or any value that is written as its text.
    #[must_use]
    pub fn num(mut self, number: impl Display + Copy) -> Self {
        if self.open() {
            // Writing to a Vec cannot fail.
            let _ = write!(EscapingWriter(&mut self.arguments), "{number}");
            self.arguments.push(b'"');
        }
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<A: AsRef<[u8]>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        for argument in arguments {
            self.push(&[argument.as_ref()]);
        }
        self
    }

    /// Declares that this write is idempotent (SET, ZADD with a score, DEL), and that its reply is not used to tell a
    /// first execution from a second. The client then repeats it after a lost reply.
    #[must_use]
    pub const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Declares that later reads in the same [`SyncScope`](crate::SyncScope) must show this write. Without a scope, each
    /// write is shown.
    #[must_use]
    pub const fn synced(mut self) -> Self {
        self.is_synced = true;
        self
    }

    /// Declares the size of the reply that may come, in bytes: few such commands share a request.
    #[must_use]
    pub const fn expecting(mut self, bytes: usize) -> Self {
        self.expected_bytes = bytes;
        self
    }

    /// The same command with a known type of reply.
    #[must_use]
    pub fn reply_as<T>(self) -> Typed<T> {
        self.into()
    }

    /// Returns whether all arguments are UTF-8: only such a command can be part of a pipeline.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.carrier, Carrier::Json)
    }

    pub(crate) const fn expected_bytes(&self) -> usize {
        self.expected_bytes
    }

    pub(crate) const fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    pub(crate) const fn is_read(&self) -> bool {
        self.is_read
    }

    pub(crate) const fn is_synced(&self) -> bool {
        self.is_synced
    }

    pub(crate) const fn is_script(&self) -> bool {
        matches!(self.verb, Verb::Script(..))
    }

    /// The same call of a script, as a read or as a write.
    pub(crate) const fn with_read(mut self, is_read: bool) -> Self {
        self.is_read = is_read;
        self
    }

    fn push(&mut self, pieces: &[&[u8]]) {
        let before = self.arguments.len();
        if !self.open() {
            return;
        }
        for piece in pieces {
            let is_ascii = write_escaped(piece, &mut self.arguments);
            if !is_ascii && str::from_utf8(piece).is_err() {
                self.arguments.truncate(before);
                self.carrier = Carrier::Body(pieces.concat());
                return;
            }
        }
        self.arguments.push(b'"');
    }

    /// Begins an argument, if JSON can carry those before it.
    fn open(&mut self) -> bool {
        let is_json = self.is_text();
        if is_json {
            self.arguments.extend_from_slice(b",\"");
        } else {
            self.carrier = Carrier::None;
        }
        is_json
    }

    /// Writes the command as a JSON array, after a comma.
    ///
    /// # Errors
    /// [`Error::NotUtf8`] if an argument cannot be a JSON string.
    pub(crate) fn write_json(&self, form: ScriptForm, json: &mut Vec<u8>) -> Result<(), Error> {
        let Carrier::Json = self.carrier else { return Err(Error::NotUtf8) };
        json.reserve(HEAD_BYTES + self.arguments.len());
        json.push(b',');
        self.write_words(form, json);
        Ok(())
    }

    /// Writes the array of all words that JSON can carry, in order: the name, the hash or the text of a script and the
    /// number of its keys, the arguments.
    fn write_words(&self, form: ScriptForm, json: &mut Vec<u8>) {
        let read_only;
        let (name, script) = match (self.verb, form, self.is_read) {
            (Verb::Name(name), ..) => (name, None),
            (Verb::Script(script, keys), ScriptForm::Hash, false) => ("EVALSHA", Some((script.sha1, keys))),
            (Verb::Script(script, keys), ScriptForm::Source, false) => ("EVAL", Some((script.source, keys))),
            (Verb::Script(script, keys), ScriptForm::Hash, true) => ("EVALSHA_RO", Some((script.read_only_sha1, keys))),
            (Verb::Script(script, keys), ScriptForm::Source, true) => {
                read_only = script.read_only_source();
                ("EVAL_RO", Some((read_only.as_str(), keys)))
            }
        };
        json.extend_from_slice(b"[\"");
        write_escaped(name.as_bytes(), json);
        if let Some((script, keys)) = script {
            json.extend_from_slice(b"\",\"");
            write_escaped(script.as_bytes(), json);
            // Writing to a Vec cannot fail.
            let _ = write!(json, "\",\"{keys}");
        }
        json.push(b'"');
        json.extend_from_slice(&self.arguments);
        json.push(b']');
    }

    /// The path and the body of the form that carries any bytes: `/NAME/argument/argument`, with the last argument in
    /// the body. None if JSON carries the command, or nothing does.
    pub(crate) fn to_path(&self, form: ScriptForm) -> Option<(String, Bytes)> {
        let Carrier::Body(body) = &self.carrier else { return None };
        let mut json = Vec::new();
        self.write_words(form, &mut json);
        let mut path = String::new();
        for word in serde_json::from_slice::<Vec<String>>(&json).ok()? {
            path.push('/');
            path.extend(percent_encode(word.as_bytes(), NON_ALPHANUMERIC));
        }
        Some((path, Bytes::copy_from_slice(body)))
    }
}

/// Shows the name only: keys and values do not belong in a log.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.verb {
            Verb::Name(name) => name,
            Verb::Script(script, _) => script.name,
        };
        f.debug_struct("Command").field("name", &name).field("repeatable", &self.repeatable).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    static SCRIPT: Script = Script {
        name: "one",
        source: "return 1",
        sha1: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
        read_only_sha1: "",
    };

    fn json(command: &Command, form: ScriptForm) -> Result<serde_json::Value, Error> {
        let mut json = Vec::new();
        command.write_json(form, &mut json)?;
        Ok(serde_json::from_slice(json.strip_prefix(b",").unwrap()).unwrap())
    }

    #[test]
    fn a_command_is_an_array_of_strings() {
        let command = Command::write("SET").arg("k").arg("ü\"\0").num(1.5);
        assert_eq!(json(&command, ScriptForm::Hash).unwrap(), serde_json::json!(["SET", "k", "ü\"\0", "1.5"]));
    }

    #[test]
    fn a_script_is_sent_by_its_hash_or_in_full() {
        let call = Command::script(&SCRIPT, ["a", "b"]).arg("x");
        let hash = serde_json::json!(["EVALSHA", SCRIPT.sha1, "2", "a", "b", "x"]);
        assert_eq!(json(&call, ScriptForm::Hash).unwrap(), hash);
        assert_eq!(
            json(&call, ScriptForm::Source).unwrap(),
            serde_json::json!(["EVAL", "return 1", "2", "a", "b", "x"])
        );
    }

    #[test]
    fn bytes_that_json_cannot_carry_travel_as_the_body() {
        let command = Command::write("SET").arg("a/b").arg([0xff, 0x00]);
        assert!(!command.is_text());
        assert_eq!(json(&command, ScriptForm::Hash), Err(Error::NotUtf8));
        let (path, body) = command.to_path(ScriptForm::Hash).unwrap();
        assert_eq!((path.as_str(), body.as_ref()), ("/SET/a%2Fb", [0xff, 0x00].as_slice()));
        let call = Command::script(&SCRIPT, ["a"]).arg("\"").arg_concat(&[b"head", &[0xff]]);
        let (path, body) = call.to_path(ScriptForm::Hash).unwrap();
        assert_eq!(path, format!("/EVALSHA/{}/1/a/%22", SCRIPT.sha1));
        assert_eq!(body.as_ref(), b"head\xff");
        for command in [Command::write("SET").arg([0xff]).arg("v"), Command::write("SET").arg([0xff]).num(1)] {
            assert_eq!(json(&command, ScriptForm::Hash), Err(Error::NotUtf8));
            assert_eq!(command.to_path(ScriptForm::Hash), None);
        }
    }

    #[test]
    fn an_argument_may_consist_of_pieces() {
        let command = Command::write("SET").arg_concat(&[b"a\n", b"", b"\"b"]).arg_concat(&[]);
        assert_eq!(json(&command, ScriptForm::Hash).unwrap(), serde_json::json!(["SET", "a\n\"b", ""]));
    }

    #[test]
    fn a_number_is_one_argument_whatever_its_text() {
        let command = Command::write("SET").num("1\",\"2");
        assert_eq!(json(&command, ScriptForm::Hash).unwrap(), serde_json::json!(["SET", "1\",\"2"]));
    }

    #[test]
    fn debug_output_shows_no_argument() {
        let shown = format!("{:?}", Command::write("SET").arg("key").arg([0xff]));
        assert_eq!(shown, "Command { name: \"SET\", repeatable: false, .. }");
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_written(text in "([\\x00-\\x7f]{0,9}|[a-z<> ]{0,40}|\\PC{0,5}|[\"\\\\\\n]{0,9}){0,12}", cut in 0..9_usize) {
            let cut = text.ceil_char_boundary(cut.min(text.len()));
            let (head, body) = text.split_at(cut);
            let command = Command::write("SET").arg_concat(&[head.as_bytes(), body.as_bytes()]);
            prop_assert_eq!(json(&command, ScriptForm::Hash).unwrap(), serde_json::json!(["SET", text]));
        }
    }
}
