//! One Redis server, and the single connection to it that all requests share. After a lost connection, the next request
//! connects again.

use std::{
    io, iter,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    net::TcpStream,
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout_at},
};

use super::{
    connection::{Batch, Connection},
    error::{TransactionError, UpstreamError},
    login::{Login, Target},
    push::PushConnection,
    value::Value,
};
use crate::request::Command;

/// Time limit for connecting and logging in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server and its connection, if one is open.
pub(crate) struct Node {
    host: String,
    port: u16,
    login: Login,
    /// Time limit for a reply.
    reply_timeout: Duration,
    connection: Mutex<Option<Connection>>,
    /// Held while a connection is opened, so that concurrent requests open one (single flight).
    connecting: AsyncMutex<()>,
}

impl Node {
    /// The server of a URL. Does not connect.
    pub(crate) fn new(target: Target, reply_timeout: Duration) -> Self {
        let Target { host, port, login, .. } = target;
        Self { host, port, login, reply_timeout, connection: Mutex::default(), connecting: AsyncMutex::default() }
    }

    /// Another server with the same login. Does not connect.
    pub(crate) fn sibling(&self, host: String, port: u16) -> Self {
        let login = self.login.clone();
        Self::new(Target { host, port, login, is_cluster: true }, self.reply_timeout)
    }

    /// Returns whether this server has that address.
    pub(crate) fn is_at(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    /// The host as configured, or as the cluster announced it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The host, and the port.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// `host:port`, for messages.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The open connection, or a new one.
    ///
    /// # Errors
    /// With the cause: the server is unreachable, refuses the login, or has no such database.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<Connection, String> {
        if let Some(open) = self.open_connection() {
            return Ok(open);
        }
        let deadline = deadline.min(Instant::now() + CONNECT_TIMEOUT);
        // The limit includes the wait for another request that connects: requests in a row must not add up their waits.
        let connect = async {
            let _guard = self.connecting.lock().await;
            if let Some(open) = self.open_connection() {
                return Ok(open);
            }
            let opened = self.open(deadline).await?;
            Ok(self.lock().insert(opened).clone())
        };
        timeout_at(deadline, connect).await.map_err(|_| "no answer in time".to_owned())?
    }

    fn open_connection(&self) -> Option<Connection> {
        self.lock().as_ref().filter(|open| !open.is_closed()).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The database of every connection.
    pub(super) fn database(&self) -> u32 {
        self.login.database()
    }

    /// Opens a connection for one stream: sends SUBSCRIBE, PSUBSCRIBE or MONITOR, and returns the first reply.
    ///
    /// # Errors
    /// [`UpstreamError::Unreachable`], also when the reply is lost: the command changes nothing.
    pub(super) async fn open_push(
        &self,
        command: &Command,
        deadline: Instant,
    ) -> Result<(Value, PushConnection), UpstreamError> {
        let open = async {
            let stream = self.open_socket().await?;
            keep_alive(&stream).map_err(|error| error.to_string())?;
            PushConnection::open(stream, &self.login, command).await
        };
        let opened = timeout_at(deadline, open).await;
        opened.ok().and_then(Result::ok).ok_or(UpstreamError::Unreachable)
    }

    async fn open_socket(&self) -> Result<TcpStream, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port));
        let stream = stream.await.map_err(|error: io::Error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(stream)
    }

    async fn open(&self, deadline: Instant) -> Result<Connection, String> {
        let stream = self.open_socket().await?;
        let connection = Connection::new(stream, self.reply_timeout);
        self.login.perform(&connection, deadline).await?;
        Ok(connection)
    }

    /// Sends the commands as one pipeline and returns one reply per command. A reply may be a [`Value::ServerError`].
    pub(crate) async fn run(
        &self,
        commands: impl IntoIterator<Item = &Command>,
        deadline: Instant,
    ) -> Result<Vec<Value>, UpstreamError> {
        self.send(Batch::of(commands), deadline).await
    }

    /// Sends a pipeline. Returns the same as [`Node::run`].
    pub(crate) async fn send(&self, batch: Batch, deadline: Instant) -> Result<Vec<Value>, UpstreamError> {
        let connection = self.connect(deadline).await.map_err(|_| UpstreamError::Unreachable)?;
        let outcome = connection.send(batch, deadline).await;
        let is_useless = match &outcome {
            Ok(replies) => replies.iter().any(is_refused_by_replica),
            Err(error) => *error == UpstreamError::TimedOut,
        };
        if is_useless {
            self.detach(&connection);
        }
        outcome
    }

    /// Makes the next request connect again: the address may now lead to another server.
    pub(super) fn reconnect(&self) {
        *self.lock() = None;
    }

    /// Makes the next request connect again, so that it finds out whether the server answers before it sends anything, and
    /// whether the address now leads to another server. Requests on the old connection can still get their replies.
    fn detach(&self, useless: &Connection) {
        self.lock().take_if(|open| open.is_same(useless));
    }

    /// Runs the commands in MULTI … EXEC and returns one reply per command.
    pub(crate) async fn run_transaction(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, TransactionError> {
        self.run_block(None, commands, deadline).await
    }

    /// As [`Node::run_transaction`], on a server that does not own the slot yet. ASKING before MULTI covers the whole
    /// transaction.
    pub(crate) async fn run_transaction_asking(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, TransactionError> {
        let asking = Command::from_words(&["ASKING"]);
        self.run_block(Some(&asking), commands, deadline).await
    }

    async fn run_block(
        &self,
        before: Option<&Command>,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, TransactionError> {
        let (multi, exec) = (Command::from_words(&["MULTI"]), Command::from_words(&["EXEC"]));
        let block = before.into_iter().chain(iter::once(&multi)).chain(commands).chain(iter::once(&exec));
        let batch = Batch { is_transaction: true, ..Batch::of(block) };
        let mut replies = self.send(batch, deadline).await?;
        match replies.pop() {
            Some(Value::Array(results)) if results.len() == commands.len() => Ok(results),
            Some(Value::ServerError(exec_error)) => {
                if let Some(Value::ServerError(refusal)) = replies.get(usize::from(before.is_some())) {
                    return Err(TransactionError::NotStarted(refusal.clone()));
                }
                // EXEC only reports that a command failed. The first failed command has the cause.
                let cause = replies.into_iter().find_map(|reply| match reply {
                    Value::ServerError(error) => Some(error),
                    _ => None,
                });
                Err(TransactionError::Discarded(cause.unwrap_or(exec_error)))
            }
            _ => Err(UpstreamError::ConnectionLost.into()),
        }
    }
}

/// Returns whether the server refused a write because it has become a replica. It keeps its connections then, also if the
/// address already leads to the new primary.
fn is_refused_by_replica(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.code() == "READONLY")
}

/// Lets the system notice within two minutes that the host of Redis is gone. MONITOR needs it: unlike a subscriber, its
/// connection cannot send PING.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl};
        set_socket_keepalive(stream, true)?;
        set_tcp_keepidle(stream, Duration::from_mins(1))?;
        set_tcp_keepintvl(stream, Duration::from_secs(20))?;
        set_tcp_keepcnt(stream, 3)?;
    }
    #[cfg(not(unix))]
    let _ = stream;
    Ok(())
}
