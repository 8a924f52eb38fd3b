//! Every action of a shop under every fault, on a real Redis, gateway and origin. `docs/faults.md` shows the results.
//!
//! [`judge`] asserts the same rules for each combination:
//! - A page is answered 200 as long as Redis, the origin or a stale page can supply it.
//! - An action takes effect once, or gets 503 with `Retry-After`; then a retry executes it or finds its effect.
//! - A call sends Redis at most twice as many requests as without the fault, plus one.
//! - The next run of a cron does the work of a failed one.
//! - Nothing has to be restarted.

use std::{panic::AssertUnwindSafe, time::Duration};

use edgefront::schema::redis::Redis as Client;
use edgefront_gateway::{
    Fault, FaultScope,
    server::{Server, ServerOptions},
};
use futures_util::{FutureExt, StreamExt, stream};
use upstash_rest::Command;

use self::{
    action::{ACTIONS, Action, Done},
    table::Table,
    world::{Seen, World},
};
use crate::support::{Reply, Store, eventually};

/// The actions of a shop.
mod action;
/// Slots that move, servers that fail over.
mod cluster;
/// Redis is killed while customers buy.
mod crash;
/// Keys that another program has damaged.
mod damaged;
/// Faults of the database.
mod database;
/// The results as a table of a document.
mod table;
/// Some of the combinations in workerd.
mod workerd;
/// The shop under test.
mod world;

/// Number of fields of the table that are tested concurrently.
const AT_ONCE: usize = 8;
/// Slower than [`DEADLINE`], but in time for requests after the response.
const SLOW: &str = "slow=2.5";
const DEADLINE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy)]
enum Trouble {
    Nothing,
    /// A lasting fault of the gateway, by its name.
    Redis(&'static str),
    /// A fault of the gateway for one request.
    Once(&'static str),
    /// Reads come from an empty replica.
    Stale,
    /// The server behind the gateway is down.
    Down,
    /// The server behind the gateway was restarted, so it has no scripts.
    Restarted,
    /// The origin sends this reply.
    Origin(fn() -> Reply),
    /// Neither Redis nor the origin answers.
    Both,
    /// Every slot of the cluster is migrating to another server.
    Moving,
}

use Trouble::*;

/// The layout of the data during a test.
#[derive(Clone, Copy)]
enum Layout {
    Book,
    /// Several shards in one database.
    Shards,
    /// The same, on a cluster of three servers.
    Cluster,
}

impl Layout {
    /// Number of fields that are tested concurrently. On a cluster fewer, because each field needs one of its own.
    fn at_once(self) -> usize {
        if matches!(self, Self::Cluster) { 2 } else { AT_ONCE }
    }

    async fn store(self) -> Store {
        match self {
            Self::Book => Store::book().await,
            Self::Shards => Store::sharded().await,
            Self::Cluster => Store::spread().await,
        }
    }

    async fn store_on(self, url: &str) -> Store {
        match self {
            Self::Book => Store::on(url).await,
            Self::Shards | Self::Cluster => Store::sharded_on(url).await,
        }
    }
}

const REDIS: [(&str, Trouble); 14] = [
    ("no fault", Nothing),
    ("connection refused", Redis("refuse")),
    ("401", Redis("401")),
    ("429", Redis("429")),
    ("500", Redis("500")),
    ("200 with an error", Redis("error")),
    ("quota used up", Redis("quota")),
    ("no JSON", Redis("garbage")),
    ("server down", Down),
    ("slow", Redis(SLOW)),
    ("reply lost", Redis("lost-reply")),
    ("reply cut off", Redis("truncated")),
    ("half of a pipeline", Redis("half-pipeline")),
    ("stale reads", Stale),
];

const ONCE: [(&str, Trouble); 11] = [
    ("connection refused", Once("refuse")),
    ("401", Once("401")),
    ("429", Once("429")),
    ("500", Once("500")),
    ("200 with an error", Once("error")),
    ("no JSON", Once("garbage")),
    ("slow", Once(SLOW)),
    ("reply lost", Once("lost-reply")),
    ("reply cut off", Once("truncated")),
    ("half of a pipeline", Once("half-pipeline")),
    ("server restarted", Restarted),
];

const ORIGIN: [(&str, Trouble); 5] = [
    ("connection refused", Origin(Reply::nothing)),
    ("500", Origin(|| Reply::html("broken").with_status(500))),
    ("slow", Origin(|| Reply::html("late").after(DEADLINE * 3))),
    ("body cut off", Origin(|| Reply::truncated("<h1>half a"))),
    ("refused, and so is Redis", Both),
];

const SHARDS: [(&str, Trouble); 8] = [
    ("no fault", Nothing),
    ("connection refused", Redis("refuse")),
    ("server down", Down),
    ("reply lost", Redis("lost-reply")),
    ("half of a pipeline", Redis("half-pipeline")),
    ("connection refused once", Once("refuse")),
    ("reply lost once", Once("lost-reply")),
    ("server restarted", Restarted),
];

#[tokio::test]
async fn lasting_redis_faults_have_the_documented_results() {
    tried("redis", Layout::Book, &REDIS).await;
}

#[tokio::test]
async fn single_redis_faults_have_the_documented_results() {
    tried("once", Layout::Book, &ONCE).await;
}

#[tokio::test]
async fn origin_faults_have_the_documented_results() {
    tried("origin", Layout::Book, &ORIGIN).await;
}

const CLUSTER: [(&str, Trouble); 4] = [
    ("no fault", Nothing),
    ("slots on their way", Moving),
    ("connection refused once", Once("refuse")),
    ("reply lost once", Once("lost-reply")),
];

#[tokio::test]
async fn faults_of_a_cluster_have_the_documented_results() {
    tried("cluster", Layout::Cluster, &CLUSTER).await;
}

#[tokio::test]
async fn faults_in_the_sharded_layout_have_the_documented_results() {
    tried("shards", Layout::Shards, &SHARDS).await;
}

/// Tests every action under every fault, and compares the results with the table `name` of docs/faults.md.
async fn tried(name: &str, layout: Layout, troubles: &[(&'static str, Trouble)]) {
    let usual = stream::iter(ACTIONS).then(async |(action, _)| (action, without_fault(layout, action).await));
    let usual: Vec<_> = usual.collect().await;
    let fields = troubles.iter().flat_map(|(label, trouble)| usual.iter().map(|usual| (*label, *trouble, *usual)));
    let (own, shared): (Vec<_>, Vec<_>) = fields.partition(|(_, trouble, _)| matches!(trouble, Down | Restarted));
    let mut fields = Vec::new();
    // The fields that need a server of their own share one, one after another.
    let mut server = OwnServer::start();
    for (label, trouble, usual) in own {
        let store = layout.store_on(&server.unused_database()).await;
        fields.push((label, usual.0, tried_one(store, trouble, usual, Some(&mut server)).await));
    }
    let shared = shared.into_iter().map(async |(label, trouble, usual)| {
        (label, usual.0, tried_one(layout.store().await, trouble, usual, None).await)
    });
    fields.extend(stream::iter(shared).buffer_unordered(layout.at_once()).collect::<Vec<_>>().await);

    let broken: Vec<_> = fields
        .iter()
        .filter_map(|(label, action, field)| field.as_ref().err().map(|why| format!("{label}, {action:?}: {why}")))
        .collect();
    assert!(broken.is_empty(), "{} fields break a rule:\n{}", broken.len(), broken.join("\n"));
    let labels: Vec<_> = troubles.iter().map(|(label, _)| *label).collect();
    let mut table = Table::new(&labels);
    for (action, title) in ACTIONS {
        let of = |label: &&str| fields.iter().find(|(other, of, _)| other == label && *of == action);
        let field = |label| of(label).and_then(|(.., field)| field.clone().ok()).expect("every field was tried");
        table.row(title, labels.iter().map(field));
    }
    table.hold("docs/faults.md", name);
}

/// The outcome; `Err` names the broken rule.
async fn tried_one(
    store: Store,
    trouble: Trouble,
    usual: (Action, u64),
    own: Option<&mut OwnServer>,
) -> Result<String, String> {
    let tried = AssertUnwindSafe(judge(store, trouble, usual, own)).catch_unwind().await;
    tried.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    })
}

/// Number of requests that the action sends to Redis without a fault.
async fn without_fault(layout: Layout, action: Action) -> u64 {
    let world = World::new(layout.store().await);
    action.prepare(&world).await;
    let before = world.store.gateway.received();
    action.act(&world).await;
    world.store.gateway.received() - before
}

/// Tests an action under `trouble`, asserts the rules, and returns the field of the table. Without a fault, the action
/// sends `ever` requests to Redis.
async fn judge(
    store: Store,
    trouble: Trouble,
    (action, ever): (Action, u64),
    mut own: Option<&mut OwnServer>,
) -> String {
    let mut world = World::new(store);
    action.prepare(&world).await;
    world.begin(trouble, own.as_deref_mut()).await;
    let before = world.store.gateway.received();
    let seen = action.act(&world).await;
    let sent = world.store.gateway.received() - before;
    world.end(trouble, own).await;

    let done = action.done(&world).await;
    let field = tell(action, &seen, done);
    let said = format!("{} {:?} {}, done {done:?}", seen.status, seen.headers, String::from_utf8_lossy(&seen.body));
    if seen.status == 503 {
        assert_eq!(seen.header("retry-after"), "5", "{said}");
    }
    if action.is_page() && !matches!(trouble, Origin(_) | Both) {
        assert_eq!(seen.status, 200, "a page needs no Redis: {said}");
    }
    assert!(sent <= 2 * ever + 1, "{sent} requests instead of {ever}: {said}");
    if action.is_read() {
        // The lookup of the page may have taken its lease.
        for lease in world.store.raw(&["KEYS", "render:*"]).await.as_array().into_iter().flatten() {
            world.store.raw(&["DEL", lease.as_str().expect("a key")]).await;
        }
        world.store.clock.advance(Duration::from_secs(6));
        action.act(&world).await;
        let again = action.act(&world).await;
        assert_eq!(again.status, 200, "after the fault: {again:?}");
        assert!(!action.is_page() || again.header("cache-status").contains("; hit"), "after the fault: {again:?}");
        action.check(&world).await;
        return field;
    }
    assert!(done <= Done::Once, "{said}");
    let is_claimed = seen.status < 400 && !action.is_cron() && action != Action::FormOrder;
    assert!(!is_claimed || done == Done::Once, "{said}");
    // The visitor, the shop or the cron tries again.
    if done < Done::Once || seen.status >= 400 {
        let again = action.repair(&world).await;
        assert!(again.status < 400, "the retry: {again:?}");
        // A guest without a cookie is a new guest.
        assert!(action == Action::CartSet || action.done(&world).await == Done::Once, "after the retry of {said}");
    }
    action.check(&world).await;
    field
}

/// A field of the table.
fn tell(action: Action, seen: &Seen, done: Done) -> String {
    let status = seen.status;
    if action.is_page() {
        let cache = seen.header("cache-status");
        let ttl = cache.split_once("ttl=").map(|(_, ttl)| ttl.starts_with('-'));
        return match ttl {
            Some(true) => format!("{status} stale"),
            Some(false) => format!("{status} stored"),
            None if status == 200 => "200 origin".to_owned(),
            None => status.to_string(),
        };
    }
    let told = match done {
        Done::Once => "done",
        Done::Not => "not done",
        _ => "half done",
    };
    match action {
        Action::Session if status == 200 && seen.json()["user"].is_null() => "200, nobody".to_owned(),
        Action::Session | Action::Row => status.to_string(),
        _ if !action.is_cron() => format!("{status}, {told}"),
        _ if done == Done::Once => "done".to_owned(),
        _ => "the next run".to_owned(),
    }
}

impl World {
    async fn begin(&mut self, trouble: Trouble, own: Option<&mut OwnServer>) {
        let gateway = self.store.gateway.clone();
        let fault = |name: &str| name.parse::<Fault>().unwrap_or_else(|error| panic!("{error}"));
        match trouble {
            Nothing => {}
            Redis(name) => gateway.set_fault(Some(fault(name))),
            Moving => cluster::begin_moving(self.store.cluster()),
            Once(name) => gateway.set_fault_for(fault(name), FaultScope::Next(1)),
            Stale => gateway.set_fault(Some(Fault::StaleReads(Store::unused_database()))),
            Down => own.expect("a server").0.stop(),
            Restarted => {
                own.expect("a server").0.start_again().expect("the server again");
                // The connections of the gateways are new ones, too.
                connected(&self.store).await;
            }
            Origin(reply) => self.origin.answer(reply()),
            Both => {
                gateway.set_fault(Some(Fault::Refuse));
                self.origin.answer(Reply::nothing());
            }
        }
        match trouble {
            Redis(SLOW) | Once(SLOW) => self.set_deadlines(DEADLINE, PATIENCE),
            Origin(_) => self.set_deadlines(PATIENCE, DEADLINE),
            _ => {}
        }
    }

    async fn end(&mut self, trouble: Trouble, own: Option<&mut OwnServer>) {
        if matches!(trouble, Moving) {
            cluster::end_moving(self.store.cluster());
        }
        self.store.gateway.set_fault(None);
        self.origin_works();
        if let (Down, Some(own)) = (trouble, own) {
            own.0.start_again().expect("the server again");
            connected(&self.store).await;
        }
        self.set_deadlines(PATIENCE, PATIENCE);
    }
}

/// Waits until the gateways have a connection to the server again.
async fn connected(store: &Store) {
    let ping = async |redis: &Client| redis.run::<()>(Command::read("PING")).await.is_ok();
    eventually("the gateways are connected", async || ping(&store.redis).await && ping(&store.aside).await).await;
}

/// A server that is stopped and started, and keeps its data.
struct OwnServer(Server, u32);

impl OwnServer {
    fn start() -> Self {
        let dir = std::env::temp_dir().join(format!(
            "edgefront-faults-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&dir).expect("a directory");
        let options = ServerOptions { dir: Some(dir), databases: 64, ..ServerOptions::default() };
        Self(Server::start(options).expect("a server"), 0)
    }

    fn unused_database(&mut self) -> String {
        self.1 += 1;
        format!("{}/{}", self.0.url(), self.1 - 1)
    }
}
