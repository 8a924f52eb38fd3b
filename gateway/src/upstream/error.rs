//! Errors of Redis as seen by the gateway. The texts are sent to clients.

use super::value::ServerError;

/// Redis did not reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// Nothing was sent, so a retry is safe.
    #[error("ERR Redis is unreachable, nothing was executed")]
    Unreachable,
    /// The commands were sent and may have been executed.
    #[error("ERR the connection to Redis broke, the command may have been executed")]
    ConnectionLost,
    /// The commands were sent and may have been executed. No reply came in time.
    #[error("ERR Redis did not reply in time, the command may have been executed")]
    TimedOut,
}

/// A transaction has no results.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransactionError {
    /// The server discarded all commands because of this error.
    #[error("the server discarded the transaction: {0:?}")]
    Discarded(ServerError),
    /// The server refused MULTI, so it may have executed each command by itself.
    #[error("ERR Redis refused MULTI, the commands may have been executed one by one: {}", .0.text())]
    NotStarted(ServerError),
    /// The keys are in several slots of a cluster. Nothing was sent; the text is that of a server.
    #[error("CROSSSLOT Keys in request don't hash to the same slot")]
    CrossSlot,
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
}
