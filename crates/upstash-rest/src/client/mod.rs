//! A client sends commands. One call is one HTTP request within one deadline, which it may share with other calls.
//!
//! Two cases take a second request, within the same deadline: the retry of commands that are repeatable, and EVAL after
//! `NOSCRIPT`. These requests carry one call only, because less of its time is left.

mod credentials;
mod exchange;
mod response;
mod retry;

use std::{cell::RefCell, rc::Rc, time::Duration};

use http::HeaderValue;

pub use self::credentials::{Credentials, CredentialsError};
use crate::{
    batch::Batcher,
    command::{Command, CommandList, ScriptForm, Typed},
    error::Error,
    meter::Meter,
    reply::{FromReply, Reply},
    sync::{CurrentScope, SyncScope},
    transport::Transport,
};

/// A Redis database over REST.
///
/// A pipeline sends independent commands in one request. A transaction executes a fixed set of writes together. A write
/// that depends on a read is a [`Script`](crate::Script): there is no WATCH over REST.
pub struct Client {
    transport: Rc<dyn Transport>,
    credentials: Credentials,
    deadline: Duration,
    /// Upstash's token for reading one's own writes: the client sends the last one that it received.
    sync_token: RefCell<Option<HeaderValue>>,
    /// The scope of the calls, for all handles. Its token counts instead.
    scope: CurrentScope,
    meter: Rc<Meter>,
    /// Belongs to this handle alone: another handle has another deadline.
    batcher: Batcher,
}

impl Client {
    /// A client whose every call ends within `deadline`.
    #[must_use]
    pub fn new(transport: Rc<dyn Transport>, credentials: Credentials, deadline: Duration) -> Self {
        Self {
            transport,
            credentials,
            deadline,
            sync_token: RefCell::default(),
            scope: CurrentScope::default(),
            meter: Rc::default(),
            batcher: Batcher::default(),
        }
    }

    /// A handle for the same database whose every call ends within `deadline`. It shares the meter, but no batches.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            transport: self.transport.clone(),
            credentials: self.credentials.clone(),
            deadline,
            sync_token: self.sync_token.clone(),
            scope: self.scope.clone(),
            meter: self.meter.clone(),
            batcher: Batcher::default(),
        }
    }

    /// The same handle over another transport.
    #[must_use]
    pub fn through(self, transport: Rc<dyn Transport>) -> Self {
        Self { transport, ..self }
    }

    /// Counts what this handle sends, and the handles that [`Client::with_deadline`] makes of it.
    #[must_use]
    pub fn meter(&self) -> Rc<Meter> {
        self.meter.clone()
    }

    /// Runs `work`. All that it sends, through any handle of the database, belongs to `scope`; None: to no scope. If
    /// calls are nested, the innermost one holds.
    pub fn in_scope<T, W: Future<Output = T>>(
        &self,
        scope: Option<Rc<SyncScope>>,
        work: W,
    ) -> impl Future<Output = T> + use<T, W> {
        self.scope.clone().run(scope, work)
    }

    /// The scope of the work that is polled now, for a future that is polled later.
    #[must_use]
    pub fn scope(&self) -> Option<Rc<SyncScope>> {
        self.scope.get()
    }

    /// Runs one command, or one script.
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn run<T: FromReply>(&self, command: impl Into<Typed<T>>) -> Result<T, Error> {
        let command = Command::from(command.into());
        T::from_reply(self.reply(&command).await?)
    }

    /// Runs one command, or one script, that the caller keeps.
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn reply(&self, command: &Command) -> Result<Reply, Error> {
        let until = self.until();
        let mut reply = self.run_as(command, ScriptForm::Hash, until).await;
        if command.is_script() && reply.as_ref().is_err_and(Error::is_no_script) {
            reply = self.run_as(command, ScriptForm::Source, until).await;
        }
        reply
    }

    /// Runs independent commands in one request. A command that fails does not affect the others.
    ///
    /// # Errors
    /// Any [`Error`] of the request as a whole. The error of a command stands in its place in the list, which is as
    /// long as `commands`.
    pub async fn pipeline(&self, commands: &[Command]) -> Result<Vec<Result<Reply, Error>>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let until = self.until();
        let mut replies = self.run_all_as(commands, ScriptForm::Hash, until).await?;
        let is_unknown = |reply: &Result<Reply, Error>| reply.as_ref().is_err_and(Error::is_no_script);
        // Only the scripts that the server did not know are sent again: the other commands have been executed.
        let unknown: Vec<_> = commands
            .iter()
            .zip(&replies)
            .filter(|(_, reply)| is_unknown(reply))
            .map(|(command, _)| command.clone())
            .collect();
        if !unknown.is_empty() {
            let late = self.run_all_as(&unknown, ScriptForm::Source, until).await?;
            for (reply, late) in replies.iter_mut().filter(|reply| is_unknown(reply)).zip(late) {
                *reply = late;
            }
        }
        Ok(replies)
    }

    /// Runs independent commands in one request and reads all of their replies.
    ///
    /// # Errors
    /// The first [`Error`], of the request or of a command; the other commands may have been executed.
    pub async fn all<T: FromReply>(&self, commands: impl CommandList<T>) -> Result<T, Error> {
        let commands = commands.into_commands();
        let replies = self.pipeline(commands.as_ref()).await?;
        T::from_reply(Reply::List(replies.into_iter().collect::<Result<_, _>>()?))
    }

    /// Runs commands together: all are executed and no other command runs in between, or none is executed. Scripts
    /// cannot take part.
    ///
    /// # Errors
    /// Any [`Error`] of the request as a whole, or the first one of a command.
    pub async fn transaction<T: FromReply>(&self, commands: impl CommandList<T>) -> Result<T, Error> {
        let commands = commands.into_commands();
        let replies = match commands.as_ref() {
            [] => Vec::new(),
            commands => self.run_atomically(commands, self.until()).await?,
        };
        T::from_reply(Reply::List(replies.into_iter().collect::<Result<_, _>>()?))
    }

    /// The moment at which a call that begins now must end.
    fn until(&self) -> Duration {
        self.transport.now().saturating_add(self.deadline)
    }
}
