//! Topology of a cluster: which server owns which slots. Read with CLUSTER SLOTS at the start, whenever a redirect shows
//! that it is out of date, and whenever a server does not answer: then a replica may have taken over its slots.

use std::{
    collections::BTreeMap,
    iter,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{runtime::Handle, sync::Mutex as AsyncMutex, time::Instant};

use super::{members::is_listed, route::Route};
use crate::{
    request::Command,
    upstream::{node::Node, value::Value},
};

/// Time limit for reading the slots in the background.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(5);

/// The servers of a cluster.
pub(super) struct Topology {
    /// The configured server, and the default when the owner of a slot is unknown.
    seed: Arc<Node>,
    slots: RwLock<Arc<SlotMap>>,
    /// Servers that redirects have named and that are not among the owners in `slots`, such as a new server before its
    /// first slot. All requests share their connections, too. A refresh empties the list.
    newcomers: Mutex<Vec<Arc<Node>>>,
    /// Held while the slots are read, so that concurrent requests cause one CLUSTER SLOTS (single flight).
    refreshing: AsyncMutex<()>,
}

/// A snapshot of the slots: last slot of each range → first slot of the range, and its owner.
#[derive(Default)]
pub(super) struct SlotMap(BTreeMap<u16, (u16, Arc<Node>)>);

impl SlotMap {
    /// Each owner once.
    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        for (_, node) in self.0.values() {
            if !nodes.iter().any(|known| Arc::ptr_eq(known, node)) {
                nodes.push(node.clone());
            }
        }
        nodes
    }
}

/// A request without an answer. It also ends here if its client leaves, which may happen long before the time limit.
pub(super) struct Unanswered(Option<Arc<Topology>>);

impl Unanswered {
    /// The request has an answer.
    pub(super) fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(topology) = self.0.take() {
            topology.refresh_later();
        }
    }
}

impl Topology {
    /// The cluster of this server. Does not connect.
    pub(super) fn new(seed: Node) -> Self {
        Self {
            seed: Arc::new(seed),
            slots: RwLock::default(),
            newcomers: Mutex::default(),
            refreshing: AsyncMutex::default(),
        }
    }

    /// The configured server.
    pub(super) fn seed(&self) -> &Node {
        &self.seed
    }

    /// The slots as last read.
    pub(super) fn slots(&self) -> Arc<SlotMap> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The server for a route. If the owner is unknown, the seed: its redirect names the owner.
    pub(super) fn node_for(&self, slots: &SlotMap, route: Route) -> Arc<Node> {
        let owner = match route {
            Route::Slot(slot) => slots.0.range(slot..).next().filter(|(_, (first, _))| *first <= slot),
            Route::AnyNode | Route::AllNodes => slots.0.first_key_value(),
        };
        owner.map_or_else(|| self.seed.clone(), |(_, (_, node))| node.clone())
    }

    /// The known server at `host:port`.
    pub(super) fn node_at(&self, address: &str) -> Option<Arc<Node>> {
        let (host, port) = parse_address(address)?;
        self.known_node(&self.owners_and_newcomers(), host, port)
    }

    /// Adds the servers that redirects name to the newcomers. Each redirect comes with its sender, which must list the named
    /// server as a member: the gateway sends the password to members only.
    pub(super) async fn learn(&self, redirects: impl IntoIterator<Item = (&Arc<Node>, &str)>, deadline: Instant) {
        let mut lists: Vec<(&Arc<Node>, String)> = Vec::new();
        for (redirecting, address) in redirects {
            let Some((host, port)) = parse_address(address) else { continue };
            if self.known_node(&self.owners_and_newcomers(), host, port).is_some() {
                continue;
            }
            if !lists.iter().any(|(node, _)| Arc::ptr_eq(node, redirecting)) {
                lists.push((redirecting, members(redirecting, deadline).await));
            }
            if lists.iter().any(|(node, list)| Arc::ptr_eq(node, redirecting) && is_listed(list, host, port)) {
                let mut newcomers = self.newcomers();
                // Another request may have added it in the meantime.
                if self.known_node(&newcomers, host, port).is_none() {
                    newcomers.push(self.known_or_new_node(&[], host, port));
                }
            }
        }
    }

    /// The owners of slots, and the newcomers.
    fn owners_and_newcomers(&self) -> Vec<Arc<Node>> {
        let mut known = self.slots().nodes();
        known.extend(self.newcomers().iter().cloned());
        known
    }

    fn newcomers(&self) -> MutexGuard<'_, Vec<Arc<Node>>> {
        self.newcomers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A known server keeps its connection.
    fn known_or_new_node(&self, known: &[Arc<Node>], host: &str, port: u16) -> Arc<Node> {
        let found = self.known_node(known, host, port);
        found.unwrap_or_else(|| Arc::new(self.seed.sibling(self.host_or_default(host).to_owned(), port)))
    }

    fn known_node(&self, known: &[Arc<Node>], host: &str, port: u16) -> Option<Arc<Node>> {
        let host = self.host_or_default(host);
        known.iter().chain(iter::once(&self.seed)).find(|node| node.is_at(host, port)).cloned()
    }

    /// An empty host means the host of the seed.
    fn host_or_default<'a>(&'a self, host: &'a str) -> &'a str {
        if host.is_empty() { self.seed.host() } else { host }
    }

    /// Reads the slots, unless another request has replaced `old` in the meantime.
    ///
    /// # Errors
    /// With the cause: no known server answers, or none belongs to a cluster.
    pub(super) async fn refresh(&self, old: &Arc<SlotMap>, deadline: Instant) -> Result<Arc<SlotMap>, String> {
        let _guard = self.refreshing.lock().await;
        let current = self.slots();
        if !Arc::ptr_eq(&current, old) {
            return Ok(current);
        }
        self.read_slots(&current, deadline).await
    }

    /// Reads the slots in the background, because the failed request has no time left. Does nothing if a read is in progress.
    pub(super) fn refresh_later(self: &Arc<Self>) {
        // Without a runtime, the program ends.
        let Ok(runtime) = Handle::try_current() else { return };
        let topology = self.clone();
        runtime.spawn(async move {
            let Ok(_guard) = topology.refreshing.try_lock() else { return };
            // Without an answer, the next request that fails tries again.
            let _ = topology.read_slots(&topology.slots(), Instant::now() + REFRESH_TIMEOUT).await;
        });
    }

    /// Refreshes later, unless the request gets an answer: a replica may have taken over the slots of a silent server.
    pub(super) fn refresh_unless_answered(self: &Arc<Self>) -> Unanswered {
        Unanswered(Some(self.clone()))
    }

    async fn read_slots(&self, current: &SlotMap, deadline: Instant) -> Result<Arc<SlotMap>, String> {
        // All are asked at once, and the first answer counts. One after the other, a lost server would use up the time.
        let nodes = self.owners_and_seed();
        let mut answers: FuturesUnordered<_> = nodes.iter().map(|node| read_ranges(node, deadline)).collect();
        let mut cause = String::new();
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(ranges) => {
                    let mut newcomers = self.newcomers();
                    let known = current.nodes().into_iter().chain(newcomers.drain(..)).collect();
                    let slots = Arc::new(self.parse(known, &ranges));
                    *self.slots.write().unwrap_or_else(PoisonError::into_inner) = slots.clone();
                    return Ok(slots);
                }
                Err(error) => cause = error,
            }
        }
        Err(cause)
    }

    /// The owners of slots, and the configured server.
    pub(super) fn owners_and_seed(&self) -> Vec<Arc<Node>> {
        let mut nodes = self.slots().nodes();
        if !nodes.iter().any(|node| Arc::ptr_eq(node, &self.seed)) {
            nodes.push(self.seed.clone());
        }
        nodes
    }

    /// Parses the reply to CLUSTER SLOTS. The servers in `known` keep their connections.
    fn parse(&self, mut known: Vec<Arc<Node>>, ranges: &[Value]) -> SlotMap {
        SlotMap(ranges.iter().filter_map(|range| self.parse_range(&mut known, range)).collect())
    }

    /// Parses `[first, last, [host, port, …], replicas…]`. A server whose slots moved has several ranges, and is known
    /// after the first.
    fn parse_range(&self, known: &mut Vec<Arc<Node>>, range: &Value) -> Option<(u16, (u16, Arc<Node>))> {
        let Value::Array(range) = range else { return None };
        let [first, last, Value::Array(owner), ..] = range.as_slice() else { return None };
        let [host, port, ..] = owner.as_slice() else { return None };
        let number = |value: &Value| if let Value::Int(number) = value { u16::try_from(*number).ok() } else { None };
        let host = match host {
            Value::BulkString(host) | Value::SimpleString(host) => std::str::from_utf8(host).ok()?,
            _ => "",
        };
        let node = self.known_or_new_node(known, host, number(port)?);
        known.push(node.clone());
        Some((number(last)?, (number(first)?, node)))
    }
}

fn parse_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

/// The reply of a server to CLUSTER SLOTS.
async fn read_ranges(node: &Node, deadline: Instant) -> Result<Vec<Value>, String> {
    let query = Command::from_words(&["CLUSTER", "SLOTS"]);
    let replies = node.run([&query], deadline).await.map_err(|error| error.to_string())?;
    match replies.into_iter().next() {
        Some(Value::Array(ranges)) if !ranges.is_empty() => Ok(ranges),
        _ => Err("the server belongs to no cluster, or its cluster serves no slot".to_owned()),
    }
}

/// The members that a server knows, as text. Empty if it does not answer.
async fn members(node: &Node, deadline: Instant) -> String {
    let query = Command::from_words(&["CLUSTER", "NODES"]);
    let replies = node.run([&query], deadline).await.unwrap_or_default();
    match replies.into_iter().next() {
        Some(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Target;

    #[test]
    fn a_server_with_several_ranges_is_one_server() {
        let seed = Target::parse("redis://a:1?cluster").unwrap();
        let topology = Topology::new(Node::new(seed, Duration::from_secs(1)));
        let range = |first, last, host: &str| {
            let owner = vec![Value::BulkString(host.to_owned().into()), Value::Int(1)];
            Value::Array(vec![Value::Int(first), Value::Int(last), Value::Array(owner)])
        };
        let ranges = [range(0, 9, "a"), range(10, 19, "b"), range(20, 29, "a"), range(30, 39, "b"), range(40, 49, "c")];
        let slots = topology.parse(Vec::new(), &ranges);
        let hosts = |slots: &SlotMap| slots.nodes().iter().map(|node| node.host().to_owned()).collect::<Vec<_>>();
        assert_eq!(hosts(&slots), ["a", "b", "c"]);
        let again = topology.parse(slots.nodes(), &ranges);
        let kept = slots.nodes().iter().zip(again.nodes()).all(|(one, other)| Arc::ptr_eq(one, &other));
        assert!(kept && again.nodes().len() == 3, "connections are kept");
    }
}
