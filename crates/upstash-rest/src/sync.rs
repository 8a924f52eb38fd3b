//! Sync tokens: a caller reads its own writes although it reads from a replica that lags behind the primary.
//!
//! The database sends a token with each response. A request with the token is answered by a server that has executed
//! the write. Without a scope, a client sends the last token that it received. That suits a program with one user. In a
//! program with many, each read would wait for the writes of all. So a [`SyncScope`] holds the token of one user.

use std::{
    cell::{Cell, RefCell},
    pin::pin,
    rc::Rc,
    task::Poll,
};

use futures_util::future::poll_fn;
use http::HeaderValue;

use crate::command::Command;

/// The sync token of one user. [`Client::in_scope`](crate::Client::in_scope) gives it to all calls of a future.
///
/// A scope keeps the tokens of commands that are marked with [`Command::synced`]. Its calls share requests with calls of
/// the same token only, and reads do not share with writes: a database with replicas answers a request near the caller
/// only if all of its commands read.
#[derive(Debug, Default)]
pub struct SyncScope {
    token: RefCell<Option<HeaderValue>>,
    has_written: Cell<bool>,
    has_lost_write: Cell<bool>,
    refuses_reads: Cell<bool>,
}

impl SyncScope {
    /// A scope that begins with the token of the user's last write, if there is one.
    #[must_use]
    pub fn new(token: Option<HeaderValue>) -> Self {
        Self { token: token.into(), ..Self::default() }
    }

    /// The token that reads of this scope send.
    #[must_use]
    pub fn token(&self) -> Option<HeaderValue> {
        self.token.borrow().clone()
    }

    /// Fails all later calls of this scope that only read, with [`TransportError::Unreachable`]: the user's last token is
    /// not known.
    ///
    /// [`TransportError::Unreachable`]: crate::TransportError::Unreachable
    pub fn refuse_reads(&self) {
        self.refuses_reads.set(true);
    }

    /// Returns whether a write had no response since the last call. It may have been executed.
    #[must_use]
    pub fn take_lost_write(&self) -> bool {
        self.has_lost_write.take()
    }

    /// The token of the last write in this scope; None if nothing was written since the last call. Later calls still
    /// send the token.
    #[must_use]
    pub fn take_written(&self) -> Option<HeaderValue> {
        if self.has_written.take() { self.token() } else { None }
    }
}

/// The scope of the work that is polled, for all handles of a client.
#[derive(Debug, Clone, Default)]
pub struct CurrentScope(Rc<RefCell<Option<Rc<SyncScope>>>>);

impl CurrentScope {
    pub fn get(&self) -> Option<Rc<SyncScope>> {
        self.0.borrow().clone()
    }

    /// Runs `work` in `scope`. The scope is set only while the work is polled, so works that run side by side do not
    /// mix.
    pub async fn run<T>(self, scope: Option<Rc<SyncScope>>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(move |context| {
            let before = self.0.replace(scope.clone());
            let poll: Poll<T> = work.as_mut().poll(context);
            self.0.replace(before);
            poll
        })
        .await
    }
}

/// The part of one call in its scope. One pointer, because futures hold it.
#[derive(Debug, Clone, Default)]
pub struct CallSync(Option<Rc<ScopedCall>>);

#[derive(Debug)]
struct ScopedCall {
    scope: Rc<SyncScope>,
    token: Option<HeaderValue>,
    only_reads: bool,
    is_synced: bool,
}

impl CallSync {
    pub fn of(commands: &[Command], scope: Option<Rc<SyncScope>>) -> Self {
        let Some(scope) = scope else { return Self::default() };
        let token = scope.token();
        let only_reads = commands.iter().all(Command::is_read);
        let is_synced = commands.iter().any(Command::is_synced);
        Self(Some(Rc::new(ScopedCall { scope, token, only_reads, is_synced })))
    }

    /// Returns whether all commands read. False without a scope.
    pub fn only_reads(&self) -> bool {
        self.0.as_ref().is_some_and(|call| call.only_reads)
    }

    /// Returns whether the scope fails this call.
    pub fn is_refused(&self) -> bool {
        self.0.as_ref().is_some_and(|call| call.only_reads && call.scope.refuses_reads.get())
    }

    /// Notes that the call had no response.
    pub fn lose(&self) {
        if let Some(ScopedCall { scope, is_synced: true, .. }) = self.0.as_deref() {
            scope.has_lost_write.set(true);
        }
    }

    /// Returns whether two calls may share a request.
    pub fn suits(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => one.only_reads == other.only_reads && one.token == other.token,
            _ => false,
        }
    }
}

/// Those whose calls one request carries.
pub trait Callers {
    /// The part in a scope that all of them have.
    fn sync(&self) -> &CallSync;

    /// Keeps the token of the response where later calls find it.
    fn keep(&self, token: &HeaderValue);
}

impl Callers for CallSync {
    fn sync(&self) -> &CallSync {
        self
    }

    fn keep(&self, token: &HeaderValue) {
        let Some(ScopedCall { scope, is_synced: true, .. }) = self.0.as_deref() else { return };
        scope.token.replace(Some(token.clone()));
        scope.has_written.set(true);
    }
}

/// The token to send: that of the scope or, without a scope, the client's last one.
pub fn token_to_send(callers: &dyn Callers, last: &RefCell<Option<HeaderValue>>) -> Option<HeaderValue> {
    callers.sync().0.as_ref().map_or_else(|| last.borrow().clone(), |call| call.token.clone())
}

/// Keeps the token of a response: in the scopes or, without a scope, as the client's last one.
pub fn keep_token(callers: &dyn Callers, token: &HeaderValue, last: &RefCell<Option<HeaderValue>>) {
    if callers.sync().0.is_some() {
        callers.keep(token);
    } else {
        last.replace(Some(token.clone()));
    }
}
