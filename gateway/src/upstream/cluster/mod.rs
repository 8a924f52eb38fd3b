//! A Redis Cluster. Each command goes to the server that owns the slot of its key. A client notices two differences
//! from a single server: the keys of a command, script or transaction must be in one slot, and the parts of a pipeline
//! that belong to different servers run concurrently.
//!
//! While a slot moves, the commands of a pipeline for its keys may run out of order: a command for a key that has moved runs
//! before a command whose keys are on both servers.
//!
//! A server rejects a command for a slot that it does not own (MOVED, ASK, TRYAGAIN). It has executed nothing then, so
//! the rejected commands are sent again. Commands on a connection that broke are not: they may have been executed.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use crate::{
    request::Command,
    upstream::{
        connection::Batch,
        error::{TransactionError, UpstreamError},
        node::Node,
        push::PushConnection,
        value::Value,
    },
};

/// The slots and their owners.
mod topology;

/// The servers that belong to the cluster.
mod members;

/// The destination of a command.
mod route;

/// Errors that name another destination.
mod redirect;

/// Replies that are collected over several attempts.
mod replies;

/// One reply from the replies of all servers.
mod merge;

use merge::merge_replies;
use redirect::Redirect;
use replies::{Rejected, Replies, RoutedCommand};
use route::Route;
use topology::{SlotMap, Topology};

/// A command is sent at most this often; the reply to the last attempt counts, whatever it is.
const MAX_ATTEMPTS: u32 = 8;
/// Linear backoff: the wait before attempt n + 1 is n - 1 times this, 1.05 s in total. A slot that moves is between two
/// servers for some milliseconds.
const BACKOFF: Duration = Duration::from_millis(50);

/// A cluster of servers.
pub(crate) struct Cluster {
    topology: Arc<Topology>,
}

impl Cluster {
    /// The cluster that the server `seed` belongs to. Does not connect.
    pub(crate) fn new(seed: Node) -> Self {
        Self { topology: Arc::new(Topology::new(seed)) }
    }

    /// `host:port` of the configured server, for messages.
    pub(crate) fn address(&self) -> String {
        self.topology.seed().address()
    }

    /// Connects to the configured server and reads which server owns which slots.
    ///
    /// # Errors
    /// With the cause: no server answers, or the configured one belongs to no cluster.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<(), String> {
        self.topology.seed().connect(deadline).await?;
        self.topology.refresh(&self.topology.slots(), deadline).await.map(drop)
    }

    /// Sends each command to the owner of its key, all concurrently, and returns one reply per command.
    pub(crate) async fn run(&self, commands: &[&Command], deadline: Instant) -> Result<Vec<Value>, UpstreamError> {
        let mut slots = self.topology.slots();
        let mut pending: Vec<_> = commands
            .iter()
            .enumerate()
            .flat_map(|(index, command)| self.destinations(&slots, index, command))
            .collect();
        let mut replies = Replies::of(commands);
        let unanswered = self.topology.refresh_unless_answered();
        for attempt in 1..=MAX_ATTEMPTS {
            let outcomes = self.send(pending, commands, deadline).await;
            let is_last = attempt == MAX_ATTEMPTS || Instant::now() >= deadline;
            let retries = replies.collect(outcomes, is_last)?;
            if retries.commands.is_empty() {
                break;
            }
            if retries.needs_backoff {
                sleep(BACKOFF * (attempt - 1)).await;
            }
            if retries.has_stale_slots {
                // If no server answers, the old slots are the best guess.
                slots = self.topology.refresh(&slots, deadline).await.unwrap_or(slots);
            }
            let named = retries.commands.iter().filter_map(Rejected::named_server);
            self.topology.learn(named, deadline).await;
            pending = Vec::new();
            for rejected in retries.commands {
                match self.reroute(&slots, rejected, commands) {
                    Ok(command) => pending.push(command),
                    Err((index, reply)) => replies.keep(index, reply),
                }
            }
        }
        unanswered.answered();
        let merged = commands.iter().zip(replies.into_parts());
        Ok(merged.map(|(command, parts)| merge_replies(command, parts)).collect())
    }

    /// Runs the commands in MULTI … EXEC on the server that owns all their keys.
    pub(crate) async fn run_transaction(
        &self,
        commands: &[Command],
        deadline: Instant,
    ) -> Result<Vec<Value>, TransactionError> {
        let mut routes = commands.iter().map(Route::of).filter(|route| *route != Route::AnyNode);
        let route = routes.next().unwrap_or(Route::AnyNode);
        if route == Route::AllNodes || routes.any(|other| other != route) {
            return Err(TransactionError::CrossSlot);
        }
        let mut slots = self.topology.slots();
        let mut asked: Option<Arc<Node>> = None;
        let mut attempt = 0;
        let unanswered = self.topology.refresh_unless_answered();
        loop {
            attempt += 1;
            // The server discards all commands when it redirects one, so a retry is safe.
            let importing = asked.take();
            let is_asking = importing.is_some();
            let node = importing.unwrap_or_else(|| self.topology.node_for(&slots, route));
            let outcome = if is_asking {
                node.run_transaction_asking(commands, deadline).await
            } else {
                node.run_transaction(commands, deadline).await
            };
            let is_last = attempt == MAX_ATTEMPTS || Instant::now() >= deadline;
            let redirect = match &outcome {
                Err(TransactionError::Discarded(error)) => Redirect::from_error(error),
                Err(TransactionError::Upstream(UpstreamError::Unreachable)) => Some(Redirect::TryAgain),
                _ => None,
            };
            let Some(redirect) = redirect.filter(|_| !is_last) else {
                if !matches!(outcome, Err(TransactionError::Upstream(_))) {
                    unanswered.answered();
                }
                return outcome;
            };
            if let Redirect::Ask(address) = &redirect {
                self.topology.learn([(&node, address.as_str())], deadline).await;
                asked = self.topology.node_at(address);
            }
            if asked.is_none() {
                sleep(BACKOFF * (attempt - 1)).await;
                slots = self.topology.refresh(&slots, deadline).await.unwrap_or(slots);
            }
        }
    }

    /// Opens a connection for one stream to the first server that can be reached. Each gets an equal part of the time that
    /// is left.
    pub(crate) async fn open_push(
        &self,
        command: &Command,
        deadline: Instant,
    ) -> Result<(Value, PushConnection), UpstreamError> {
        let nodes = self.topology.owners_and_seed();
        for (node, servers_left) in nodes.iter().zip((1..=nodes.len()).rev()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(servers_left).unwrap_or(u32::MAX);
            let opened = node.open_push(command, Instant::now() + share).await;
            if opened.is_ok() {
                return opened;
            }
        }
        self.topology.refresh_later();
        Err(UpstreamError::Unreachable)
    }

    /// Sends each server a pipeline with its commands, all concurrently.
    async fn send(
        &self,
        pending: Vec<RoutedCommand>,
        commands: &[&Command],
        deadline: Instant,
    ) -> Vec<(Vec<RoutedCommand>, Result<Vec<Value>, UpstreamError>)> {
        let mut batches: Vec<(Arc<Node>, Vec<RoutedCommand>)> = Vec::new();
        for command in pending {
            match batches.iter_mut().find(|(node, _)| Arc::ptr_eq(node, &command.node)) {
                Some((_, batch)) => batch.push(command),
                None => batches.push((command.node.clone(), vec![command])),
            }
        }
        let asking = Command::from_words(&["ASKING"]);
        let sent: Vec<_> = batches
            .into_iter()
            .map(|(node, batch)| {
                let encoded = Batch::of(batch.iter().flat_map(|routed| {
                    let command = commands.get(routed.index).copied();
                    routed.asking.then_some(&asking).into_iter().chain(command)
                }));
                async move {
                    let outcome = node.send(encoded, deadline).await.map(|values| {
                        let mut values = values.into_iter();
                        // Skips the reply to ASKING.
                        batch.iter().filter_map(|routed| values.nth(usize::from(routed.asking))).collect()
                    });
                    (batch, outcome)
                }
            })
            .collect();
        join_all(sent).await
    }

    /// The command with its destination. A command for all servers appears once per server.
    fn destinations(&self, slots: &SlotMap, index: usize, command: &Command) -> Vec<RoutedCommand> {
        let to = |node| RoutedCommand { index, node, asking: false };
        match Route::of(command) {
            Route::AllNodes => slots.nodes().into_iter().map(to).collect(),
            route => vec![to(self.topology.node_for(slots, route))],
        }
    }

    /// The next destination of a rejected command.
    ///
    /// # Errors
    /// If a script's error names no member of the cluster, the error is the script's result: the command's index and this result.
    fn reroute(
        &self,
        slots: &SlotMap,
        Rejected { command: RoutedCommand { index, node, asking }, redirect, reply }: Rejected,
        commands: &[&Command],
    ) -> Result<RoutedCommand, (usize, Value)> {
        let command = commands.get(index);
        let (named, asking) = match &redirect {
            Redirect::Ask(address) => (self.topology.node_at(address), true),
            Redirect::Moved(address) => (self.topology.node_at(address), false),
            Redirect::TryAgain => {
                let node = match command.map_or(Route::AnyNode, |command| Route::of(command)) {
                    // Each server has its own copy of the command.
                    Route::AllNodes => node.clone(),
                    route => self.topology.node_for(slots, route),
                };
                (Some(node), asking)
            }
        };
        match (named, reply) {
            (Some(node), _) => Ok(RoutedCommand { index, node, asking }),
            (None, Some(reply)) if command.is_some_and(|command| command.runs_script()) => Err((index, reply)),
            (None, _) => Ok(RoutedCommand { index, node, asking }),
        }
    }
}
