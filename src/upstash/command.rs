//! A command and its arguments. Arguments are bytes; JSON carries those that are UTF-8.

use std::io::Write as _;

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use super::{error::Error, script::Script};

/// One Redis command, or one call of a script.
#[derive(Debug, Clone)]
pub struct Command {
    name: Name,
    arguments: Vec<Vec<u8>>,
    repeatable: bool,
    expected: usize,
}

#[derive(Debug, Clone)]
enum Name {
    Plain(&'static str),
    Script(&'static Script),
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
        Self { name: Name::Plain(name), arguments: Vec::new(), repeatable: true, expected: 0 }
    }

    /// A command that writes. It is never sent twice, since the first one may have been executed.
    #[must_use]
    pub const fn write(name: &'static str) -> Self {
        Self { name: Name::Plain(name), arguments: Vec::new(), repeatable: false, expected: 0 }
    }

    /// A call of `script` with `keys`; [`Command::arg`] adds ARGV. Like a write, it is never sent twice.
    #[must_use]
    pub fn script<K: AsRef<[u8]>>(script: &'static Script, keys: impl IntoIterator<Item = K>) -> Self {
        let keys: Vec<_> = keys.into_iter().map(|key| key.as_ref().to_vec()).collect();
        let mut arguments = Vec::with_capacity(keys.len() + 8);
        arguments.push(keys.len().to_string().into_bytes());
        arguments.extend(keys);
        Self { name: Name::Script(script), arguments, repeatable: false, expected: 0 }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.arguments.push(argument.as_ref().to_vec());
        self
    }

    /// Adds a number, a moment or whatever else is written as its text.
    #[must_use]
    pub fn num(self, number: impl ToString + Copy) -> Self {
        self.arg(number.to_string())
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<A: AsRef<[u8]>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_vec()));
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
        matches!(self.name, Name::Script(_))
    }

    /// The command's words in order: name, script hash or source, arguments.
    fn words(&self, form: ScriptForm) -> impl Iterator<Item = &[u8]> {
        let (name, script) = match (&self.name, form) {
            (Name::Plain(name), _) => (*name, None),
            (Name::Script(script), ScriptForm::Hash) => ("EVALSHA", Some(script.sha1)),
            (Name::Script(script), ScriptForm::Source) => ("EVAL", Some(script.source)),
        };
        let arguments = self.arguments.iter().map(Vec::as_slice);
        std::iter::once(name.as_bytes()).chain(script.map(str::as_bytes)).chain(arguments)
    }

    /// Writes the command as a JSON array.
    ///
    /// # Errors
    /// [`Error::NotUtf8`] if an argument can not be a JSON string; then `json` is of no use.
    pub(super) fn write_json(&self, form: ScriptForm, json: &mut Vec<u8>) -> Result<(), Error> {
        json.push(b'[');
        for (number, word) in self.words(form).enumerate() {
            if number > 0 {
                json.push(b',');
            }
            let word = std::str::from_utf8(word).map_err(|_| Error::NotUtf8)?;
            write_string(word, json);
        }
        json.push(b']');
        Ok(())
    }

    /// The command's path and body for the form that carries any bytes: `/NAME/argument/argument`, the last in the body.
    /// None if another argument than the last is not UTF-8, or there is none.
    pub(super) fn to_path(&self, form: ScriptForm) -> Option<(String, Bytes)> {
        let last = self.arguments.last()?;
        let words: Vec<_> = self.words(form).collect();
        let mut path = String::new();
        for word in words.split_last()?.1 {
            std::str::from_utf8(word).ok()?;
            path.push('/');
            path.extend(percent_encode(word, NON_ALPHANUMERIC));
        }
        Some((path, Bytes::copy_from_slice(last)))
    }
}

/// Writes a JSON string: what needs no escape, which is nearly all of a page, in one piece.
fn write_string(text: &str, json: &mut Vec<u8>) {
    let is_escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    json.push(b'"');
    for piece in text.as_bytes().split_inclusive(is_escaped) {
        match piece.split_last() {
            Some((byte, plain)) if is_escaped(byte) => {
                json.extend_from_slice(plain);
                match byte {
                    b'\n' => json.extend_from_slice(b"\\n"),
                    b'"' | b'\\' => json.extend_from_slice(&[b'\\', *byte]),
                    // Writing to a Vec can not fail.
                    byte => drop(write!(json, "\\u{byte:04x}")),
                }
            }
            _ => json.extend_from_slice(piece),
        }
    }
    json.push(b'"');
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
        Ok(serde_json::from_slice(&json).unwrap())
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
        assert_eq!(Command::write("SET").arg([0xff]).arg("v").to_path(ScriptForm::Hash), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was_written(text in "[\\x00-\\x7f]{0,40}\\PC{0,20}") {
            let mut json = Vec::new();
            write_string(&text, &mut json);
            prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }
}
