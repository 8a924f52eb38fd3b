//! The one connection to Redis, shared by all requests. What a request sends, a pipeline or MULTI … EXEC, goes out in
//! one piece, so nothing of another request comes between. A lost connection is opened again by the next request.

use std::{collections::HashSet, io, time::Duration};

use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, Value,
    aio::MultiplexedConnection,
};
use tokio::{
    net::TcpStream,
    sync::{Mutex, OnceCell},
    task::JoinHandle,
    time::timeout,
};

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

/// The server, and the connection to it while there is one.
pub(crate) struct Upstream {
    host: String,
    port: u16,
    /// User, password and database: applied to every new connection.
    login: RedisConnectionInfo,
    link: Mutex<Option<Link>>,
    readable: OnceCell<HashSet<String>>,
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

impl Upstream {
    /// Understands `redis://[user:password@]host[:port][/database]`; connects to nothing yet.
    ///
    /// # Errors
    /// With the cause, which never has the password.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let info: ConnectionInfo = url.into_connection_info().map_err(|error| error.to_string())?;
        match info.addr() {
            ConnectionAddr::Tcp(host, port) => Ok(Self {
                host: host.clone(),
                port: *port,
                login: info.redis_settings().clone(),
                link: Mutex::new(None),
                readable: OnceCell::new(),
            }),
            _ => Err("only redis:// is supported, neither TLS nor a socket file".to_owned()),
        }
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
        let mut pipeline = redis::pipe();
        pipeline.ignore_errors();
        for command in commands {
            let mut packed = redis::Cmd::new();
            for arg in &command.args {
                packed.arg(arg.as_slice());
            }
            pipeline.add_command(packed);
        }
        let expected = pipeline.len();
        let mut connection = self.connect().await.map_err(|_| Failure::Unreachable)?;
        match pipeline.query_async(&mut connection).await {
            Ok(Value::Array(replies)) if replies.len() == expected => Ok(replies),
            _ => Err(Failure::Broken),
        }
    }

    /// Runs the commands as one transaction: a reply for each, or the error for which the server discarded them all.
    pub(crate) async fn run_atomically(
        &self,
        commands: &[Command],
    ) -> Result<Result<Vec<Value>, redis::ServerError>, Failure> {
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

    /// The names of the commands that only read, in lower case, as `get` and `object|freq`: the server's own list.
    pub(crate) async fn readable(&self) -> Result<&HashSet<String>, Failure> {
        let list = || async {
            let command = words(&["COMMAND", "LIST", "FILTERBY", "ACLCAT", "read"]);
            match self.run([&command]).await?.pop() {
                Some(Value::Array(names)) => Ok(names.into_iter().filter_map(text).collect()),
                // A server older than 7.0 has no such list: then the read-only token reads nothing.
                _ => Ok(HashSet::new()),
            }
        };
        self.readable.get_or_try_init(list).await
    }

    /// Which arguments of a command are its keys, as the server sees it; none if it does not know.
    pub(crate) async fn keys(&self, command: &Command) -> Result<Vec<Vec<u8>>, Failure> {
        let mut question = words(&["COMMAND", "GETKEYS"]);
        question.args.extend(command.args.iter().cloned());
        match self.run([&question]).await?.pop() {
            Some(Value::Array(keys)) => Ok(keys.into_iter().filter_map(bytes).collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// The server's name and version, such as `valkey 9.1.2`.
    pub(crate) async fn version(&self) -> Result<String, Failure> {
        let info = self.run([&words(&["INFO", "server"])]).await?.pop().and_then(text).unwrap_or_default();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let version = field("valkey_version").map(|version| format!("valkey {version}"));
        Ok(version.unwrap_or_else(|| format!("redis {}", field("redis_version").unwrap_or("of unknown version"))))
    }
}

fn words(words: &[&str]) -> Command {
    Command { args: words.iter().map(|word| word.as_bytes().to_vec()).collect() }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        _ => None,
    }
}

fn text(value: Value) -> Option<String> {
    String::from_utf8(bytes(value)?).ok()
}
