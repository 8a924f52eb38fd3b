//! The URL of a server, and the start of every connection to it.

use percent_encoding::percent_decode_str;
use tokio::time::Instant;
use url::Url;

use super::{
    connection::{Batch, Connection},
    value::Value,
};
use crate::request::Command;

const DEFAULT_PORT: u16 = 6379;

/// User, password and database of every connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Login {
    user: Option<String>,
    password: Option<String>,
    database: u32,
}

/// A server and the login to it.
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: Login,
    /// True if the URL ends with `?cluster`.
    pub(crate) is_cluster: bool,
}

impl Target {
    /// Parses `redis://[user:password@]host[:port][/database]` or `redis://[user:password@]host[:port]?cluster`.
    ///
    /// # Errors
    /// With the cause, which never contains the password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "redis" | "valkey") {
            return Err("only redis:// over TCP is supported, neither TLS nor Unix sockets".to_owned());
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it has no host")?;
        let is_cluster = match url.query() {
            None => false,
            Some("cluster") => true,
            Some(_) => return Err("the only parameter is ?cluster".to_owned()),
        };
        let database = match url.path().trim_start_matches('/') {
            "" => 0,
            number => number.parse().map_err(|_| "the database is not a number".to_owned())?,
        };
        if is_cluster && database != 0 {
            return Err("a Redis Cluster has database 0 only".to_owned());
        }
        let login =
            Login { user: decoded(url.username())?, password: decoded(url.password().unwrap_or_default())?, database };
        // IPv6 addresses have brackets in a URL only.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: url.port().unwrap_or(DEFAULT_PORT), login, is_cluster })
    }
}

/// A part of a URL as text; `None` if it is empty.
fn decoded(part: &str) -> Result<Option<String>, String> {
    let text = percent_decode_str(part).decode_utf8().map_err(|_| "user or password is not UTF-8".to_owned())?;
    Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
}

impl Login {
    /// Logs in, selects the database, and waits for an answer. A server that is frozen accepts connections, so only an
    /// answer shows that commands are worth sending.
    ///
    /// # Errors
    /// With the cause: no answer, the login is refused, or there is no such database.
    pub(crate) async fn perform(&self, connection: &Connection, deadline: Instant) -> Result<(), String> {
        let commands = self.commands();
        let replies = connection.send(Batch::of(&commands), deadline).await.map_err(|error| error.to_string())?;
        Self::check(&commands, replies)
    }

    /// Checks the replies to [`Login::commands`].
    ///
    /// # Errors
    /// With the cause: the login is refused, or there is no such database.
    pub(super) fn check(commands: &[Command], replies: Vec<Value>) -> Result<(), String> {
        for (command, reply) in commands.iter().zip(replies) {
            let Value::ServerError(error) = reply else { continue };
            // A server that loads its data, or follows a lost master, refuses PING but can be asked again later. DENIED
            // is protected mode.
            if command.name() != "PING" || matches!(error.code(), "DENIED" | "ERR" | "NOAUTH") {
                return Err(error.text().to_owned());
            }
        }
        Ok(())
    }

    /// The database.
    pub(super) fn database(&self) -> u32 {
        self.database
    }

    /// The commands of the login; the last is PING.
    pub(super) fn commands(&self) -> Vec<Command> {
        let auth = self.password.as_deref().map(|password| {
            let words = ["AUTH"].into_iter().chain(self.user.as_deref()).chain([password]);
            Command::from_words(&words.collect::<Vec<_>>())
        });
        let database = self.database.to_string();
        let select = (self.database != 0).then(|| Command::from_words(&["SELECT", &database]));
        auth.into_iter().chain(select).chain([Command::from_words(&["PING"])]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_server_login_and_database() {
        let target = Target::parse("redis://user:p%40ss@[::1]:7000/3").expect("a URL");
        let login = &target.login;
        assert_eq!((target.host.as_str(), target.port, login.database), ("::1", 7000, 3));
        assert_eq!((login.user.as_deref(), login.password.as_deref()), (Some("user"), Some("p@ss")));
        let target = Target::parse("redis://:secret@host?cluster").expect("a URL");
        assert_eq!((target.port, target.is_cluster, target.login.user), (6379, true, None));
        for wrong in
            ["host:6379", "http://host", "rediss://host", "redis:///0", "redis://host/x", "redis://host/1?cluster"]
        {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_login_comes_before_the_database() {
        let target = Target::parse("redis://user:secret@host/3").expect("a URL");
        let names: Vec<_> = target.login.commands().iter().map(Command::name).collect();
        assert_eq!(names, ["AUTH", "SELECT", "PING"]);
    }
}
