//! A connection to Redis that all requests share. A request's commands are written in one piece, so commands of other
//! requests cannot come between. Replies come in the order of the commands.
//!
//! It replaces `MultiplexedConnection` of the crate `redis`, whose parser cannot be exchanged (see
//! [`super::protocol`]), and which does not tell whether a request that timed out was sent.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc, oneshot},
    time::{Duration, Instant, sleep, timeout, timeout_at},
};

use super::{
    error::UpstreamError,
    protocol::{self, Decoder, ProtocolError, ReplyScope},
    value::Value,
};
use crate::request::Command;

/// Requests that wait to be written. More wait in their own tasks.
const QUEUE_CAPACITY: usize = 1_024;
/// Bytes that are read with one system call, if they wait.
const READ_SIZE: usize = 64 << 10;
/// Requests that are written with one system call, if they wait.
const MAX_WRITE_BATCH: usize = 64;

/// Commands to send.
pub(crate) struct Batch {
    /// The commands in RESP2.
    pub(crate) bytes: Vec<u8>,
    /// Number of commands.
    pub(crate) commands: usize,
    /// True if the last command is EXEC.
    pub(crate) is_transaction: bool,
}

impl Batch {
    /// Encodes the commands as one pipeline.
    pub(crate) fn of<'a>(commands: impl IntoIterator<Item = &'a Command>) -> Self {
        let mut batch = Self { bytes: Vec::new(), commands: 0, is_transaction: false };
        for command in commands {
            protocol::encode(command, &mut batch.bytes);
            batch.commands += 1;
        }
        batch
    }
}

/// A handle to an open connection. The connection closes when the last handle is dropped and the replies have come, at
/// the latest after the reply timeout. It takes no more requests once Redis has sent nothing for the reply timeout although
/// replies are due.
#[derive(Clone)]
pub(crate) struct Connection {
    requests: mpsc::Sender<Request>,
}

struct Request {
    batch: Batch,
    /// Set by the side that decides first: the writer when it sends the request, or the caller when its time is over.
    is_decided: Arc<AtomicBool>,
    respond: oneshot::Sender<Vec<Value>>,
}

impl Connection {
    /// Serves a connection in a task of its own.
    pub(crate) fn new(stream: TcpStream, reply_timeout: Duration) -> Self {
        let (requests, queue) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(drive(stream, queue, reply_timeout));
        Self { requests }
    }

    /// Returns whether both are handles to the same connection.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.requests.same_channel(&other.requests)
    }

    /// Returns whether the connection is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Sends commands and returns one reply per command.
    ///
    /// # Errors
    /// [`UpstreamError::Unreachable`] if nothing was sent, else [`UpstreamError::ConnectionLost`] or
    /// [`UpstreamError::TimedOut`].
    pub(crate) async fn send(&self, batch: Batch, deadline: Instant) -> Result<Vec<Value>, UpstreamError> {
        let is_decided = Arc::new(AtomicBool::new(false));
        let (respond, response) = oneshot::channel();
        let request = Request { batch, is_decided: Arc::clone(&is_decided), respond };
        let exchange = async {
            self.requests.send(request).await.ok()?;
            response.await.ok()
        };
        let outcome = timeout_at(deadline, exchange).await;
        match outcome {
            Ok(Some(replies)) => Ok(replies),
            // If the writer has not decided to send the request, it never will.
            _ if !is_decided.swap(true, Ordering::AcqRel) => Err(UpstreamError::Unreachable),
            Ok(None) => Err(UpstreamError::ConnectionLost),
            Err(_) => Err(UpstreamError::TimedOut),
        }
    }
}

/// A request that was written, in part or as a whole.
struct SentRequest {
    commands: usize,
    is_transaction: bool,
    respond: oneshot::Sender<Vec<Value>>,
}

async fn drive(stream: TcpStream, queue: mpsc::Receiver<Request>, reply_timeout: Duration) {
    let (reader, writer) = stream.into_split();
    // Its length is bounded by the requests in the process: one for each HTTP connection.
    let (sent, awaiting) = mpsc::unbounded_channel();
    let silence = Notify::new();
    let write = async {
        // An error means that the connection is lost. Replies that have arrived are still read. Silence closes the queue, so
        // that the next request connects again. If clients leave before the limit, their requests cannot detect the silence.
        tokio::select! {
            _ = write_requests(writer, queue, sent) => {}
            () = silence.notified() => {}
        }
        sleep(reply_timeout).await;
    };
    let source = ReplySource { reader, reply_timeout, silence: &silence };
    tokio::select! {
        // The error would reach nobody: the callers notice that no reply comes.
        _ = read_replies(source, awaiting) => {}
        () = write => {}
    }
}

/// The bytes that Redis sends.
struct ReplySource<'a> {
    reader: OwnedReadHalf,
    reply_timeout: Duration,
    /// Notified when nothing arrives for the reply timeout although a reply is due.
    silence: &'a Notify,
}

impl ReplySource<'_> {
    /// Reads bytes of a reply that is due.
    async fn read(&mut self, buffer: &mut BytesMut) -> Result<(), ReadError> {
        buffer.reserve(READ_SIZE);
        let count = if let Ok(count) = timeout(self.reply_timeout, self.reader.read_buf(buffer)).await {
            count?
        } else {
            self.silence.notify_one();
            self.reader.read_buf(buffer).await?
        };
        if count == 0 { Err(ReadError::Closed) } else { Ok(()) }
    }
}

async fn write_requests(
    mut writer: OwnedWriteHalf,
    mut queue: mpsc::Receiver<Request>,
    sent: mpsc::UnboundedSender<SentRequest>,
) -> io::Result<()> {
    let mut waiting = Vec::with_capacity(MAX_WRITE_BATCH);
    while queue.recv_many(&mut waiting, MAX_WRITE_BATCH).await > 0 {
        let mut bytes = Vec::new();
        for Request { batch, is_decided, respond } in waiting.drain(..) {
            // A caller that is gone wants no execution.
            if respond.is_closed() || is_decided.swap(true, Ordering::AcqRel) {
                continue;
            }
            let request = SentRequest { commands: batch.commands, is_transaction: batch.is_transaction, respond };
            if sent.send(request).is_err() {
                return Ok(());
            }
            if bytes.is_empty() {
                bytes = batch.bytes;
            } else {
                bytes.extend_from_slice(&batch.bytes);
            }
        }
        writer.write_all(&bytes).await?;
    }
    Ok(())
}

/// The connection cannot be read any further.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the connection is closed")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

async fn read_replies(
    mut source: ReplySource<'_>,
    mut awaiting: mpsc::UnboundedReceiver<SentRequest>,
) -> Result<(), ReadError> {
    let mut buffer = BytesMut::new();
    let mut decoder = Decoder::default();
    loop {
        let request = tokio::select! {
            biased;
            request = awaiting.recv() => request,
            // Without a request, Redis sends nothing: this is the end of the connection.
            _ = source.reader.read_u8() => return Err(ReadError::Closed),
        };
        let Some(request) = request else { return Ok(()) };
        decoder.begin_request();
        let mut replies = Vec::with_capacity(request.commands);
        while replies.len() < request.commands {
            let is_exec = request.is_transaction && replies.len() + 1 == request.commands;
            let scope = if is_exec { ReplyScope::Transaction } else { ReplyScope::Result };
            if let Some(reply) = decoder.decode(&mut buffer, scope)? {
                replies.push(reply);
            } else {
                source.read(&mut buffer).await?;
            }
        }
        // The caller may be gone.
        let _ = request.respond.send(replies);
    }
}
