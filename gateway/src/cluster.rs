//! A Redis Cluster: every server has a part of the slots, and a command goes to the one that has its key's. Who asks notices
//! nothing, but that a transaction, a script or a command has all its keys in one slot, and that the parts of a pipeline which
//! are on different servers run beside each other.
//!
//! A server that has a slot no longer, or not yet, says so (MOVED, ASK, TRYAGAIN) and has executed nothing, so only what it refused is
//! sent again. What was sent over a connection that broke is not: it may have been executed.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures_util::future::join_all;
use redis::{RedisConnectionInfo, ServerError, Value};
use tokio::{sync::Mutex, time::sleep};

use crate::{
    node::{Failure, Node, pack},
    reply::error_text,
    request::Command,
    slots::{Target, combine},
};

/// How often a command is sent on before its last answer is taken for good.
const ROUNDS: u32 = 8;
/// The wait before a round, times its number: a slot that moves is in between for some milliseconds. 1.4 s in all.
const PAUSE: Duration = Duration::from_millis(50);

/// What a server says of a command whose keys are in several slots; a transaction is not sent that far.
const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// A cluster, and which server has what.
pub(crate) struct Cluster {
    login: RedisConnectionInfo,
    /// Where the first question is asked.
    seed: Arc<Node>,
    map: RwLock<Arc<Map>>,
    /// Held while the map is read anew, so that of many who noticed only one asks.
    reading: Mutex<()>,
}

/// The last slot of a range → the first one, and whose they are.
type Map = BTreeMap<u16, (u16, Arc<Node>)>;

/// A command on its way to a server.
struct Errand {
    /// Which of the commands.
    index: usize,
    node: Arc<Node>,
    /// The server does not have the slot yet, and is to answer nevertheless.
    asking: bool,
}

/// What a server says of a slot that it has not.
enum Redirect {
    Moved(String),
    Ask(String),
    Later,
}

impl Cluster {
    /// Connects to nothing yet.
    pub(crate) fn new(seed: Node, login: RedisConnectionInfo) -> Self {
        Self { login, seed: Arc::new(seed), map: RwLock::default(), reading: Mutex::default() }
    }

    /// `host:port` of the first server, for messages.
    pub(crate) fn address(&self) -> String {
        self.seed.address()
    }

    /// Looks up which server has what.
    ///
    /// # Errors
    /// When no server answers, or it is of no cluster.
    pub(crate) async fn connect(&self) -> Result<(), String> {
        self.seed.connect().await?;
        self.read_map(&self.map()).await.map(drop)
    }

    /// Sends each command to the server that has its key, all at once, and returns a reply for each.
    pub(crate) async fn run(&self, commands: &[&Command]) -> Result<Vec<Value>, Failure> {
        let mut replies: Vec<Vec<Value>> = commands.iter().map(|_| Vec::new()).collect();
        let mut map = self.map();
        let mut errands: Vec<_> =
            commands.iter().enumerate().flat_map(|(index, command)| self.errands(&map, index, command)).collect();
        let mut has_run = false;
        for round in 0.. {
            let mut refused = Vec::new();
            let mut is_stale = false;
            for (errands, outcome) in self.send(errands, commands).await {
                let values = match outcome {
                    Ok(values) => values,
                    // Nothing was sent: another server may have its slots by now.
                    Err(Failure::Unreachable) if round + 1 < ROUNDS => {
                        is_stale = true;
                        refused.extend(errands.into_iter().map(|errand| (errand, Redirect::Later)));
                        continue;
                    }
                    Err(Failure::Unreachable) if !has_run => return Err(Failure::Unreachable),
                    Err(_) => return Err(Failure::Broken),
                };
                for (errand, value) in errands.into_iter().zip(values) {
                    let redirect = if let Value::ServerError(error) = &value { redirect(error) } else { None };
                    if let Some(redirect) = redirect.filter(|_| round + 1 < ROUNDS) {
                        refused.push((errand, redirect));
                        continue;
                    }
                    has_run = true;
                    if let Some(replies) = replies.get_mut(errand.index) {
                        replies.push(value);
                    }
                }
            }
            if refused.is_empty() {
                break;
            }
            is_stale |= refused.iter().any(|(_, redirect)| matches!(redirect, Redirect::Moved(_)));
            if refused.iter().any(|(_, redirect)| matches!(redirect, Redirect::Later)) {
                sleep(PAUSE * round).await;
            }
            if is_stale {
                // If nobody answers, the old map is as good as any.
                map = self.read_map(&map).await.unwrap_or(map);
            }
            errands =
                refused.into_iter().map(|(errand, redirect)| self.again(&map, errand, &redirect, commands)).collect();
        }
        Ok(commands.iter().zip(replies).map(|(command, replies)| combine(command, replies)).collect())
    }

    /// Runs the commands as one transaction on the server that has all their keys.
    pub(crate) async fn run_atomically(&self, commands: &[Command]) -> Result<Result<Vec<Value>, String>, Failure> {
        let mut slots = commands.iter().map(Target::of).filter(|target| *target != Target::Any);
        let target = slots.next().unwrap_or(Target::Any);
        if target == Target::All || slots.any(|slot| slot != target) {
            return Ok(Err(CROSS_SLOT.to_owned()));
        }
        let mut map = self.map();
        let mut round = 0;
        loop {
            round += 1;
            // Refused by one command, the server discards them all: nothing was executed.
            match self.node(&map, target).run_atomically(commands).await {
                Ok(Err(error)) if round < ROUNDS && redirect(&error).is_some() => {}
                Err(Failure::Unreachable) if round < ROUNDS => {}
                outcome => return Ok(outcome?.map_err(|error| error_text(&error))),
            }
            sleep(PAUSE * (round - 1)).await;
            map = self.read_map(&map).await.unwrap_or(map);
        }
    }

    /// Sends every server its part, beside the others.
    async fn send(
        &self,
        errands: Vec<Errand>,
        commands: &[&Command],
    ) -> Vec<(Vec<Errand>, Result<Vec<Value>, Failure>)> {
        let mut parts: Vec<(Arc<Node>, Vec<Errand>)> = Vec::new();
        for errand in errands {
            match parts.iter_mut().find(|(node, _)| Arc::ptr_eq(node, &errand.node)) {
                Some((_, part)) => part.push(errand),
                None => parts.push((errand.node.clone(), vec![errand])),
            }
        }
        let asking = Command { args: vec![b"ASKING".to_vec()] };
        let sent: Vec<_> = parts
            .into_iter()
            .map(|(node, errands)| {
                let batch = pack(errands.iter().flat_map(|errand| {
                    let command = commands.get(errand.index).copied();
                    errand.asking.then_some(&asking).into_iter().chain(command)
                }));
                async move {
                    let outcome = node.send(&batch).await.map(|values| {
                        let mut values = values.into_iter();
                        // What was said to ASKING is no reply to anybody.
                        errands.iter().filter_map(|errand| values.nth(usize::from(errand.asking))).collect()
                    });
                    (errands, outcome)
                }
            })
            .collect();
        join_all(sent).await
    }

    fn errands(&self, map: &Map, index: usize, command: &Command) -> Vec<Errand> {
        let errand = |node| Errand { index, node, asking: false };
        match Target::of(command) {
            Target::All => masters(map).into_iter().map(errand).collect(),
            target => vec![errand(self.node(map, target))],
        }
    }

    /// Where a refused command is to be sent next.
    fn again(&self, map: &Map, errand: Errand, redirect: &Redirect, commands: &[&Command]) -> Errand {
        let target = commands.get(errand.index).map_or(Target::Any, |command| Target::of(command));
        let (node, asking) = match redirect {
            Redirect::Ask(address) => (self.at(map, address), true),
            Redirect::Moved(address) => (self.at(map, address), false),
            Redirect::Later if target == Target::All => (None, false),
            Redirect::Later => (Some(self.node(map, target)), errand.asking),
        };
        Errand { index: errand.index, node: node.unwrap_or(errand.node), asking }
    }

    /// Whose slot it is. The seed stands in for a server that nobody knows: it will say who has the slot.
    fn node(&self, map: &Map, target: Target) -> Arc<Node> {
        let owner = match target {
            Target::Slot(slot) => map.range(slot..).next().filter(|(_, (first, _))| *first <= slot),
            Target::Any | Target::All => map.first_key_value(),
        };
        owner.map_or_else(|| self.seed.clone(), |(_, (_, node))| node.clone())
    }

    /// The server at `host:port`; an empty host is the seed's.
    fn at(&self, map: &Map, address: &str) -> Option<Arc<Node>> {
        let (host, port) = address.rsplit_once(':')?;
        Some(self.known(map, host, port.parse().ok()?))
    }

    fn known(&self, map: &Map, host: &str, port: u16) -> Arc<Node> {
        let host = if host.is_empty() { self.seed.host() } else { host };
        let mut nodes = masters(map).into_iter().chain([self.seed.clone()]);
        let known = nodes.find(|node| node.is_at(host, port));
        known.unwrap_or_else(|| Arc::new(Node::new(host.to_owned(), port, self.login.clone())))
    }

    fn map(&self) -> Arc<Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the map anew, unless somebody has since `old`.
    async fn read_map(&self, old: &Arc<Map>) -> Result<Arc<Map>, String> {
        let _reading = self.reading.lock().await;
        let current = self.map();
        if !Arc::ptr_eq(&current, old) {
            return Ok(current);
        }
        let question = Command { args: vec![b"CLUSTER".to_vec(), b"SLOTS".to_vec()] };
        let mut cause = "it is of no cluster, or no slot of that is served".to_owned();
        for node in [self.seed.clone()].into_iter().chain(masters(&current)) {
            match node.run([&question]).await.map(|mut replies| replies.pop()) {
                Ok(Some(Value::Array(ranges))) if !ranges.is_empty() => {
                    let map: Arc<Map> =
                        Arc::new(ranges.iter().filter_map(|range| self.range(&current, range)).collect());
                    *self.map.write().unwrap_or_else(PoisonError::into_inner) = map.clone();
                    return Ok(map);
                }
                Ok(_) => {}
                Err(failure) => cause = failure.to_string(),
            }
        }
        Err(cause)
    }

    /// Reads `[first, last, [host, port, …], replicas…]`.
    fn range(&self, old: &Map, range: &Value) -> Option<(u16, (u16, Arc<Node>))> {
        let Value::Array(range) = range else { return None };
        let [first, last, Value::Array(master), ..] = range.as_slice() else { return None };
        let [host, port, ..] = master.as_slice() else { return None };
        let number = |value: &Value| if let Value::Int(number) = value { u16::try_from(*number).ok() } else { None };
        let host = match host {
            Value::BulkString(host) => std::str::from_utf8(host).ok()?,
            Value::SimpleString(host) => host,
            _ => "",
        };
        Some((number(last)?, (number(first)?, self.known(old, host, number(port)?))))
    }
}

/// Each server once.
fn masters(map: &Map) -> Vec<Arc<Node>> {
    let mut masters: Vec<Arc<Node>> = Vec::new();
    for (_, node) in map.values() {
        if !masters.iter().any(|known| Arc::ptr_eq(known, node)) {
            masters.push(node.clone());
        }
    }
    masters
}

/// Whether an error says that the command belongs elsewhere, and was not executed.
fn redirect(error: &ServerError) -> Option<Redirect> {
    let address = || error.details().and_then(|details| details.split(' ').nth(1)).unwrap_or_default().to_owned();
    match error.code() {
        "MOVED" => Some(Redirect::Moved(address())),
        "ASK" => Some(Redirect::Ask(address())),
        "TRYAGAIN" | "CLUSTERDOWN" => Some(Redirect::Later),
        _ => None,
    }
}
