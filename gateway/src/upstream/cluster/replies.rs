//! Collects the replies of a cluster over several attempts, and decides which commands are sent again.

use std::{iter, sync::Arc};

use super::redirect::Redirect;
use crate::{
    request::Command,
    upstream::{error::UpstreamError, node::Node, value::Value},
};

/// A command and its destination.
pub(super) struct RoutedCommand {
    /// Position in the request.
    pub(super) index: usize,
    pub(super) node: Arc<Node>,
    /// True if ASKING precedes the command: the server does not own the slot yet, but must answer.
    pub(super) asking: bool,
}

/// A batch for one node, and the replies to it.
type Outcome = (Vec<RoutedCommand>, Result<Vec<Value>, UpstreamError>);

/// The replies so far.
pub(super) struct Replies<'a> {
    commands: &'a [&'a Command],
    /// For each command, one reply per server that it went to.
    parts: Vec<Vec<Value>>,
    has_executed: bool,
}

/// A command that a server has rejected.
pub(super) struct Rejected {
    pub(super) command: RoutedCommand,
    pub(super) redirect: Redirect,
    /// The rejection; `None` if nothing was sent.
    pub(super) reply: Option<Value>,
}

impl Rejected {
    /// The server that has rejected the command, and the address that it names.
    pub(super) fn named_server(&self) -> Option<(&Arc<Node>, &str)> {
        match &self.redirect {
            Redirect::Moved(address) | Redirect::Ask(address) => Some((&self.command.node, address)),
            Redirect::TryAgain => None,
        }
    }
}

/// Commands to send again.
#[derive(Default)]
pub(super) struct Retries {
    pub(super) commands: Vec<Rejected>,
    pub(super) needs_backoff: bool,
    pub(super) has_stale_slots: bool,
}

impl Retries {
    fn add(&mut self, command: RoutedCommand, redirect: Redirect, reply: Option<Value>) {
        self.needs_backoff |= redirect == Redirect::TryAgain;
        self.has_stale_slots |= matches!(redirect, Redirect::Moved(_));
        self.commands.push(Rejected { command, redirect, reply });
    }
}

impl<'a> Replies<'a> {
    /// No reply yet to these commands.
    pub(super) fn of(commands: &'a [&'a Command]) -> Self {
        Self { commands, parts: iter::repeat_with(Vec::new).take(commands.len()).collect(), has_executed: false }
    }

    /// Takes the replies of an attempt and returns the commands to send again; none if it `is_last`.
    ///
    /// # Errors
    /// [`UpstreamError::Unreachable`] if no command was executed in any attempt, else
    /// [`UpstreamError::ConnectionLost`] or [`UpstreamError::TimedOut`].
    pub(super) fn collect(&mut self, outcomes: Vec<Outcome>, is_last: bool) -> Result<Retries, UpstreamError> {
        let mut retries = Retries::default();
        let mut failure = None;
        for (batch, outcome) in outcomes {
            match outcome {
                Ok(values) => self.sort(batch, values, is_last, &mut retries),
                // Nothing was sent. By now another server may own the slots.
                Err(UpstreamError::Unreachable) if !is_last => {
                    retries.has_stale_slots = true;
                    for command in batch {
                        retries.add(command, Redirect::TryAgain, None);
                    }
                }
                Err(UpstreamError::Unreachable) => failure = failure.or(Some(UpstreamError::Unreachable)),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => Ok(retries),
            Some(UpstreamError::Unreachable) if !self.has_executed => Err(UpstreamError::Unreachable),
            Some(UpstreamError::Unreachable) => Err(UpstreamError::ConnectionLost),
            Some(error) => Err(error),
        }
    }

    /// The replies to each command, in order.
    pub(super) fn into_parts(self) -> Vec<Vec<Value>> {
        self.parts
    }

    /// Keeps results, and moves redirects to the retries.
    fn sort(&mut self, batch: Vec<RoutedCommand>, values: Vec<Value>, is_last: bool, retries: &mut Retries) {
        for (command, value) in batch.into_iter().zip(values) {
            let redirect = match &value {
                Value::ServerError(error) if !is_last => {
                    let sent = self.commands.get(command.index);
                    sent.and_then(|sent| Redirect::of_reply(error, sent))
                }
                _ => None,
            };
            match redirect {
                Some(redirect) => retries.add(command, redirect, Some(value)),
                None => self.keep(command.index, value),
            }
        }
    }

    /// Keeps a result.
    pub(super) fn keep(&mut self, index: usize, value: Value) {
        self.has_executed = true;
        if let Some(parts) = self.parts.get_mut(index) {
            parts.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::upstream::login::Target;

    fn batch(index: usize) -> Vec<RoutedCommand> {
        let target = Target::parse("redis://127.0.0.1:1").expect("a URL");
        let node = Arc::new(Node::new(target, Duration::from_secs(1)));
        vec![RoutedCommand { index, node, asking: false }]
    }

    #[test]
    fn an_unreachable_server_is_retried_until_the_last_attempt() {
        let command = Command::from_words(&["PING"]);
        let commands = [&command];
        let mut replies = Replies::of(&commands);
        let retries = replies.collect(vec![(batch(0), Err(UpstreamError::Unreachable))], false).expect("a retry");
        assert_eq!((retries.commands.len(), retries.needs_backoff, retries.has_stale_slots), (1, true, true));
        let last = replies.collect(vec![(batch(0), Err(UpstreamError::Unreachable))], true);
        assert_eq!(last.err(), Some(UpstreamError::Unreachable));
    }

    #[test]
    fn a_failure_is_unreachable_only_if_no_server_executed_anything() {
        let executed = || (batch(0), Ok(vec![Value::Okay]));
        let unreachable = || (batch(1), Err(UpstreamError::Unreachable));
        let command = Command::from_words(&["PING"]);
        for outcomes in [vec![executed(), unreachable()], vec![unreachable(), executed()]] {
            let outcome = Replies::of(&[&command; 2]).collect(outcomes, true);
            assert_eq!(outcome.err(), Some(UpstreamError::ConnectionLost));
        }
    }

    #[test]
    fn a_lost_connection_is_never_retried() {
        let command = Command::from_words(&["PING"]);
        let outcome = Replies::of(&[&command]).collect(vec![(batch(0), Err(UpstreamError::ConnectionLost))], false);
        assert_eq!(outcome.err(), Some(UpstreamError::ConnectionLost));
    }
}
