//! Redirects: errors with which a server rejects a command for a slot that it does not own. The server has not executed
//! such a command, so it can be sent again.

use super::route::Route;
use crate::{request::Command, upstream::value::ServerError};

/// The texts with which a server rejects a command for now.
const REJECTIONS: [&str; 4] = [
    "CLUSTERDOWN Hash slot not served",
    "CLUSTERDOWN The cluster is down",
    "CLUSTERDOWN The cluster is down and only accepts read commands",
    "TRYAGAIN Multiple keys request during rehashing of slot",
];

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
    /// The redirect in the reply to a command, or `None` if the error is a result. A script can return any error after
    /// it has written, so for a script the error must be one that a server gives for the slot of the script's key.
    pub(super) fn of_reply(error: &ServerError, command: &Command) -> Option<Self> {
        let redirect = Self::from_error(error)?;
        (!command.runs_script() || is_of_server(error, Route::of(command))).then_some(redirect)
    }

    /// The redirect in an error of a server, or `None` if the error is a result.
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

/// Returns whether the error looks like the rejection of a command with this route by a server.
fn is_of_server(error: &ServerError, route: Route) -> bool {
    let Route::Slot(slot) = route else { return false };
    match error.code() {
        "MOVED" | "ASK" => error.details().split(' ').next() == Some(slot.to_string().as_str()),
        _ => REJECTIONS.contains(&error.text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_redirected_only_as_a_server_does_it_for_its_slot() {
        let moved = || Some(Redirect::Moved("a:1".to_owned()));
        for (command, error, expected) in [
            ("GET foo", "MOVED 12182 a:1", moved()),
            ("GET foo", "TRYAGAIN later", Some(Redirect::TryAgain)),
            ("GET foo", "ERR", None),
            ("EVAL x 1 foo", "MOVED 12182 a:1", moved()),
            ("EVAL x 1 foo", "ASK 12182 a:1", Some(Redirect::Ask("a:1".to_owned()))),
            ("EVAL x 1 foo", "MOVED 0 a:1", None),
            ("EVAL x 0 foo", "MOVED 12182 a:1", None),
            ("FCALL f 1 foo", "ASK 0 a:1", None),
            ("EVALSHA x 1 foo", "TRYAGAIN Multiple keys request during rehashing of slot", Some(Redirect::TryAgain)),
            ("EVALSHA x 1 foo", "TRYAGAIN later", None),
            ("EVALSHA x 1 foo", "CLUSTERDOWN", None),
        ] {
            let words: Vec<_> = command.split(' ').collect();
            let redirect = Redirect::of_reply(&ServerError::new(error), &Command::from_words(&words));
            assert_eq!(redirect, expected, "{command}: {error}");
        }
    }
}
