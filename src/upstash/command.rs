//! A command and its arguments. Arguments are bytes; JSON carries those that are UTF-8.

use std::{
    fmt::{self, Display, Write as _},
    io::Write as _,
};

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use super::{error::Error, script::Script};

/// One Redis command, or one call of a script.
#[derive(Debug, Clone)]
pub struct Command {
    name: Name,
    /// As they are sent: JSON strings, each behind a comma. So a page is escaped where it comes from, and copied in one piece from there on.
    arguments: Vec<u8>,
    carrier: Carrier,
    repeatable: bool,
    expected: usize,
}

#[derive(Debug, Clone, Copy)]
enum Name {
    Plain(&'static str),
    /// And how many of the arguments are its keys.
    Script(&'static Script, usize),
}

/// What can carry the arguments.
#[derive(Debug, Clone)]
enum Carrier {
    Json,
    /// A body of its own, for the last argument, which is not UTF-8.
    Body(Vec<u8>),
    /// Another than the last is not UTF-8.
    Nothing,
}

/// How a script is named: by its hash, or once in full for a server that does not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptForm {
    Hash,
    Source,
}

impl Command {
    /// A command that only reads. After a lost reply it is sent again.
    #[must_use]
    pub const fn read(name: &'static str) -> Self {
        Self::write(name).repeatable()
    }

    /// A command that writes. It is never sent twice, since the first one may have been executed.
    #[must_use]
    pub const fn write(name: &'static str) -> Self {
        let name = Name::Plain(name);
        Self { name, arguments: Vec::new(), carrier: Carrier::Json, repeatable: false, expected: 0 }
    }

    /// A call of `script` with `keys`; [`Command::arg`] adds ARGV. Like a write, it is never sent twice.
    #[must_use]
    pub fn script<K: AsRef<[u8]>>(script: &'static Script, keys: impl IntoIterator<Item = K>) -> Self {
        let mut call = Self::write("");
        call.arguments.reserve(USUAL_BYTES);
        let mut count = 0;
        for key in keys {
            call.push(&[key.as_ref()]);
            count += 1;
        }
        Self { name: Name::Script(script, count), ..call }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(self, argument: impl AsRef<[u8]>) -> Self {
        self.args([argument])
    }

    /// Adds an argument that lies in pieces.
    #[must_use]
    pub fn arg_of(mut self, pieces: &[&[u8]]) -> Self {
        self.push(pieces);
        self
    }

    /// Adds a number, a moment or whatever else is written as its text.
    #[must_use]
    pub fn num(mut self, number: impl Display + Copy) -> Self {
        if self.open() {
            // Writing to a Vec can not fail.
            let _ = write!(Escaped(&mut self.arguments), "{number}");
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

    /// Says that executing this write twice leaves what executing it once does (SET, ZADD with a score, DEL), and that its
    /// reply is not used to tell the two apart: then it is sent again after a lost reply.
    #[must_use]
    pub const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Says that its reply may have so many bytes: few such commands share a request.
    #[must_use]
    pub const fn expecting(mut self, bytes: usize) -> Self {
        self.expected = bytes;
        self
    }

    pub(super) const fn expected(&self) -> usize {
        self.expected
    }

    pub(super) const fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    pub(super) const fn is_script(&self) -> bool {
        matches!(self.name, Name::Script(..))
    }

    fn push(&mut self, pieces: &[&[u8]]) {
        let before = self.arguments.len();
        if !self.open() {
            return;
        }
        for piece in pieces {
            let is_ascii = write_text(piece, &mut self.arguments);
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
        let is_json = matches!(self.carrier, Carrier::Json);
        if is_json {
            self.arguments.extend_from_slice(b",\"");
        } else {
            self.carrier = Carrier::Nothing;
        }
        is_json
    }

    /// Writes the command as a JSON array, behind a comma.
    ///
    /// # Errors
    /// [`Error::NotUtf8`] if an argument can not be a JSON string.
    pub(super) fn write_json(&self, form: ScriptForm, json: &mut Vec<u8>) -> Result<(), Error> {
        let Carrier::Json = self.carrier else { return Err(Error::NotUtf8) };
        json.reserve(HEAD_BYTES + self.arguments.len());
        json.push(b',');
        self.write_words(form, json);
        Ok(())
    }

    /// Writes the list of all words that JSON can carry, in order: name, of a script its hash or source and the number of its keys, arguments.
    fn write_words(&self, form: ScriptForm, json: &mut Vec<u8>) {
        let (name, script) = match (self.name, form) {
            (Name::Plain(name), _) => (name, None),
            (Name::Script(script, keys), ScriptForm::Hash) => ("EVALSHA", Some((script.sha1, keys))),
            (Name::Script(script, keys), ScriptForm::Source) => ("EVAL", Some((script.source, keys))),
        };
        json.extend_from_slice(b"[\"");
        write_text(name.as_bytes(), json);
        if let Some((script, keys)) = script {
            json.extend_from_slice(b"\",\"");
            write_text(script.as_bytes(), json);
            // Writing to a Vec can not fail.
            let _ = write!(json, "\",\"{keys}");
        }
        json.push(b'"');
        json.extend_from_slice(&self.arguments);
        json.push(b']');
    }

    /// The command's path and body for the form that carries any bytes: `/NAME/argument/argument`, the last in the body.
    /// None if that is not what carries it.
    pub(super) fn to_path(&self, form: ScriptForm) -> Option<(String, Bytes)> {
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

/// A call of a script with five keys, three of which have a page's hash, and what it asks.
const USUAL_BYTES: usize = 512;
/// What stands around the arguments of a script that is named by its hash.
const HEAD_BYTES: usize = 64;

/// JSON that is written to as text.
struct Escaped<'a>(&'a mut Vec<u8>);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_text(text.as_bytes(), self.0);
        Ok(())
    }
}

/// Writes what stands between the quotes of a JSON string: what needs no escape, which is nearly all of a page, in pieces. Whether all of it
/// is ASCII.
fn write_text(mut text: &[u8], json: &mut Vec<u8>) -> bool {
    // A page has some 30 to 80 bytes between two escapes.
    json.reserve(text.len() + text.len() / 16);
    let (mut is_ascii, mut escaped) = (true, 0);
    loop {
        // What has its backslash already goes along with what comes behind it.
        let plain = Plain::of(text.get(escaped..).unwrap_or_default());
        is_ascii &= plain.is_ascii;
        let Some((plain, rest @ [byte, behind @ ..])) = text.split_at_checked(escaped + plain.bytes) else {
            json.extend_from_slice(text);
            return is_ascii;
        };
        json.extend_from_slice(plain);
        json.push(b'\\');
        (text, escaped) = match byte {
            b'"' | b'\\' => (rest, 1),
            b'\n' => {
                json.push(b'n');
                (behind, 0)
            }
            byte => {
                // Writing to a Vec can not fail.
                let _ = write!(json, "u{byte:04x}");
                (behind, 0)
            }
        };
    }
}

/// What comes before the first byte of a text that needs an escape.
struct Plain {
    bytes: usize,
    /// Whether it is ASCII, and the rest of the last eight bytes, too.
    is_ascii: bool,
}

impl Plain {
    /// Eight bytes at a time: one by one, a page took twice as long to be sent.
    fn of(text: &[u8]) -> Self {
        /// Each byte is 1.
        const ONES: u64 = u64::MAX / 255;
        /// The highest bit of each.
        const HIGHEST: u64 = ONES << 7;
        let (words, rest) = text.as_chunks::<8>();
        let (mut bytes, mut bits) = (0, 0);
        for word in words {
            let word = u64::from_le_bytes(*word);
            bits |= word;
            // A byte that is less than what is subtracted from it gets its highest bit, unless it is not ASCII. So may bytes behind it.
            // The quote and the space change places: then what needs an escape is less than what needs none, but for the backslash.
            let low = (word ^ (ONES * u64::from(b'"' ^ b' '))).wrapping_sub(ONES * 0x21);
            let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
            let escaped = (low | backslash) & !word & HIGHEST;
            if escaped != 0 {
                return Self { bytes: bytes + escaped.trailing_zeros() as usize / 8, is_ascii: bits & HIGHEST == 0 };
            }
            bytes += 8;
        }
        let is_escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
        bytes += rest.iter().position(is_escaped).unwrap_or(rest.len());
        Self { bytes, is_ascii: bits & HIGHEST == 0 && rest.is_ascii() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    static SCRIPT: Script =
        Script { name: "one", source: "return 1", sha1: "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" };

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
    fn a_script_goes_by_its_hash_or_in_full() {
        let call = Command::script(&SCRIPT, ["a", "b"]).arg("x");
        let hash = serde_json::json!(["EVALSHA", SCRIPT.sha1, "2", "a", "b", "x"]);
        assert_eq!(json(&call, ScriptForm::Hash).unwrap(), hash);
        assert_eq!(
            json(&call, ScriptForm::Source).unwrap(),
            serde_json::json!(["EVAL", "return 1", "2", "a", "b", "x"])
        );
    }

    #[test]
    fn bytes_that_json_can_not_carry_travel_as_the_body() {
        let command = Command::write("SET").arg("a/b").arg([0xff, 0x00]);
        assert_eq!(json(&command, ScriptForm::Hash), Err(Error::NotUtf8));
        let (path, body) = command.to_path(ScriptForm::Hash).unwrap();
        assert_eq!((path.as_str(), body.as_ref()), ("/SET/a%2Fb", [0xff, 0x00].as_slice()));
        let call = Command::script(&SCRIPT, ["a"]).arg("\"").arg_of(&[b"head", &[0xff]]);
        let (path, body) = call.to_path(ScriptForm::Hash).unwrap();
        assert_eq!(path, format!("/EVALSHA/{}/1/a/%22", SCRIPT.sha1));
        assert_eq!(body.as_ref(), b"head\xff");
        for command in [Command::write("SET").arg([0xff]).arg("v"), Command::write("SET").arg([0xff]).num(1)] {
            assert_eq!(json(&command, ScriptForm::Hash), Err(Error::NotUtf8));
            assert_eq!(command.to_path(ScriptForm::Hash), None);
        }
    }

    #[test]
    fn an_argument_may_lie_in_pieces() {
        let command = Command::write("SET").arg_of(&[b"a\n", b"", b"\"b"]).arg_of(&[]);
        assert_eq!(json(&command, ScriptForm::Hash).unwrap(), serde_json::json!(["SET", "a\n\"b", ""]));
    }

    #[test]
    fn what_is_written_as_a_number_is_one_argument() {
        let command = Command::write("SET").num("1\",\"2");
        assert_eq!(json(&command, ScriptForm::Hash).unwrap(), serde_json::json!(["SET", "1\",\"2"]));
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_written(text in "([\\x00-\\x7f]{0,9}|[a-z<> ]{0,40}|\\PC{0,5}|[\"\\\\\\n]{0,9}){0,12}", cut in 0..9_usize) {
            let cut = text.ceil_char_boundary(cut.min(text.len()));
            let (head, body) = text.split_at(cut);
            let command = Command::write("SET").arg_of(&[head.as_bytes(), body.as_bytes()]);
            prop_assert_eq!(json(&command, ScriptForm::Hash).unwrap(), serde_json::json!(["SET", text]));
        }

        #[test]
        fn an_escape_is_found_at_any_place(byte: u8, before in 0..40_usize, after in 0..40_usize) {
            let text = [vec![0x80; before], vec![byte], vec![b'x'; after]].concat();
            let is_escaped = byte < 0x20 || byte == b'"' || byte == b'\\';
            let bytes = if is_escaped { before } else { text.len() };
            // What stands in the same eight bytes may be told of, too.
            let plain = Plain::of(&text);
            prop_assert_eq!(plain.bytes, bytes);
            prop_assert!(plain.is_ascii || !text.is_ascii());
        }
    }
}
