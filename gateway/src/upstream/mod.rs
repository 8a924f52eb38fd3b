//! Redis behind the gateway: a single server, or a Redis Cluster.

use std::{collections::HashSet, time::Duration};

use tokio::{sync::OnceCell, time::Instant};

use crate::{error::is_temporary, region::Standing, request::Command};

/// A Redis Cluster: routing, redirects, retries.
mod cluster;

/// One server.
mod node;

/// The URL of a server, and the login.
mod login;

/// A connection that requests share.
mod connection;

/// A connection of one stream.
mod push;

/// The wire format.
mod protocol;

/// Replies.
mod value;

/// Errors of Redis.
mod error;

use cluster::Cluster;
pub(crate) use error::{TransactionError, UpstreamError};
use login::Target;
use node::Node;
pub(crate) use protocol::{Decoder, ReplyScope};
pub(crate) use push::PushConnection;
pub(crate) use value::{ServerError, Value};

/// Redis as one place to send commands to.
pub(crate) struct Upstream {
    backend: Backend,
    /// Time limit for connecting, sending and the reply together.
    timeout: Duration,
    read_commands: OnceCell<HashSet<String>>,
}

enum Backend {
    Single(Node),
    Cluster(Cluster),
}

impl Upstream {
    /// Parses `redis://[user:password@]host[:port][/database]` or, for the cluster that this server belongs to,
    /// `redis://[user:password@]host[:port]?cluster`. Does not connect. `timeout` limits the wait for each reply.
    ///
    /// # Errors
    /// With the cause, which never contains the password.
    pub(crate) fn new(url: &str, timeout: Duration) -> Result<Self, String> {
        let target = Target::parse(url)?;
        let is_cluster = target.is_cluster;
        let node = Node::new(target, timeout);
        let backend = if is_cluster { Backend::Cluster(Cluster::new(node)) } else { Backend::Single(node) };
        Ok(Self { backend, timeout, read_commands: OnceCell::new() })
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// `host:port` of the configured server, for messages.
    pub(crate) fn address(&self) -> String {
        match &self.backend {
            Backend::Single(node) => node.address(),
            Backend::Cluster(cluster) => cluster.address(),
        }
    }

    /// Host and port of a single server; empty for a cluster.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        match &self.backend {
            Backend::Single(node) => node.host_and_port(),
            Backend::Cluster(_) => ("", 0),
        }
    }

    /// Returns whether Redis is a cluster, so that keys are spread over several servers.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.backend, Backend::Cluster(_))
    }

    /// Connects, if no connection is open. For a cluster, also reads which server owns which slots.
    ///
    /// # Errors
    /// With the cause: the server is unreachable, refuses the login, has no such database, or belongs to no cluster.
    pub(crate) async fn connect(&self) -> Result<(), String> {
        match &self.backend {
            Backend::Single(node) => node.connect(self.deadline()).await.map(drop),
            Backend::Cluster(cluster) => cluster.connect(self.deadline()).await,
        }
    }

    /// Makes the next request to a single server connect again: its address may now lead to another one.
    pub(crate) fn reconnect(&self) {
        if let Backend::Single(node) = &self.backend {
            node.reconnect();
        }
    }

    /// Sends the commands as one pipeline and returns one reply per command. A reply may be a [`Value::ServerError`].
    /// In a cluster, each server gets a pipeline with its commands; these pipelines run concurrently.
    pub(crate) async fn run(&self, commands: impl IntoIterator<Item = &Command>) -> Result<Vec<Value>, UpstreamError> {
        match &self.backend {
            Backend::Single(node) => node.run(commands, self.deadline()).await,
            Backend::Cluster(cluster) => cluster.run(&commands.into_iter().collect::<Vec<_>>(), self.deadline()).await,
        }
    }

    /// Runs the commands in MULTI … EXEC and returns one reply per command.
    pub(crate) async fn run_transaction(&self, commands: &[Command]) -> Result<Vec<Value>, TransactionError> {
        match &self.backend {
            Backend::Single(node) => node.run_transaction(commands, self.deadline()).await,
            Backend::Cluster(cluster) => cluster.run_transaction(commands, self.deadline()).await,
        }
    }

    /// Opens a connection for one stream: sends SUBSCRIBE, PSUBSCRIBE or MONITOR, and returns the first reply. In a
    /// cluster, any server will do: each gets all messages.
    pub(crate) async fn open_push(&self, command: &Command) -> Result<(Value, PushConnection), UpstreamError> {
        match &self.backend {
            Backend::Single(node) => node.open_push(command, self.deadline()).await,
            Backend::Cluster(cluster) => cluster.open_push(command, self.deadline()).await,
        }
    }

    /// The database of every connection.
    pub(crate) fn database(&self) -> u32 {
        match &self.backend {
            Backend::Single(node) => node.database(),
            Backend::Cluster(_) => 0,
        }
    }

    /// The commands that only read, in lower case, such as `get` and `object|freq`. The list is the server's own; it is
    /// read once. Empty for servers before version 7.0, which have no such list: the read-only token reads nothing
    /// there.
    pub(crate) async fn read_commands(&self) -> Result<&HashSet<String>, UpstreamError> {
        let load = || async {
            let query = Command::from_words(&["COMMAND", "LIST", "FILTERBY", "ACLCAT", "read"]);
            match self.run([&query]).await?.pop() {
                Some(Value::Array(names)) => Ok(names.into_iter().filter_map(into_text).collect()),
                // The server is asked again.
                Some(Value::ServerError(error)) if is_temporary(error.text()) => Err(UpstreamError::Unreachable),
                _ => Ok(HashSet::new()),
            }
        };
        self.read_commands.get_or_try_init(load).await
    }

    /// For each command, the arguments that are keys, according to the server. Empty if the server does not know. Sent
    /// as one pipeline.
    pub(crate) async fn key_arguments(&self, commands: &[Command]) -> Result<Vec<Vec<Vec<u8>>>, UpstreamError> {
        let query = |command: &Command| {
            let mut query = Command::from_words(&["COMMAND", "GETKEYS"]);
            query.args.extend(command.args.iter().cloned());
            query
        };
        let queries: Vec<_> = commands.iter().map(query).collect();
        let replies = self.run(&queries).await?.into_iter().map(|reply| match reply {
            Value::Array(keys) => keys.into_iter().filter_map(into_bytes).collect(),
            _ => Vec::new(),
        });
        Ok(replies.collect())
    }

    /// The server's part in the replication; `None` if the server does not say. Not for a cluster.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) async fn standing(&self) -> Result<Option<Standing>, UpstreamError> {
        let query = Command::from_words(&["INFO", "replication"]);
        let info = self.run([&query]).await?.pop().and_then(into_text);
        Ok(info.as_deref().map(Standing::from_info))
    }

    /// The server's name and version, such as `valkey 9.1.2`.
    pub(crate) async fn server_version(&self) -> Result<String, UpstreamError> {
        let query = Command::from_words(&["INFO", "server"]);
        let info = self.run([&query]).await?.pop().and_then(into_text).unwrap_or_default();
        let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let valkey = field("valkey_version").map(|version| format!("valkey {version}"));
        Ok(valkey.unwrap_or_else(|| format!("redis {}", field("redis_version").unwrap_or("of unknown version"))))
    }
}

fn into_bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn into_text(value: Value) -> Option<String> {
    String::from_utf8(into_bytes(value)?).ok()
}
