//! Puts tokens together to replies. A reply that exceeds a limit is read to its end, but not kept; an error takes its
//! place. So the replies after it stay in step with their commands.

use bytes::BytesMut;

use super::{
    ProtocolError,
    token::{Token, Tokenizer},
};
use crate::{
    error::{self, MAX_COMMAND_BYTES},
    request::MAX_BODY_BYTES,
    upstream::value::{ServerError, Value},
};

/// Limit for all results of a request together, in bytes: as much as a body.
const MAX_TOTAL_BYTES: usize = MAX_BODY_BYTES;

/// Levels of arrays in a result. The formats of the answer are written recursively.
const MAX_DEPTH: usize = 128;

/// The part of a reply that is the result of one command. The limits are for one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyScope {
    /// The reply is one result.
    Result,
    /// The reply is an array with a result for each command: the reply to EXEC.
    Transaction,
}

/// Reads replies.
#[derive(Debug)]
pub(crate) struct Decoder {
    tokens: Tokenizer,
    /// Arrays that are not complete, the outermost first.
    open: Vec<OpenArray>,
    /// Size of the current result so far: its strings, and 8 for each item of an array.
    size: usize,
    /// Bytes that the results of the current request may still have.
    room: usize,
    excess: Option<Excess>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { tokens: Tokenizer::default(), open: Vec::new(), size: 0, room: MAX_TOTAL_BYTES, excess: None }
    }
}

#[derive(Debug)]
struct OpenArray {
    items: Vec<Value>,
    /// Items that are not complete. Not zero.
    remaining: usize,
}

/// The current result exceeds a limit.
#[derive(Debug)]
struct Excess {
    is_too_deep: bool,
    /// Tokens until the end of the result.
    pending: usize,
}

impl Decoder {
    /// The replies from now on belong to another request.
    pub(crate) fn begin_request(&mut self) {
        (self.size, self.room) = (0, MAX_TOTAL_BYTES);
    }

    /// The next reply; `None` if `input` ends first. Consumes what it reads.
    ///
    /// # Errors
    /// When the bytes are not RESP2.
    pub(crate) fn decode(&mut self, input: &mut BytesMut, scope: ReplyScope) -> Result<Option<Value>, ProtocolError> {
        while let Some(token) = self.tokens.next(input)? {
            let completed = if self.excess.is_some() { self.skip(&token) } else { self.keep(token, scope) };
            if let Some(reply) = completed.and_then(|value| self.complete(value)) {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    /// Adds a token to the current result. Returns a value if the token completes one.
    fn keep(&mut self, token: Token, scope: ReplyScope) -> Option<Value> {
        // Arrays around the current result.
        let outer = usize::from(scope == ReplyScope::Transaction);
        if self.open.len() <= outer {
            self.room = self.room.saturating_sub(self.size);
            self.size = 0;
        }
        self.count(&token, self.open.len() > outer);
        let depth = self.open.len().saturating_sub(outer);
        let is_too_deep = depth >= MAX_DEPTH && matches!(token, Token::Array(_));
        if is_too_deep || self.size > MAX_COMMAND_BYTES.min(self.room) {
            let unread = self.open.iter().skip(outer).map(|array| array.remaining - 1);
            let pending = unread.fold(items(&token), usize::saturating_add);
            self.open.truncate(outer);
            self.excess = Some(Excess { is_too_deep, pending });
            return self.end_of_excess();
        }
        match token {
            Token::Nil => Some(Value::Nil),
            Token::Int(number) => Some(Value::Int(number)),
            Token::Status(text) if text.kept == b"OK" => Some(Value::Okay),
            Token::Status(text) => Some(Value::SimpleString(text.kept)),
            Token::Error(text) => Some(Value::ServerError(ServerError::new(String::from_utf8_lossy(&text.kept)))),
            Token::Bulk(text) => Some(Value::BulkString(text.kept)),
            Token::Array(0) => Some(Value::Array(Vec::new())),
            Token::Array(remaining) => {
                self.open.push(OpenArray { items: Vec::new(), remaining });
                None
            }
        }
    }

    /// Counts a token of a result that exceeds a limit. Returns the error if the token ends the result.
    fn skip(&mut self, token: &Token) -> Option<Value> {
        self.count(token, true);
        let excess = self.excess.as_mut()?;
        excess.pending = (excess.pending - 1).saturating_add(items(token));
        self.end_of_excess()
    }

    fn end_of_excess(&mut self) -> Option<Value> {
        let excess = self.excess.take_if(|excess| excess.pending == 0)?;
        let text = if excess.is_too_deep {
            format!("ERR the result has more than {MAX_DEPTH} levels")
        } else if self.size > MAX_COMMAND_BYTES {
            error::size_exceeded(self.size)
        } else {
            format!("ERR max size of all results of a request exceeded. Limit: {MAX_TOTAL_BYTES} bytes")
        };
        // Nothing was kept.
        self.size = 0;
        Some(Value::ServerError(ServerError::new(text)))
    }

    fn count(&mut self, token: &Token, is_item: bool) {
        let bytes = match token {
            Token::Status(text) | Token::Error(text) | Token::Bulk(text) => text.len,
            Token::Nil | Token::Int(_) | Token::Array(_) => 0,
        };
        self.size = self.size.saturating_add(bytes).saturating_add(if is_item { 8 } else { 0 });
    }

    /// Adds a value to the innermost array. Returns the reply if that completes it.
    fn complete(&mut self, mut value: Value) -> Option<Value> {
        while let Some(mut array) = self.open.pop() {
            array.items.push(value);
            array.remaining -= 1;
            if array.remaining > 0 {
                self.open.push(array);
                return None;
            }
            value = Value::Array(array.items);
        }
        Some(value)
    }
}

/// Tokens that a token announces.
fn items(token: &Token) -> usize {
    if let Token::Array(count) = token { *count } else { 0 }
}
