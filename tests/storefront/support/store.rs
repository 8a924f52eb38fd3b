//! A database of a real server, or a cluster of three servers, behind a gateway of its own. Two tests never share one.

use std::{
    env,
    fs::OpenOptions,
    io::Write as _,
    num::NonZeroU16,
    rc::Rc,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use edgefront::{
    App,
    config::{Config, RedisConfig},
    ports::{html::LolHtml, time::Clock},
    schema::{keys::Keys, redis::Redis, scripts},
};
use edgefront_gateway::{
    Counts, Gateway, Options, RegionOptions,
    server::{Server, ServerCluster, ServerOptions},
};
use http::HeaderValue;
use serde_json::{Value, json};
use upstash_rest::Credentials;

use super::{NativeFetch, TestClock, cluster::OwnCluster, layout};

/// Databases of the server. Each store takes a new one, so there must be more databases than stores.
const DATABASES: u32 = 4096;
const TOKEN: &str = "token-of-the-tests";
/// If this variable is set, all tests run on clusters. `cargo xtask test --cluster` sets it to the path of a file, and
/// each such test appends its name.
const CLUSTER: &str = "EDGEFRONT_TEST_CLUSTER";
/// Shards of the sessions on a cluster. Each of the three servers has at least one.
const SHARDS: NonZeroU16 = NonZeroU16::new(4).expect("not 0");
/// Deadline of a call. Long, because the machine may compile beside the tests. Tests of deadlines set their own.
const PATIENCE: Duration = Duration::from_secs(20);

/// The server of all tests in this process. It ends with the process.
static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let options = ServerOptions { databases: DATABASES, ..ServerOptions::default() };
    Server::start(options).unwrap_or_else(|error| panic!("{error}"))
});

/// An empty database of one test.
pub struct Store {
    /// The client under test.
    pub redis: Redis,
    /// The gateway between `redis` and the server. It counts requests and injects faults.
    pub gateway: Arc<Gateway>,
    /// Stands still until moved. `redis` measures its deadlines in real time.
    pub clock: TestClock,
    /// Another client, past `gateway`: its requests are not counted and meet no fault. For arranging and asserting.
    pub aside: Redis,
    aside_gateway: Arc<Gateway>,
    client: reqwest::Client,
    /// The last field, because it is dropped last: the clients must have gone before another store gets the cluster.
    cluster: Option<OwnCluster>,
}

impl Store {
    /// In the layout of the run: on a cluster if [`CLUSTER`] is set, otherwise in the book's layout.
    pub async fn new() -> Self {
        if env::var_os(CLUSTER).is_some() { Self::spread().await } else { Self::book().await }
    }

    /// Always in the book's layout. For tests with data of other code, and for tests of the order of all sessions.
    pub async fn book() -> Self {
        Self::on(&Self::unused_database()).await
    }

    /// In the book's layout, in the database at `redis_url`.
    pub async fn on(redis_url: &str) -> Self {
        Self::with(Keys::BOOK, redis_url, None).await
    }

    /// In [`SHARDS`] shards of one database. For tests that read all data at one moment.
    pub async fn sharded() -> Self {
        Self::sharded_on(&Self::unused_database()).await
    }

    /// As [`Store::sharded`], in the database at `redis_url`.
    pub async fn sharded_on(redis_url: &str) -> Self {
        Self::with(Keys::new(SHARDS), redis_url, None).await
    }

    /// The URL of an unused database of the tests' server.
    pub fn unused_database() -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let database = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(database < DATABASES, "more stores than databases: raise DATABASES");
        format!("{}/{database}", SERVER.url())
    }

    /// In [`SHARDS`] shards of a cluster.
    pub async fn spread() -> Self {
        let cluster = OwnCluster::get().await;
        let url = cluster.url();
        let store = Self::with(Keys::new(SHARDS), &url, Some(cluster)).await;
        store.load_scripts().await;
        note_cluster();
        store
    }

    /// As [`Store::spread`], on a given cluster.
    pub async fn on_cluster(cluster: &ServerCluster) -> Self {
        Self::with(Keys::new(SHARDS), &cluster.url(), None).await
    }

    /// The servers of a store on a cluster.
    pub fn cluster(&self) -> &ServerCluster {
        self.cluster.as_ref().expect("a store on a cluster").servers()
    }

    /// Loads all scripts on all servers. Otherwise chance decides which server knows a script from an earlier test.
    pub async fn load_scripts(&self) {
        let scripts: Vec<_> = scripts::ALL.iter().map(|script| ["SCRIPT", "LOAD", script.source]).collect();
        let url = format!("{}/pipeline", self.gateway.url());
        let load = self.client.post(url).bearer_auth(TOKEN).body(json!(scripts).to_string());
        let answer = load.send().await.expect("the gateway answers").text().await.expect("a whole answer");
        assert!(!answer.contains("error"), "{answer}");
    }

    /// In the book's layout, in a region: `redis` reads from `near` and writes to the primary, and `aside` uses the
    /// primary. A read waits at most `sync_wait` for the state of its sync token.
    pub async fn in_region(near: &Server, primary: &Server, sync_wait: Duration) -> Self {
        let region = RegionOptions { lag: Some(Duration::ZERO), sync_wait, ..RegionOptions::new(primary.url()) };
        let options = Options { region: Some(region), ..Options::new(near.url(), TOKEN) };
        let gateway = Arc::new(Gateway::start(options).await.unwrap_or_else(|error| panic!("{error}")));
        Self { redis: client(&gateway, Keys::BOOK), gateway, ..Self::with(Keys::BOOK, &primary.url(), None).await }
    }

    async fn with(keys: Keys, url: &str, cluster: Option<OwnCluster>) -> Self {
        let (gateway, aside_gateway) = (gateway(url).await, gateway(url).await);
        Self {
            redis: client(&gateway, keys),
            aside: client(&aside_gateway, keys),
            gateway,
            aside_gateway,
            clock: TestClock::standing(),
            client: reqwest::Client::builder().no_proxy().build().expect("a client"),
            cluster,
        }
    }

    /// The number of additional requests of a call whose script uses both a session and data of another slot: 0 in the
    /// book's layout, otherwise 1.
    pub fn apart(&self) -> u64 {
        self.redis.keys().is_sharded().into()
    }

    /// The number of shards. Some calls take a command for each.
    pub fn shards(&self) -> u64 {
        self.redis.keys().shard_count().get().into()
    }

    /// Runs a command past the counted gateway: `store.raw(&["ZSCORE", "recent:", token])`. The command has keys of the
    /// book's layout, in every layout of the store. The reply is JSON. Bytes that are not UTF-8 are lost: use `aside`
    /// for them.
    ///
    /// Panics if Redis refuses the command.
    pub async fn raw(&self, command: &[&str]) -> Value {
        let (commands, gather) = layout::translate(self.redis.keys(), command);
        let mut answers = Vec::new();
        for command in &commands {
            answers.push(self.send(command).await);
        }
        gather(command, answers)
    }

    async fn send(&self, command: &[String]) -> Value {
        let request = self.client.post(self.aside_gateway.url()).bearer_auth(TOKEN).body(json!(command).to_string());
        let answer = request.send().await.expect("the gateway answers").bytes().await.expect("a whole answer");
        let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert!(answer.get("error").is_none(), "{command:?}: {}", answer["error"]);
        answer["result"].take()
    }

    /// The number of requests and commands that `redis` or a shop has sent.
    pub fn counts(&self) -> Counts {
        let Counts { requests, commands } = self.gateway.counts();
        let scripts = if self.cluster.is_some() { scripts::ALL.len() as u64 } else { 0 };
        // Without those of [`Store::load_scripts`].
        Counts { requests: requests - scripts.min(1), commands: commands - scripts }
    }

    /// The variables of an edgefront on this store. `more` replaces defaults.
    pub fn variables(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let (url, shards) = (self.gateway.url(), self.redis.keys().shard_count().to_string());
        let defaults = [
            ("UPSTASH_REDIS_REST_URL", url.as_str()),
            ("UPSTASH_REDIS_REST_TOKEN", TOKEN),
            ("SESSION_KEYS", SESSION_KEYS),
            ("SERVICE_KEY", SERVICE_KEY),
            ("ORIGIN_KEY", ORIGIN_KEY),
            ("SHARDS", &shards),
            // Instead of 300 ms, because the machine may be busy with other tests.
            ("REDIS_TIMEOUT_MS", "5000"),
            ("PAGE_LOCATION_MS", "20000"),
            // Counts are written after each response. Otherwise the cost of a call would depend on the time since the
            // last write.
            ("TRAFFIC_INTERVAL", "0"),
        ];
        let is_new = |name: &str| more.iter().all(|(other, _)| *other != name);
        let defaults = defaults.into_iter().filter(|(name, _)| is_new(name));
        more.iter().copied().chain(defaults).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// An edgefront on this store and its clock, without a database.
    ///
    /// Panics if a variable is invalid.
    pub fn app(&self, variables: &[(&str, &str)]) -> Rc<App> {
        let config = config(&self.variables(variables));
        Rc::new(app(config, self.clock.clone()))
    }
}

/// The secrets of every edgefront under test.
pub const SESSION_KEYS: &str = "the-session-key-of-the-tests-0123456789";
pub const SERVICE_KEY: &str = "the-service-key-of-the-tests";
pub const ORIGIN_KEY: &str = "the-origin-key-of-the-tests";

pub fn config(variables: &[(String, String)]) -> Config {
    let find = |name: &str| variables.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
    Config::from_lookup(find).unwrap_or_else(|errors| panic!("{errors}"))
}

/// An edgefront on `clock`. Its client of Redis measures deadlines in real time.
pub fn app(config: Config, clock: impl Clock + 'static) -> App {
    let fetch = Rc::new(NativeFetch::new());
    let RedisConfig { credentials, timeout, keys, has_read_regions } = config.redis.clone();
    let redis = Redis::new(fetch.clone(), Rc::new(TestClock::ticking()), credentials, timeout, keys);
    App {
        redis: redis.with_read_regions(has_read_regions).into(),
        ..App::new(config, fetch, Rc::new(clock), Rc::new(LolHtml), None)
    }
}

/// Appends the name of this test to the file of [`CLUSTER`]. The thread has the test's name.
fn note_cluster() {
    let Some(file) = env::var_os(CLUSTER) else { return };
    let mut file =
        OpenOptions::new().append(true).open(file).expect("EDGEFRONT_TEST_CLUSTER: use cargo xtask test --cluster");
    let thread = thread::current();
    // One write, because other tests append at the same time.
    file.write_all(format!("{}\n", thread.name().unwrap_or_default()).as_bytes()).expect("the file is written");
}

async fn gateway(redis_url: &str) -> Arc<Gateway> {
    Arc::new(Gateway::start(Options::new(redis_url, TOKEN)).await.unwrap_or_else(|error| panic!("{error}")))
}

fn client(gateway: &Gateway, keys: Keys) -> Redis {
    let authorization = HeaderValue::try_from(format!("Bearer {TOKEN}")).expect("ASCII");
    let credentials = Credentials { url: gateway.url(), authorization };
    Redis::new(Rc::new(NativeFetch::new()), Rc::new(TestClock::ticking()), credentials, PATIENCE, keys)
}
