//! A running edgefront with its own store and origin, native or in workerd. Scenarios use both in the same way.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use http::Method;

use super::{Store, TestOrigin, native::Native, workerd::Workerd};

/// Time limit of [`eventually`]. Long, because the machine may compile beside the tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running edgefront. It ends when dropped.
pub struct Shop {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// Follows no redirect and keeps no cookie.
    pub client: reqwest::Client,
    platform: Platform,
    pub origin: Rc<TestOrigin>,
    pub store: Rc<Store>,
}

/// The two tiers of a shop.
pub struct Tiers<const N: usize> {
    /// The isolates that visitors reach.
    pub edge: [Shop; N],
    /// The home tier as an HTTP server. In production, no visitor reaches it.
    pub home: Shop,
    /// The home tier's entry point for the edge tier. In production, only the service binding reaches it.
    pub entry: Shop,
}

impl<const N: usize> Tiers<N> {
    /// The requests that reached the home tier since the last call. Waits for all background work first.
    pub async fn hops(&self) -> Vec<String> {
        for shop in &self.edge {
            shop.settled().await;
        }
        self.home.settled().await;
        self.home.visit("/test/hops").await.json().await.expect("a list")
    }

    /// Sets a fault of the home tier, or none:
    /// - `down`: no response; `ill`: an error of the platform; `portal`: the page of another Worker; `silent`: an endless
    ///   wait;
    /// - `stranger`: it refuses the edge tier; `default`: its entry point for visitors answers;
    /// - `elsewhere`: another isolate executes a POST; `elsewhere-later`: that isolate answers as soon as the fault is `elsewhere`;
    /// - `newer`: the headers of another version;
    /// - `halts`, `ends`: in the middle of a page that it hands over; `breaks`: in the middle of any body.
    pub async fn set_home_fault(&self, fault: &str) {
        self.home.set("home", fault).await;
    }
}

enum Platform {
    Native(Native),
    Workerd(Rc<Workerd>),
}

impl Shop {
    /// Starts a native shop without a database. `variables` replace those of [`Store::variables`]. `{origin}` in a
    /// value is the address of the test origin, the default of `ORIGIN_URL`. An empty `ORIGIN_URL` starts the demo
    /// shop.
    ///
    /// Panics if a variable is invalid.
    pub async fn native(variables: &[(&str, &str)]) -> Self {
        Self::native_on(Store::new().await, variables)
    }

    /// As [`Shop::native`], always in the book's layout.
    pub async fn book(variables: &[(&str, &str)]) -> Self {
        Self::native_on(Store::book().await, variables)
    }

    /// As [`Shop::native`], always on a cluster.
    pub async fn spread(variables: &[(&str, &str)]) -> Self {
        Self::native_on(Store::spread().await, variables)
    }

    /// As [`Shop::native`], on a given store.
    pub fn native_on(store: Store, variables: &[(&str, &str)]) -> Self {
        let origin = TestOrigin::start();
        let native = Native::start(&store, &with_origin(&store, &origin, variables));
        let (origin, store) = (Rc::new(origin), Rc::new(store));
        Self { url: native.url(), client: client(), platform: Platform::Native(native), origin, store }
    }

    /// Starts a shop in workerd. It has a migrated D1 database if the variables require one. Variables are as in
    /// [`Shop::native`].
    ///
    /// Panics if the Worker does not start.
    pub async fn workerd(variables: &[(&str, &str)]) -> Self {
        Self::try_workerd(variables).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Shop::workerd`], with the rate limits of `wrangler.toml`. A request without `CF-Connecting-IP` counts for
    /// 127.0.0.1.
    pub async fn limited(variables: &[(&str, &str)]) -> Self {
        Self::in_workerd(Store::new().await, variables, true).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Shop::workerd`], for a Worker that may refuse to start. The error has its log and the reason.
    pub async fn try_workerd(variables: &[(&str, &str)]) -> Result<Self, String> {
        Self::in_workerd(Store::new().await, variables, false).await
    }

    /// As [`Shop::workerd`], on a given store.
    pub async fn workerd_on(store: Store, variables: &[(&str, &str)]) -> Self {
        Self::in_workerd(store, variables, false).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn in_workerd(store: Store, variables: &[(&str, &str)], limited: bool) -> Result<Self, String> {
        Self::at_location(Rc::new(store), Rc::new(TestOrigin::start()), variables, limited).await
    }

    /// Starts the same shop at another location: a Worker in its own process, with the store and the origin of `self`.
    ///
    /// Panics if the Worker does not start.
    pub async fn elsewhere(&self, variables: &[(&str, &str)]) -> Self {
        let (store, origin) = (self.store.clone(), self.origin.clone());
        Self::at_location(store, origin, variables, false).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn at_location(
        store: Rc<Store>,
        origin: Rc<TestOrigin>,
        variables: &[(&str, &str)],
        limited: bool,
    ) -> Result<Self, String> {
        let workerd = Rc::new(Workerd::start(&with_origin(&store, &origin, variables), limited, 1).await?);
        Ok(Self::isolate(&workerd, 0, origin, store))
    }

    /// Starts `N` isolates of another location, with the store and the origin of `self`.
    ///
    /// Panics if the Worker does not start.
    pub async fn isolates_elsewhere<const N: usize>(&self, variables: &[(&str, &str)]) -> [Self; N] {
        let workerd = Workerd::start(&with_origin(&self.store, &self.origin, variables), false, N).await;
        let workerd = Rc::new(workerd.unwrap_or_else(|error| panic!("{error}")));
        std::array::from_fn(|number| Self::isolate(&workerd, number, self.origin.clone(), self.store.clone()))
    }

    /// Starts `N` isolates of an edge tier, and its home tier, with the store and the origin of `self`. `limited`: with
    /// the rate limits of `wrangler.toml`.
    ///
    /// Panics if a Worker does not start.
    pub async fn tiers<const N: usize>(&self, variables: &[(&str, &str)], limited: bool) -> Tiers<N> {
        let home = with_origin(&self.store, &self.origin, variables);
        let is_of_redis = |name: &str| name.starts_with("UPSTASH_");
        let edge: Vec<_> = home.iter().filter(|(name, _)| !is_of_redis(name)).cloned().collect();
        // The home tier is at another location, so it must not share the location cache of the edge tier.
        let mut home = home;
        home.retain(|(name, _)| name != "PAGE_LOCATION_MS");
        home.push(("PAGE_LOCATION_MS".to_owned(), "0".to_owned()));
        let workerd = Workerd::start_tiers(&edge, &home, N, limited).await;
        let workerd = Rc::new(workerd.unwrap_or_else(|error| panic!("{error}")));
        let isolate = |number| Self::isolate(&workerd, number, self.origin.clone(), self.store.clone());
        Tiers { edge: std::array::from_fn(isolate), home: isolate(N), entry: isolate(N + 1) }
    }

    fn isolate(workerd: &Rc<Workerd>, number: usize, origin: Rc<TestOrigin>, store: Rc<Store>) -> Self {
        let (url, platform) = (workerd.urls[number].clone(), Platform::Workerd(workerd.clone()));
        Self { url, client: client(), platform, origin, store }
    }

    /// A request to `path`, which may have a query.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// A GET of `path`, which may have a query.
    pub fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.request(Method::GET, path)
    }

    /// Sends a GET. Panics if there is no response.
    pub async fn visit(&self, path: &str) -> reqwest::Response {
        self.get(path).send().await.expect("an answer")
    }

    /// Runs a cron trigger to its end.
    pub async fn cron(&self, cron: &str) {
        let path = format!("/cdn-cgi/local/scheduled?cron={}", cron.replace(' ', "+"));
        let answer = self.visit(&path).await;
        assert!(answer.status().is_success(), "{cron}: {}\n{}", answer.status(), self.logs().join("\n"));
    }

    /// Waits until the background work of all responses has ended.
    pub async fn settled(&self) {
        eventually("the work behind the answers ends", async || self.progress().await.background == 0).await;
    }

    /// The number of requests to Redis before the last response. Only valid if one visit at a time is under way.
    pub async fn blocking_requests(&self) -> u64 {
        self.progress().await.blocking
    }

    /// As [`Shop::blocking_requests`]; the second number counts those among them that a read region forwarded to the
    /// primary. Native only.
    pub async fn blocking_and_forwarded(&self) -> (u64, u64) {
        let progress = self.progress().await;
        (progress.blocking, progress.forwarded)
    }

    /// Bytes from Redis. In workerd only.
    pub async fn received_bytes(&self) -> u64 {
        self.progress().await.received
    }

    /// Sets a fault of the location cache for this isolate: `lost`, `broken`, or none. In workerd only.
    pub async fn set_cache_fault(&self, fault: &str) {
        self.set("cache", fault).await;
    }

    /// Waits until a log line contains `text`, and returns the log. The log of a Worker may arrive after the response.
    pub async fn logged(&self, text: &str) -> String {
        eventually(&format!("the log says {text:?}"), async || self.logs().iter().any(|line| line.contains(text)))
            .await;
        self.logs().join("\n")
    }

    /// Runs an SQL statement on the Worker's D1 database, and returns the rows. In workerd only.
    ///
    /// Panics if the statement fails.
    pub async fn sql(&self, statement: &str) -> Vec<serde_json::Value> {
        let request = self.request(Method::POST, "/test/sql").body(statement.to_owned());
        let answer = request.send().await.expect("an answer").text().await.expect("text");
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{statement}: {answer}"))
    }

    /// Sets the Worker's clock to the real time plus `offset` milliseconds. In workerd only.
    pub async fn set_clock(&self, offset: i64) {
        self.set("clock", &offset.to_string()).await;
    }

    /// Sets a fault of the Worker's D1 database: `refused`, `reply-lost`, or none. In workerd only.
    pub async fn set_database_fault(&self, fault: &str) {
        self.set("database", fault).await;
    }

    /// Sets a value of the test bed around the Worker.
    async fn set(&self, name: &str, value: &str) {
        let answer = self.request(Method::POST, &format!("/test/{name}")).body(value.to_owned()).send().await;
        assert_eq!(answer.expect("an answer").status(), 204);
    }

    /// Ends the Worker's process with SIGKILL, also during a request. In workerd only.
    pub async fn kill(&self) {
        if let Platform::Workerd(workerd) = &self.platform {
            workerd.kill();
        }
        eventually("the Worker is gone", async || self.get("/test/progress").send().await.is_err()).await;
    }

    /// The log lines until now.
    pub fn logs(&self) -> Vec<String> {
        match &self.platform {
            Platform::Native(native) => native.logs(),
            Platform::Workerd(workerd) => workerd.logs(),
        }
    }

    async fn progress(&self) -> Progress {
        match &self.platform {
            Platform::Native(native) => native.progress(),
            Platform::Workerd(_) => {
                let answer = self.visit("/test/progress").await.bytes().await.expect("the progress");
                serde_json::from_slice(&answer).expect("JSON")
            }
        }
    }
}

/// Counters of a shop.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
pub struct Progress {
    /// Background tasks that have not ended.
    pub background: u64,
    /// Requests to Redis before the last response.
    pub blocking: u64,
    /// Those among them that a read region forwarded to the primary. Native only.
    #[serde(default)]
    pub forwarded: u64,
    /// Bytes from Redis.
    #[serde(default)]
    pub received: u64,
}

/// Waits until `condition` holds. Panics after [`PATIENCE`].
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A client that follows no redirect and keeps no cookie.
pub fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .expect("a client without TLS needs nothing of the system")
}

fn with_origin(store: &Store, origin: &TestOrigin, variables: &[(&str, &str)]) -> Vec<(String, String)> {
    let url = origin.url();
    let is_given = variables.iter().any(|(name, _)| *name == "ORIGIN_URL");
    let default = (!is_given).then_some(("ORIGIN_URL", url.as_str()));
    let variables: Vec<_> = variables.iter().copied().chain(default).collect();
    let variables = store.variables(&variables).into_iter();
    variables.map(|(name, value)| (name, value.replace("{origin}", &url))).collect()
}

/// Makes two tests of each scenario `async fn name(shop: &Shop)`, a native one and one in workerd. Each has its own
/// shop: `scenarios!(&[("PAGE_TTL", "1")]; a_page_is_cached, a_page_expires);`
macro_rules! scenarios {
    ($variables:expr; $($scenario:ident),+ $(,)?) => {
        mod native {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(&$crate::support::Shop::native($variables).await).await;
            })+
        }
        mod workerd {
            $(#[tokio::test]
            async fn $scenario() {
                super::$scenario(&$crate::support::Shop::workerd($variables).await).await;
            })+
        }
    };
}
pub(crate) use scenarios;
