//! The one connection to a server, shared by all requests. What a request sends to it, a pipeline or MULTI … EXEC, goes out in
//! one piece, so nothing of another request comes between. A lost connection is opened again by the next request.

use std::{io, time::Duration};

use redis::{AsyncConnectionConfig, Pipeline, RedisConnectionInfo, ServerError, Value, aio::MultiplexedConnection};
use tokio::{net::TcpStream, sync::Mutex, task::JoinHandle, time::timeout};

use crate::request::Command;

/// For reaching the server and logging in.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Why Redis did not answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Nothing was sent.
    #[error("ERR Redis is unreachable, nothing was executed")]
    Unreachable,
    /// What was sent may have been executed.
    #[error("ERR the connection to Redis broke, the command may have been executed")]
    Broken,
}

/// A server, and the connection to it while there is one.
pub(crate) struct Node {
    host: String,
    port: u16,
    /// User, password and database: applied to every new connection.
    login: RedisConnectionInfo,
    link: Mutex<Option<Link>>,
}

struct Link {
    connection: MultiplexedConnection,
    /// Ends when the connection does, which is how the next request learns of it.
    driver: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Node {
    /// Connects to nothing yet.
    pub(crate) fn new(host: String, port: u16, login: RedisConnectionInfo) -> Self {
        Self { host, port, login, link: Mutex::new(None) }
    }

    /// Whether it is the server at this address.
    pub(crate) fn is_at(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// `host:port`, for messages.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Opens the connection, if there is none.
    ///
    /// # Errors
    /// When the server can not be reached, refuses the login, or has no such database.
    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection, String> {
        let mut link = self.link.lock().await;
        if let Some(link) = &*link
            && !link.driver.is_finished()
        {
            return Ok(link.connection.clone());
        }
        let opened = timeout(CONNECT_DEADLINE, self.open())
            .await
            .map_err(|_| format!("no answer within {} s", CONNECT_DEADLINE.as_secs()))??;
        Ok(link.insert(opened).connection.clone())
    }

    async fn open(&self) -> Result<Link, String> {
        let open = || TcpStream::connect((self.host.as_str(), self.port));
        let stream = open().await.map_err(|error: io::Error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        // A slow command is slow for its client too, who has a deadline of its own.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let (connection, driver) = MultiplexedConnection::new_with_config(&self.login, stream, config)
            .await
            .map_err(|error| error.to_string())?;
        let driver = tokio::spawn(driver);
        Ok(Link { connection, driver })
    }

    /// Sends the commands in one batch and returns a reply for each; [`Value::ServerError`] is a reply too.
    pub(crate) async fn run(&self, commands: impl IntoIterator<Item = &Command>) -> Result<Vec<Value>, Failure> {
        let batch = pack(commands);
        self.send(&batch).await
    }

    /// As [`Node::run`], what [`pack`] made of the commands.
    pub(crate) async fn send(&self, batch: &Pipeline) -> Result<Vec<Value>, Failure> {
        let mut connection = self.connect().await.map_err(|_| Failure::Unreachable)?;
        match batch.query_async(&mut connection).await {
            Ok(Value::Array(replies)) if replies.len() == batch.len() => Ok(replies),
            _ => Err(Failure::Broken),
        }
    }

    /// Runs the commands as one transaction: a reply for each, or the error for which the server discarded them all.
    pub(crate) async fn run_atomically(
        &self,
        commands: &[Command],
    ) -> Result<Result<Vec<Value>, ServerError>, Failure> {
        let [multi, exec] = [b"MULTI", b"EXEC".as_slice()].map(|name| Command { args: vec![name.to_vec()] });
        let batch = std::iter::once(&multi).chain(commands).chain(std::iter::once(&exec));
        let mut replies = self.run(batch).await?;
        match replies.pop() {
            Some(Value::Array(results)) if results.len() == commands.len() => Ok(Ok(results)),
            Some(Value::ServerError(discarded)) => {
                // The reply to EXEC only says that there was an error; the first one says which.
                let first = replies.into_iter().find_map(|reply| match reply {
                    Value::ServerError(error) => Some(error),
                    _ => None,
                });
                Ok(Err(first.unwrap_or(discarded)))
            }
            _ => Err(Failure::Broken),
        }
    }
}

/// Makes one batch of commands.
pub(crate) fn pack<'a>(commands: impl IntoIterator<Item = &'a Command>) -> Pipeline {
    let mut batch = redis::pipe();
    batch.ignore_errors();
    for command in commands {
        let mut packed = redis::Cmd::new();
        for arg in &command.args {
            packed.arg(arg.as_slice());
        }
        batch.add_command(packed);
    }
    batch
}
