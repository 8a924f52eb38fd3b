//! A running edgefront with a store and an origin of its own, natively or in workerd. A scenario sees no difference.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use http::Method;

use super::{Store, TestOrigin, native::Native, workerd::Workerd};

/// Time limit for work after a response, on a machine that compiles beside the tests.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running edgefront; ends when dropped.
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
    /// The home tier's public side, which no visitor reaches in production.
    pub home: Shop,
    /// The home tier's entry point for the edge tier, which only the binding reaches in production.
    pub entry: Shop,
}

impl<const N: usize> Tiers<N> {
    /// The requests that reached the home tier since the last call, after all work behind the answers.
    pub async fn hops(&self) -> Vec<String> {
        for shop in &self.edge {
            shop.settled().await;
        }
        self.home.settled().await;
        self.home.visit("/test/hops").await.json().await.expect("a list")
    }

    /// Sets a fault of the home tier: `down`, `ill` (an error of the platform), `silent`, `stranger` (it refuses the edge
    /// tier), `default` (its entry point for visitors answers), `elsewhere` (another isolate executes a POST), `newer`
    /// (another version's headers), or none. `halts`, `ends` and `breaks` happen in the middle of a page that it hands
    /// over, `breaks` also in all other bodies.
    pub async fn set_home_fault(&self, fault: &str) {
        let answer = self.home.request(Method::POST, "/test/home").body(fault.to_owned()).send().await;
        assert_eq!(answer.expect("an answer").status(), 204);
    }
}

enum Platform {
    Native(Native),
    Workerd(Rc<Workerd>),
}

impl Shop {
    /// Natively, behind an HTTP server of ours, without a database. `variables` add to those of [`Store::variables`];
    /// `ORIGIN_URL` is the test origin unless given (empty: the demo shop), and `{origin}` in a value is its address.
    ///
    /// Panics if a variable is wrong.
    pub async fn native(variables: &[(&str, &str)]) -> Self {
        Self::native_on(Store::new().await, variables)
    }

    /// As [`Shop::native`], in the book's layout whatever the tests run in.
    pub async fn book(variables: &[(&str, &str)]) -> Self {
        Self::native_on(Store::book().await, variables)
    }

    /// As [`Shop::native`], on a cluster whatever the tests run in.
    pub async fn spread(variables: &[(&str, &str)]) -> Self {
        Self::native_on(Store::spread().await, variables)
    }

    /// As [`Shop::native`], on this store.
    pub fn native_on(store: Store, variables: &[(&str, &str)]) -> Self {
        let origin = TestOrigin::start();
        let native = Native::start(&store, &with_origin(&store, &origin, variables));
        let (origin, store) = (Rc::new(origin), Rc::new(store));
        Self { url: native.url(), client: client(), platform: Platform::Native(native), origin, store }
    }

    /// In workerd, with a migrated D1 database where the variables ask for one; variables as for [`Shop::native`].
    ///
    /// Panics if the Worker does not start.
    pub async fn workerd(variables: &[(&str, &str)]) -> Self {
        Self::try_workerd(variables).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Shop::workerd`], with the rate limits of `wrangler.toml`; all that comes without `CF-Connecting-IP` comes
    /// from 127.0.0.1.
    pub async fn limited(variables: &[(&str, &str)]) -> Self {
        Self::in_workerd(Store::new().await, variables, true).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`Shop::workerd`], for a Worker that may refuse to start: what it logged, and why.
    pub async fn try_workerd(variables: &[(&str, &str)]) -> Result<Self, String> {
        Self::in_workerd(Store::new().await, variables, false).await
    }

    /// As [`Shop::workerd`], on this store.
    pub async fn workerd_on(store: Store, variables: &[(&str, &str)]) -> Self {
        Self::in_workerd(store, variables, false).await.unwrap_or_else(|error| panic!("{error}"))
    }

    async fn in_workerd(store: Store, variables: &[(&str, &str)], limited: bool) -> Result<Self, String> {
        Self::at_location(Rc::new(store), Rc::new(TestOrigin::start()), variables, limited).await
    }

    /// The same shop at another location: a Worker in a process of its own, on the same store and origin.
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

    /// So many isolates of one location, on the store and the origin of `self`.
    ///
    /// Panics if the Worker does not start.
    pub async fn isolates_elsewhere<const N: usize>(&self, variables: &[(&str, &str)]) -> [Self; N] {
        let workerd = Workerd::start(&with_origin(&self.store, &self.origin, variables), false, N).await;
        let workerd = Rc::new(workerd.unwrap_or_else(|error| panic!("{error}")));
        std::array::from_fn(|number| Self::isolate(&workerd, number, self.origin.clone(), self.store.clone()))
    }

    /// So many isolates of an edge tier and its home tier, on the store and the origin of `self`. `limited`: with the
    /// rate limits of `wrangler.toml`.
    ///
    /// Panics if a Worker does not start.
    pub async fn tiers<const N: usize>(&self, variables: &[(&str, &str)], limited: bool) -> Tiers<N> {
        let home = with_origin(&self.store, &self.origin, variables);
        let is_of_redis = |name: &str| name.starts_with("UPSTASH_");
        let edge: Vec<_> = home.iter().filter(|(name, _)| !is_of_redis(name)).cloned().collect();
        // Home is at another location: its Worker must not share the cache of the edge tier here.
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

    /// A request to `path` (with its query).
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// A GET of `path` (with its query).
    pub fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.request(Method::GET, path)
    }

    /// GETs `path` and reads the answer; panics if there is none.
    pub async fn visit(&self, path: &str) -> reqwest::Response {
        self.get(path).send().await.expect("an answer")
    }

    /// Runs a cron trigger to its end, as the platform does.
    pub async fn cron(&self, cron: &str) {
        let path = format!("/cdn-cgi/local/scheduled?cron={}", cron.replace(' ', "+"));
        let answer = self.visit(&path).await;
        assert!(answer.status().is_success(), "{cron}: {}\n{}", answer.status(), self.logs().join("\n"));
    }

    /// Returns when all work behind the answers until now is done.
    pub async fn settled(&self) {
        eventually("the work behind the answers ends", async || self.progress().await.background == 0).await;
    }

    /// Requests to Redis that the last visitor waited for: those sent before the answer. Meaningful for one visit at a
    /// time.
    pub async fn blocking_requests(&self) -> u64 {
        self.progress().await.blocking
    }

    /// As [`Shop::blocking_requests`], and those among them that went to the primary of another region. Natively only.
    pub async fn blocking_and_forwarded(&self) -> (u64, u64) {
        let progress = self.progress().await;
        (progress.blocking, progress.forwarded)
    }

    /// Bytes that came from Redis. In workerd only.
    pub async fn received_bytes(&self) -> u64 {
        self.progress().await.received
    }

    /// Sets a fault of the location's cache for this isolate: `lost`, `broken`, or none. In workerd only.
    pub async fn set_cache_fault(&self, fault: &str) {
        let answer = self.request(Method::POST, "/test/cache").body(fault.to_owned()).send().await;
        assert_eq!(answer.expect("an answer").status(), 204);
    }

    /// Returns when a line that contains `text` has been logged: a Worker's log takes a way of its own, and may come
    /// after the answer.
    pub async fn logged(&self, text: &str) -> String {
        eventually(&format!("the log says {text:?}"), async || self.logs().iter().any(|line| line.contains(text)))
            .await;
        self.logs().join("\n")
    }

    /// Runs a statement of SQL on the Worker's D1 database, and returns its rows. For arranging and asserting, in
    /// workerd only.
    ///
    /// Panics if it fails.
    pub async fn sql(&self, statement: &str) -> Vec<serde_json::Value> {
        let request = self.request(Method::POST, "/test/sql").body(statement.to_owned());
        let answer = request.send().await.expect("an answer").text().await.expect("text");
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{statement}: {answer}"))
    }

    /// Sets the Worker's clock to the real time and so many milliseconds more. In workerd only.
    pub async fn set_clock(&self, offset: i64) {
        let answer = self.request(Method::POST, "/test/clock").body(offset.to_string()).send().await;
        assert_eq!(answer.expect("an answer").status(), 204);
    }

    /// Sets a fault of the Worker's D1 database: `refused`, `reply-lost`, or none. In workerd only.
    pub async fn set_database_fault(&self, fault: &str) {
        let answer = self.request(Method::POST, "/test/database").body(fault.to_owned()).send().await;
        assert_eq!(answer.expect("an answer").status(), 204);
    }

    /// Ends the Worker's process by SIGKILL, whatever it does. In workerd only.
    pub async fn kill(&self) {
        if let Platform::Workerd(workerd) = &self.platform {
            workerd.kill();
        }
        eventually("the Worker is gone", async || self.get("/test/progress").send().await.is_err()).await;
    }

    /// The lines that edgefront has logged so far.
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

/// The inside of a shop.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
pub struct Progress {
    /// Work behind answers that is under way.
    pub background: u64,
    /// Requests to Redis that the last visitor waited for.
    pub blocking: u64,
    /// Those among them that went to the primary of another region. Natively only.
    #[serde(default)]
    pub forwarded: u64,
    /// Bytes that came from Redis.
    #[serde(default)]
    pub received: u64,
}

/// Waits until `condition` holds; panics if it does not come to hold.
pub async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Follows no redirect and keeps no cookie.
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

/// Makes a test of each scenario `async fn name(shop: &Shop)` natively and one in workerd, each with a shop of its own:
/// `scenarios!(&[("PAGE_TTL", "1")]; a_page_is_cached, a_page_expires);`
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
