//! Redirects: errors with which a server rejects a command for a slot that it does not own. The server has not executed
//! such a command, so it can be sent again.

use crate::upstream::value::ServerError;

/// The server's instruction where to send the command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// MOVED: the slot belongs to the server at this address.
    Moved(String),
    /// ASK: the slot is migrating. For this command only, ask the server at this address.
    Ask(String),
    /// TRYAGAIN or CLUSTERDOWN: nobody can answer yet.
    TryAgain,
}

impl Redirect {
    /// The redirect in an error reply, or `None` if the error is a result.
    pub(super) fn from_error(error: &ServerError) -> Option<Self> {
        let address = || error.details().split(' ').nth(1).unwrap_or_default().to_owned();
        match error.code() {
            "MOVED" => Some(Self::Moved(address())),
            "ASK" => Some(Self::Ask(address())),
            "TRYAGAIN" | "CLUSTERDOWN" => Some(Self::TryAgain),
            _ => None,
        }
    }
}
