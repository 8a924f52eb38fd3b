//! A connection on which Redis pushes values: after SUBSCRIBE, PSUBSCRIBE or MONITOR. Each stream has one of its own,
//! because the server accepts no other command on it.

use std::io;

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    connection::Batch,
    login::Login,
    protocol::{Decoder, ReplyScope},
    value::Value,
};
use crate::request::Command;

/// Bytes that are read with one system call, if they wait.
const READ_SIZE: usize = 64 << 10;

/// A connection that only one stream reads. It closes when dropped.
pub(crate) struct PushConnection {
    stream: TcpStream,
    buffer: BytesMut,
    decoder: Decoder,
}

impl PushConnection {
    /// Logs in, sends the command, and waits for the first reply.
    ///
    /// # Errors
    /// With the cause: the connection broke, or the login is refused.
    pub(super) async fn open(stream: TcpStream, login: &Login, command: &Command) -> Result<(Value, Self), String> {
        let mut connection = Self { stream, buffer: BytesMut::new(), decoder: Decoder::default() };
        let commands = login.commands();
        connection.send(commands.iter().chain([command])).await.map_err(|error| error.to_string())?;
        let mut replies = Vec::new();
        while replies.len() < commands.len() {
            replies.push(connection.expect_value().await?);
        }
        Login::check(&commands, replies)?;
        Ok((connection.expect_value().await?, connection))
    }

    async fn expect_value(&mut self) -> Result<Value, String> {
        self.next().await.ok_or_else(|| "the connection is closed".to_owned())
    }

    /// The next value; `None` when the connection is closed. Loses nothing if it is cancelled.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(value) = self.decode()? {
                return Some(value);
            }
            self.buffer.reserve(READ_SIZE);
            if !matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..)) {
                return None;
            }
        }
    }

    /// The next value, if it has arrived already.
    pub(crate) fn next_arrived(&mut self) -> Option<Value> {
        // The next read reports a broken connection.
        self.decode().flatten()
    }

    /// Asks the server to push a PONG. Only subscribers can.
    pub(crate) async fn ping(&mut self) -> io::Result<()> {
        self.send([&Command::from_words(&["PING"])]).await
    }

    async fn send(&mut self, commands: impl IntoIterator<Item = &Command>) -> io::Result<()> {
        self.stream.write_all(&Batch::of(commands).bytes).await
    }

    /// The next value of the buffer: the inner `None` if it is not complete, the outer if the bytes are not RESP2.
    #[expect(clippy::option_option, reason = "the outer layer ends the stream, the inner one waits for more bytes")]
    fn decode(&mut self) -> Option<Option<Value>> {
        let value = self.decoder.decode(&mut self.buffer, ReplyScope::Result).ok()?;
        if value.is_some() {
            // The limit is for one value, not for all values of the stream.
            self.decoder.begin_request();
        }
        Some(value)
    }
}
