//! A client sends commands. One call is one HTTP request within one deadline, which it may share with other calls.
//!
//! Two cases take a second request, within the same deadline: the retry of commands that are repeatable, and EVAL after
//! `NOSCRIPT`. These requests carry one call only, because less of its time is left.

mod credentials;
mod exchange;
mod response;
mod retry;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

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

/// The attempts of a script in full: for a replica that does not know it, and for the primary.
const ATTEMPTS_IN_FULL: usize = 2;

/// A Redis database over REST.
///
/// A pipeline sends independent commands in one request. A transaction executes a fixed set of writes together. A write
/// that depends on a read is a [`Script`](crate::Script): there is no WATCH over REST.
pub struct Client {
    transport: Rc<dyn Transport>,
    credentials: Credentials,
    deadline: Duration,
    /// Upstash's token for reading one's own writes: the client sends the last one that it received.
    sync_token: Rc<RefCell<Option<HeaderValue>>>,
    /// The scope of the calls, for all handles. Its token counts instead.
    scope: CurrentScope,
    /// Scripts that only read are sent as `EVALSHA_RO`, for all handles.
    has_read_regions: Rc<Cell<bool>>,
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
            sync_token: Rc::default(),
            scope: CurrentScope::default(),
            has_read_regions: Rc::default(),
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
            has_read_regions: self.has_read_regions.clone(),
            meter: self.meter.clone(),
            batcher: Batcher::default(),
        }
    }

    /// The same handle over another transport.
    #[must_use]
    pub fn through(self, transport: Rc<dyn Transport>) -> Self {
        Self { transport, ..self }
    }

    /// The same handle, for a database with read replicas: see [`Client::near`].
    #[must_use]
    pub fn with_read_regions(self) -> Self {
        self.has_read_regions.set(true);
        self
    }

    /// Returns whether replicas execute scripts that only read. False as soon as the server has refused one.
    #[must_use]
    pub fn has_read_regions(&self) -> bool {
        self.has_read_regions.get()
    }

    /// Declares that this call of a [readable](crate::Script::readable) script writes nothing. With
    /// [read regions](Client::with_read_regions) it is sent as `EVALSHA_RO`, which the nearest replica executes. If the
    /// server refuses that form ([`Error::Unavailable`]), the client sends this and all later calls as EVALSHA. An error
    /// of the script itself goes to the caller.
    #[must_use]
    pub fn near(&self, call: Command) -> Command {
        call.with_read(self.has_read_regions.get())
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
        for _ in 0..ATTEMPTS_IN_FULL {
            if !self.must_repeat(command, &reply) {
                break;
            }
            reply = self.run_as(&self.again(command), ScriptForm::Source, until).await;
        }
        reply
    }

    /// Runs independent commands in one request. A command that fails does not affect the others.
    ///
    /// # Errors
    /// Any [`Error`] of the request as a whole. The error of a command stands in its place in the list, which is as
    /// long as `commands`. If only some scripts are sent again, the error of their request stands in their places,
    /// because the other commands have been executed.
    pub async fn pipeline(&self, commands: &[Command]) -> Result<Vec<Result<Reply, Error>>, Error> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let until = self.until();
        let mut replies = self.run_all_as(commands, ScriptForm::Hash, until).await?;
        for _ in 0..ATTEMPTS_IN_FULL {
            // Only these are sent again, because the other commands have been executed.
            let refused: Vec<_> =
                commands.iter().zip(&replies).map(|(command, reply)| self.must_repeat(command, reply)).collect();
            let again = commands.iter().zip(&refused).filter(|(_, is_refused)| **is_refused);
            let again: Vec<_> = again.map(|(command, _)| self.again(command)).collect();
            if again.is_empty() {
                break;
            }
            let late = match self.run_all_as(&again, ScriptForm::Source, until).await {
                Err(error) if again.len() < commands.len() => vec![Err(error); again.len()],
                late => late?,
            };
            let places = replies.iter_mut().zip(refused).filter(|(_, is_refused)| *is_refused);
            places.zip(late).for_each(|((place, _), late)| *place = late);
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

    /// Returns whether to send a script again, in full: the server does not know it, or refuses its read-only form.
    fn must_repeat(&self, command: &Command, reply: &Result<Reply, Error>) -> bool {
        match reply {
            // The first word only: servers differ in the rest.
            Err(Error::Refused { code }) => code == "NOSCRIPT",
            Err(Error::Unavailable) if command.is_script() && command.is_read() => {
                if self.has_read_regions.replace(false) {
                    log::warn!("the server refuses scripts that only read: the primary executes them");
                }
                true
            }
            _ => false,
        }
    }

    /// The command to send again: read-only only while the server accepts that form.
    fn again(&self, command: &Command) -> Command {
        command.clone().with_read(command.is_read() && self.has_read_regions())
    }

    /// The moment at which a call that begins now must end.
    fn until(&self) -> Duration {
        self.transport.now().saturating_add(self.deadline)
    }
}
