//! One Redis server, and the single connection to it that all requests share. A pipeline or a MULTI … EXEC block is
//! sent in one piece, so commands of other requests cannot come between. After a lost connection, the next request
//! connects again.

use std::{io, iter, time::Duration};

use redis::{AsyncConnectionConfig, Pipeline, RedisConnectionInfo, Value, aio::MultiplexedConnection};
use tokio::{net::TcpStream, sync::Mutex, task::JoinHandle, time::timeout};

use crate::{
    request::Command,
    upstream::error::{TransactionError, UpstreamError},
};

/// Time limit for connecting and logging in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server and its connection, if one is open.
pub(crate) struct Node {
    host: String,
    port: u16,
    /// User, password and database for every new connection.
    login: RedisConnectionInfo,
    connection: Mutex<Option<OpenConnection>>,
}

struct OpenConnection {
    handle: MultiplexedConnection,
    /// The task that reads and writes the socket. It ends when the connection does; that is how the next request
    /// notices.
    driver: JoinHandle<()>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Node {
    /// A server at this address. Does not connect.
    pub(crate) fn new(host: String, port: u16, login: RedisConnectionInfo) -> Self {
        Self { host, port, login, connection: Mutex::new(None) }
    }

    /// Returns whether this server has that address.
    pub(crate) fn is_at(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    /// The host as configured, or as the cluster announced it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// `host:port`, for messages.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The open connection, or a new one.
    ///
    /// # Errors
    /// With the cause: the server is unreachable, refuses the login, or has no such database.
    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection, String> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = &*connection
            && !open.driver.is_finished()
        {
            return Ok(open.handle.clone());
        }
        let opened = timeout(CONNECT_TIMEOUT, self.open())
            .await
            .map_err(|_| format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))??;
        Ok(connection.insert(opened).handle.clone())
    }

    async fn open(&self) -> Result<OpenConnection, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port));
        let stream = stream.await.map_err(|error: io::Error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        // No response timeout: the client of a slow command has a timeout of its own.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let (handle, driver) = MultiplexedConnection::new_with_config(&self.login, stream, config)
            .await
            .map_err(|error| error.to_string())?;
        Ok(OpenConnection { handle, driver: tokio::spawn(driver) })
    }

    /// Sends the commands as one pipeline and returns one reply per command. A reply may be a [`Value::ServerError`].
    pub(crate) async fn run(&self, commands: impl IntoIterator<Item = &Command>) -> Result<Vec<Value>, UpstreamError> {
        let pipeline = to_pipeline(commands);
        self.send(&pipeline).await
    }

    /// Sends a pipeline that [`to_pipeline`] made. Returns the same as [`Node::run`].
    pub(crate) async fn send(&self, pipeline: &Pipeline) -> Result<Vec<Value>, UpstreamError> {
        let mut connection = self.connect().await.map_err(|_| UpstreamError::Unreachable)?;
        match pipeline.query_async(&mut connection).await {
            Ok(Value::Array(replies)) if replies.len() == pipeline.len() => Ok(replies),
            _ => Err(UpstreamError::ConnectionLost),
        }
    }

    /// Runs the commands in MULTI … EXEC and returns one reply per command.
    pub(crate) async fn run_transaction(&self, commands: &[Command]) -> Result<Vec<Value>, TransactionError> {
        let (multi, exec) = (Command::from_words(&["MULTI"]), Command::from_words(&["EXEC"]));
        let block = iter::once(&multi).chain(commands).chain(iter::once(&exec));
        let mut replies = self.run(block).await?;
        match replies.pop() {
            Some(Value::Array(results)) if results.len() == commands.len() => Ok(results),
            Some(Value::ServerError(exec_error)) => {
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

/// Encodes the commands as one pipeline.
pub(crate) fn to_pipeline<'a>(commands: impl IntoIterator<Item = &'a Command>) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.ignore_errors();
    for command in commands {
        let mut encoded = redis::Cmd::new();
        for arg in &command.args {
            encoded.arg(arg.as_slice());
        }
        pipeline.add_command(encoded);
    }
    pipeline
}
