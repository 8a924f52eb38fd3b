//! Splits a stream of bytes into tokens. A string longer than [`MAX_KEPT`] is counted, but only its begin is kept.

use std::mem;

use bytes::BytesMut;

use super::ProtocolError;
use crate::error::MAX_COMMAND_BYTES;

/// Bytes that are kept of a line or string: the largest result, the first byte of a line, and the line break.
const MAX_KEPT: usize = MAX_COMMAND_BYTES + 3;

/// A part of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    Nil,
    Int(i64),
    Status(Text),
    Error(Text),
    Bulk(Text),
    /// The begin of an array with so many items.
    Array(usize),
}

/// A string of any length.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    /// The begin of the string, at most [`MAX_KEPT`] bytes.
    pub(super) kept: Vec<u8>,
    /// Length of the whole string, in bytes.
    pub(super) len: usize,
    /// The last two bytes.
    tail: [u8; 2],
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.len += bytes.len();
        for byte in bytes.iter().skip(bytes.len().saturating_sub(2)) {
            self.tail = [self.tail[1], *byte];
        }
    }

    fn has_line_break(&self) -> bool {
        self.len >= 2 && self.tail == *b"\r\n"
    }

    /// Removes the line break from the end.
    fn without_line_break(mut self) -> Self {
        self.len = self.len.saturating_sub(2);
        self.kept.truncate(self.len);
        self
    }

    /// Removes the first byte.
    fn without_kind(mut self) -> Self {
        self.kept.drain(..self.kept.len().min(1));
        self.len = self.len.saturating_sub(1);
        self
    }

    /// The number that the string is. `None` for any other string.
    fn number(&self) -> Option<i64> {
        std::str::from_utf8(&self.kept).ok()?.parse().ok()
    }
}

/// Reads tokens.
#[derive(Debug, Default)]
pub(super) struct Tokenizer {
    text: Text,
    /// Bytes until the end of a string and its line break. `None` within a line.
    remaining: Option<usize>,
}

impl Tokenizer {
    /// The next token; `None` if `input` ends first. Consumes what it reads.
    ///
    /// # Errors
    /// When the bytes are not RESP2.
    pub(super) fn next(&mut self, input: &mut BytesMut) -> Result<Option<Token>, ProtocolError> {
        while !input.is_empty() {
            if let Some(remaining) = self.remaining {
                let part = input.split_to(remaining.min(input.len()));
                self.text.push(&part);
                self.remaining = Some(remaining - part.len());
                if remaining > part.len() {
                    break;
                }
                self.remaining = None;
                let text = mem::take(&mut self.text);
                return if text.has_line_break() {
                    Ok(Some(Token::Bulk(text.without_line_break())))
                } else {
                    Err(ProtocolError)
                };
            }
            let end = input.iter().position(|byte| *byte == b'\n').map_or(input.len(), |index| index + 1);
            self.text.push(&input.split_to(end));
            if self.text.has_line_break()
                && let Some(token) = self.end_of_line()?
            {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    /// The token of a line; `None` if it announces a string.
    fn end_of_line(&mut self) -> Result<Option<Token>, ProtocolError> {
        let line = mem::take(&mut self.text).without_line_break();
        let kind = line.kept.first().copied();
        let text = line.without_kind();
        let length = |number: i64| usize::try_from(number).ok();
        let token = match kind {
            Some(b'+') => Token::Status(text),
            Some(b'-') => Token::Error(text),
            Some(b':') => Token::Int(text.number().ok_or(ProtocolError)?),
            Some(b'*') => {
                text.number().map(|number| length(number).map_or(Token::Nil, Token::Array)).ok_or(ProtocolError)?
            }
            Some(b'$') => match text.number().map(length).ok_or(ProtocolError)? {
                None => Token::Nil,
                Some(length) => {
                    self.text.kept.reserve(length.min(MAX_KEPT));
                    self.remaining = Some(length.checked_add(2).ok_or(ProtocolError)?);
                    return Ok(None);
                }
            },
            _ => return Err(ProtocolError),
        };
        Ok(Some(token))
    }
}
