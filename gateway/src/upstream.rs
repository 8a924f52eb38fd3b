//! Redis: one server, or a cluster of them.

use std::collections::HashSet;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, Value};
use tokio::sync::OnceCell;

use crate::{
    cluster::Cluster,
    node::{Failure, Node},
    reply::error_text,
    request::Command,
};

/// Where the commands go.
pub(crate) struct Upstream {
    servers: Servers,
    readable: OnceCell<HashSet<String>>,
}

enum Servers {
    One(Node),
    Cluster(Cluster),
}

impl Upstream {
    /// Understands `redis://[user:password@]host[:port][/database]` and, for a cluster that this server is of,
    /// `redis://[user:password@]host[:port]?cluster`; connects to nothing yet.
    ///
    /// # Errors
    /// With the cause, which never has the password.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let of_cluster = url.strip_suffix("?cluster");
        let info: ConnectionInfo =
            of_cluster.unwrap_or(url).into_connection_info().map_err(|error| error.to_string())?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err("only redis:// is supported, neither TLS nor a socket file".to_owned());
        };
        let login = info.redis_settings();
        if of_cluster.is_some() && login.db() != 0 {
            return Err("a cluster has database 0 only".to_owned());
        }
        let node = Node::new(host.clone(), *port, login.clone());
        let servers = match of_cluster {
            Some(_) => Servers::Cluster(Cluster::new(node, login.clone())),
            None => Servers::One(node),
        };
        Ok(Self { servers, readable: OnceCell::new() })
    }

    /// `host:port`, for messages.
    pub(crate) fn address(&self) -> String {
        match &self.servers {
            Servers::One(node) => node.address(),
            Servers::Cluster(cluster) => cluster.address(),
        }
    }

    /// Whether the keys are spread over several servers.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.servers, Servers::Cluster(_))
    }

    /// Opens the connection, if there is none; of a cluster also looks up which server has what.
    ///
    /// # Errors
    /// When the server can not be reached, refuses the login, has no such database, or is of no cluster.
    pub(crate) async fn connect(&self) -> Result<(), String> {
        match &self.servers {
            Servers::One(node) => node.connect().await.map(drop),
            Servers::Cluster(cluster) => cluster.connect().await,
        }
    }

    /// Sends the commands in one batch (to each server of a cluster its own, which run beside each other) and returns a reply for
    /// each; [`Value::ServerError`] is a reply too.
    pub(crate) async fn run(&self, commands: impl IntoIterator<Item = &Command>) -> Result<Vec<Value>, Failure> {
        match &self.servers {
            Servers::One(node) => node.run(commands).await,
            Servers::Cluster(cluster) => cluster.run(&commands.into_iter().collect::<Vec<_>>()).await,
        }
    }

    /// Runs the commands as one transaction: a reply for each, or the error for which the server discarded them all.
    pub(crate) async fn run_atomically(&self, commands: &[Command]) -> Result<Result<Vec<Value>, String>, Failure> {
        match &self.servers {
            Servers::One(node) => Ok(node.run_atomically(commands).await?.map_err(|error| error_text(&error))),
            Servers::Cluster(cluster) => cluster.run_atomically(commands).await,
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
