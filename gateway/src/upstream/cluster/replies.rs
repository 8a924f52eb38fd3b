//! Collects the replies of a cluster over several attempts, and decides which commands are sent again.

use std::{iter, sync::Arc};

use super::redirect::Redirect;
use crate::upstream::{error::UpstreamError, node::Node, value::Value};

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
pub(super) struct Replies {
    /// For each command, one reply per server that it went to.
    parts: Vec<Vec<Value>>,
    has_executed: bool,
}

/// Commands to send again.
#[derive(Default)]
pub(super) struct Retries {
    pub(super) commands: Vec<(RoutedCommand, Redirect)>,
    pub(super) needs_backoff: bool,
    pub(super) has_stale_slots: bool,
}

impl Retries {
    fn add(&mut self, command: RoutedCommand, redirect: Redirect) {
        self.needs_backoff |= redirect == Redirect::TryAgain;
        self.has_stale_slots |= matches!(redirect, Redirect::Moved(_));
        self.commands.push((command, redirect));
    }
}

impl Replies {
    /// No reply yet to so many commands.
    pub(super) fn of(commands: usize) -> Self {
        Self { parts: iter::repeat_with(Vec::new).take(commands).collect(), has_executed: false }
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
                        retries.add(command, Redirect::TryAgain);
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
                Value::ServerError(error) if !is_last => Redirect::from_error(error),
                _ => None,
            };
            if let Some(redirect) = redirect {
                retries.add(command, redirect);
                continue;
            }
            self.has_executed = true;
            if let Some(parts) = self.parts.get_mut(command.index) {
                parts.push(value);
            }
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
        let mut replies = Replies::of(1);
        let retries = replies.collect(vec![(batch(0), Err(UpstreamError::Unreachable))], false).expect("a retry");
        assert_eq!((retries.commands.len(), retries.needs_backoff, retries.has_stale_slots), (1, true, true));
        let last = replies.collect(vec![(batch(0), Err(UpstreamError::Unreachable))], true);
        assert_eq!(last.err(), Some(UpstreamError::Unreachable));
    }

    #[test]
    fn a_failure_is_unreachable_only_if_no_server_executed_anything() {
        let executed = || (batch(0), Ok(vec![Value::Okay]));
        let unreachable = || (batch(1), Err(UpstreamError::Unreachable));
        for outcomes in [vec![executed(), unreachable()], vec![unreachable(), executed()]] {
            let outcome = Replies::of(2).collect(outcomes, true);
            assert_eq!(outcome.err(), Some(UpstreamError::ConnectionLost));
        }
    }

    #[test]
    fn a_lost_connection_is_never_retried() {
        let outcome = Replies::of(1).collect(vec![(batch(0), Err(UpstreamError::ConnectionLost))], false);
        assert_eq!(outcome.err(), Some(UpstreamError::ConnectionLost));
    }
}
