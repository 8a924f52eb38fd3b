//! A database of a real server, or a cluster of three, behind a gateway of its own. No two tests share one.

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

/// Databases of the one server: more than there are tests, since none is used twice.
const DATABASES: u32 = 4096;
const TOKEN: &str = "token-of-the-tests";
/// The variable with which all tests run on clusters; `cargo xtask test --cluster` sets it to a file that names those
/// which did.
const CLUSTER: &str = "EDGEFRONT_TEST_CLUSTER";
/// Shards of the sessions there: on each of three servers is one at least.
const SHARDS: NonZeroU16 = NonZeroU16::new(4).expect("not 0");
/// The deadline of a call on a machine that compiles beside the tests. Tests of deadlines set their own.
const PATIENCE: Duration = Duration::from_secs(20);

/// The one server of this process; it ends with it.
static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let options = ServerOptions { databases: DATABASES, ..ServerOptions::default() };
    Server::start(options).unwrap_or_else(|error| panic!("{error}"))
});

/// A database of its own, empty at first.
pub struct Store {
    /// The client under test.
    pub redis: Redis,
    /// Between `redis` and the server: counts requests and makes faults.
    pub gateway: Arc<Gateway>,
    /// Stands still until moved; `redis` keeps its deadlines in real time.
    pub clock: TestClock,
    /// Past `gateway`: neither counted nor disturbed by faults. For arranging and asserting.
    pub aside: Redis,
    aside_gateway: Arc<Gateway>,
    client: reqwest::Client,
    /// The last field: who gets it next must be alone.
    cluster: Option<OwnCluster>,
}

impl Store {
    /// In the layout that the tests run in: the book's, or spread over a cluster, where the variable [`CLUSTER`] is
    /// set.
    pub async fn new() -> Self {
        if env::var_os(CLUSTER).is_some() { Self::spread().await } else { Self::book().await }
    }

    /// In the book's layout, whatever the tests run in: for what other code of the book writes, and for the order of
    /// all sessions.
    pub async fn book() -> Self {
        Self::on(&Self::unused_database()).await
    }

    /// In the book's layout, in the database at this URL.
    pub async fn on(redis_url: &str) -> Self {
        Self::with(Keys::BOOK, redis_url, None).await
    }

    /// Over [`SHARDS`] shards, all of them in one database: for who reads all of it at one moment.
    pub async fn sharded() -> Self {
        Self::sharded_on(&Self::unused_database()).await
    }

    /// As [`Store::sharded`], in the database at this URL.
    pub async fn sharded_on(redis_url: &str) -> Self {
        Self::with(Keys::new(SHARDS), redis_url, None).await
    }

    /// The URL of an empty database of the server of all tests.
    pub fn unused_database() -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let database = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(database < DATABASES, "more stores than databases: raise DATABASES");
        format!("{}/{database}", SERVER.url())
    }

    /// Over [`SHARDS`] shards on a cluster, whatever the tests run in.
    pub async fn spread() -> Self {
        let cluster = OwnCluster::get().await;
        let url = cluster.url();
        let store = Self::with(Keys::new(SHARDS), &url, Some(cluster)).await;
        store.load_scripts().await;
        note_cluster();
        store
    }

    /// Over [`SHARDS`] shards on this cluster.
    pub async fn on_cluster(cluster: &ServerCluster) -> Self {
        Self::with(Keys::new(SHARDS), &cluster.url(), None).await
    }

    /// The servers of [`Store::spread`].
    pub fn cluster(&self) -> &ServerCluster {
        self.cluster.as_ref().expect("a store on a cluster").servers()
    }

    /// Makes every script known to all servers: which of them a test has asked before would be a matter of chance.
    pub async fn load_scripts(&self) {
        let scripts: Vec<_> = scripts::ALL.iter().map(|script| ["SCRIPT", "LOAD", script.source]).collect();
        let url = format!("{}/pipeline", self.gateway.url());
        let load = self.client.post(url).bearer_auth(TOKEN).body(json!(scripts).to_string());
        let answer = load.send().await.expect("the gateway answers").text().await.expect("a whole answer");
        assert!(!answer.contains("error"), "{answer}");
    }

    /// In the book's layout, in a region: `redis` reads from `near` and writes to the primary, `aside` is at the primary.
    /// A read waits so long for its sync token.
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

    /// Number of requests that a call takes beyond those in the book's layout, if its script needs a session and data
    /// in another slot.
    pub fn apart(&self) -> u64 {
        self.redis.keys().is_sharded().into()
    }

    /// Number of shards: some calls take a command for each.
    pub fn shards(&self) -> u64 {
        self.redis.keys().shard_count().get().into()
    }

    /// Runs a command past the counted gateway: `store.raw(&["ZSCORE", "recent:", token])`, in the book's layout
    /// whatever the store's is. Strings, numbers, null and lists come as JSON; bytes that are not UTF-8 are lost (use
    /// `aside` for them).
    ///
    /// Panics if Redis refuses it.
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

    /// Number of requests and commands that `redis` (or a shop) has sent until now.
    pub fn counts(&self) -> Counts {
        let Counts { requests, commands } = self.gateway.counts();
        let scripts = if self.cluster.is_some() { scripts::ALL.len() as u64 } else { 0 };
        // But for the scripts of the start.
        Counts { requests: requests - scripts.min(1), commands: commands - scripts }
    }

    /// The variables of an edgefront that uses this store; `more` comes first.
    pub fn variables(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let (url, shards) = (self.gateway.url(), self.redis.keys().shard_count().to_string());
        let defaults = [
            ("UPSTASH_REDIS_REST_URL", url.as_str()),
            ("UPSTASH_REDIS_REST_TOKEN", TOKEN),
            ("SESSION_KEYS", SESSION_KEYS),
            ("SERVICE_KEY", SERVICE_KEY),
            ("ORIGIN_KEY", ORIGIN_KEY),
            ("SHARDS", &shards),
            // Five seconds and not 300 ms: the machine may be busy with other tests.
            ("REDIS_TIMEOUT_MS", "5000"),
            ("PAGE_LOCATION_MS", "20000"),
            // Tests assert what a call costs: whether two seconds have passed since the last one must not matter.
            ("TRAFFIC_INTERVAL", "0"),
        ];
        let is_new = |name: &str| more.iter().all(|(other, _)| *other != name);
        let defaults = defaults.into_iter().filter(|(name, _)| is_new(name));
        more.iter().copied().chain(defaults).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// An edgefront on this store without a database, at the store's time.
    ///
    /// Panics if a variable is wrong.
    pub fn app(&self, variables: &[(&str, &str)]) -> Rc<App> {
        let config = config(&self.variables(variables));
        Rc::new(app(config, self.clock.clone()))
    }
}

/// The secrets of every edgefront under test.
pub const SESSION_KEYS: &str = "the-session-key-of-the-tests-0123456789";
pub const SERVICE_KEY: &str = "the-service-key-of-the-tests";
pub const ORIGIN_KEY: &str = "the-origin-key-of-the-tests";

/// The variables as configuration.
pub fn config(variables: &[(String, String)]) -> Config {
    let find = |name: &str| variables.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
    Config::from_lookup(find).unwrap_or_else(|errors| panic!("{errors}"))
}

/// An app whose Redis keeps its deadlines in real time, while all else goes by `clock`.
pub fn app(config: Config, clock: impl Clock + 'static) -> App {
    let fetch = Rc::new(NativeFetch::new());
    let RedisConfig { credentials, timeout, keys, has_read_regions } = config.redis.clone();
    let redis = Redis::new(fetch.clone(), Rc::new(TestClock::ticking()), credentials, timeout, keys);
    App {
        redis: redis.with_read_regions(has_read_regions).into(),
        ..App::new(config, fetch, Rc::new(clock), Rc::new(LolHtml), None)
    }
}

/// Notes that this test, whose name its thread has, runs on a cluster.
fn note_cluster() {
    let Some(file) = env::var_os(CLUSTER) else { return };
    let mut file =
        OpenOptions::new().append(true).open(file).expect("EDGEFRONT_TEST_CLUSTER: use cargo xtask test --cluster");
    let thread = thread::current();
    // One write, so that no other test's name comes into it.
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
