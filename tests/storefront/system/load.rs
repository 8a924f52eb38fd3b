//! More load than the database's plan allows. The gateway refuses requests over a budget of commands for each second of
//! the test's clock. The views are drawn from Zipf's law with a fixed seed, so the exact ranking is known.
//!
//! **Statistics.** The item of rank r has c = N / (6.28 r) of N views, so neighbours of rank 100 differ by c / 100
//! views, and five places are 5 % of c. Views without a session are exact there: each write of an isolate has more of
//! them than the largest weight. A session's view is written with probability 1/w and counts w times, which adds
//! a variance of w − 1. One view in 200 has a session. With the largest weight, 16, and N = 1.2 million (c = 1,910),
//! five places are 95 views, and the standard deviation is √(1,910 / 200 × 15) = 12 views.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
    time::Duration,
};

use edgefront::{
    App,
    ports::{
        fetch::{Body, Collected, Request},
        time::Clock,
    },
    ranking::activity::Viewer,
    routes,
    schema::{
        ids::{ItemId, UserId},
        token::Token,
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use serde_json::{Value, json};
use tokio::{task::LocalSet, time::timeout};

use crate::support::{SERVICE_KEY, Steps, Store, TestOrigin, app, config};

const ISOLATES: usize = 2;
const ITEMS: usize = 300;
/// Pages that visitors open; all views count for their items.
const PAGES: usize = 20;
/// Views that an isolate gets in a tenth of a second: from the edge tier, without a session, and from readers.
const VIEWS: usize = 2_000;
const READER_VIEWS: usize = 10;
const READERS: usize = 300;
const SHOPPERS: usize = 20;
/// Time limit for a request, on a machine that compiles beside the tests.
const PATIENCE: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(100);
/// The places by which a rank may differ.
const PLACES: usize = 5;

/// A user with a cart, as far as its writes were accepted.
struct Shopper {
    token: Token,
    cookie: String,
    cart: BTreeMap<String, String>,
}

struct Ask<'a> {
    method: Method,
    path: &'a str,
    header: (&'a str, &'a str),
    body: Option<Value>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    json: Value,
}

/// A shop of several isolates, its visitors, and the writes that it accepted.
struct Load {
    steps: Steps,
    store: Store,
    /// Ends when dropped.
    _origin: TestOrigin,
    isolates: Vec<Rc<App>>,
    items: Vec<ItemId>,
    /// The share of views of each item and of the ones before it.
    shares: Vec<f64>,
    random: u64,
    exact: Vec<u64>,
    readers: Vec<Token>,
    read: HashSet<(usize, usize)>,
    shoppers: Vec<Shopper>,
    logins: Vec<String>,
    /// Writes of visitors, and those that the database refused.
    writes: u32,
    refused: u32,
}

impl Load {
    async fn start() -> Self {
        let (steps, store, origin) = (Steps::default(), Store::book().await, TestOrigin::start());
        store.load_scripts().await;
        let url = origin.url();
        let variables = [("ORIGIN_URL", url.as_str()), ("PAGE_TTL", "3600"), ("TRAFFIC_INTERVAL", "2")];
        let start = || Rc::new(app(config(&store.variables(&variables)), steps.clone()));
        let isolates: Vec<_> = (0..ISOLATES).map(|_| start()).collect();
        let items: Vec<_> = (0..ITEMS).map(|item| ItemId::parse(&format!("item-{item}")).unwrap()).collect();
        let mut sum = 0.0;
        let shares = (1..=u32::try_from(ITEMS).unwrap()).map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        });
        let shares: Vec<_> = shares.collect();
        let now = steps.now();
        let session = isolates[0].config.session.clone();
        let log_in = async |name: String| {
            crate::support::log_in(&store.aside, None, &UserId::parse(&name).unwrap(), now, &session).await.unwrap()
        };
        let (mut readers, mut shoppers) = (Vec::new(), Vec::new());
        for reader in 0..READERS {
            readers.push(log_in(format!("reader-{reader}")).await);
        }
        for shopper in 0..SHOPPERS {
            let token = log_in(format!("shopper-{shopper}")).await;
            let cookie = isolates[0].keyring.pair(&token).unwrap();
            shoppers.push(Shopper { token, cookie, cart: BTreeMap::new() });
        }
        for item in &items {
            store.raw(&["ZADD", "viewed:", "-1", item.as_str()]).await;
        }
        let exact = vec![1; ITEMS];
        let (read, logins) = Default::default();
        let mut load = Self {
            steps,
            store,
            _origin: origin,
            isolates,
            items,
            shares,
            random: 7,
            exact,
            readers,
            read,
            shoppers,
            logins,
            writes: 0,
            refused: 0,
        };
        for page in 0..PAGES {
            load.open(0, page).await;
        }
        load.steps.settle().await;
        load
    }

    /// 32 random bits (splitmix64).
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from(bits >> 32).expect("32 bits")
    }

    fn draw_below(&mut self, count: usize) -> usize {
        usize::try_from(self.draw()).expect("64 bits") % count
    }

    fn draw_item(&mut self) -> usize {
        let share = f64::from(self.draw()) / f64::from(u32::MAX) * self.shares[ITEMS - 1];
        self.shares.partition_point(|sum| *sum < share)
    }

    /// Answers a request; its background tasks run in the steps.
    async fn call(&self, isolate: usize, Ask { method, path, header, body }: Ask<'_>) -> Answer {
        let mut request = Request::new(body.map_or(Body::Empty, |body| Body::from(body.to_string())));
        *request.method_mut() = method;
        *request.uri_mut() = format!("http://shop.example{path}").parse::<Uri>().unwrap();
        for (name, value) in [header, ("sec-fetch-site", "same-origin"), ("content-type", "application/json")] {
            let name = HeaderName::try_from(name).unwrap();
            request.headers_mut().insert(name, HeaderValue::try_from(value).unwrap());
        }
        let answer = timeout(PATIENCE, routes::handle(&self.isolates[isolate], request)).await;
        let answer = answer.expect("no request waits for the test's clock");
        for work in answer.background {
            self.steps.spawn(work);
        }
        let (head, body) = answer.response.into_parts();
        let Ok(Collected::Whole(body)) = body.collect(1 << 20).await else { panic!("a whole body") };
        Answer { status: head.status, headers: head.headers, json: serde_json::from_slice(&body).unwrap_or_default() }
    }

    async fn open(&mut self, isolate: usize, page: usize) {
        let path = format!("/products/item-{page}");
        let ask = Ask { method: Method::GET, path: &path, header: ("accept", "text/html"), body: None };
        assert_eq!(self.call(isolate, ask).await.status, 200, "pages stay up");
        self.exact[page] += 1;
    }

    /// Returns whether a write was accepted. Otherwise it was refused as a whole, and the visitor learns when to retry.
    fn is_accepted(&mut self, Answer { status, headers, .. }: &Answer) -> bool {
        self.writes += 1;
        if status.is_success() {
            return true;
        }
        assert_eq!(*status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(headers.contains_key(header::RETRY_AFTER));
        self.refused += 1;
        false
    }

    async fn fill_cart(&mut self, isolate: usize) {
        let (shopper, item) = (self.draw_below(SHOPPERS), self.draw_below(10));
        let quantity = 1 + self.draw_below(9);
        let (path, cookie) = (format!("/_edge/v1/cart/items/item-{item}"), self.shoppers[shopper].cookie.clone());
        let body = Some(json!({ "quantity": quantity }));
        let answer =
            self.call(isolate, Ask { method: Method::PUT, path: &path, header: ("cookie", &cookie), body }).await;
        if self.is_accepted(&answer) {
            self.shoppers[shopper].cart.insert(format!("item-{item}"), quantity.to_string());
        }
    }

    async fn log_in(&mut self, isolate: usize) {
        let (key, body) = (format!("Bearer {SERVICE_KEY}"), Some(json!({"user": format!("user-{}", self.writes)})));
        let (path, header) = ("/_edge/v1/sessions", ("authorization", key.as_str()));
        let answer = self.call(isolate, Ask { method: Method::POST, path, header, body }).await;
        if self.is_accepted(&answer) {
            self.logins.push(answer.json["token"].as_str().expect("a token").to_owned());
        }
    }

    /// One second: for each isolate 20,000 views without a session and 100 with one, 10 pages, 5 cart writes and a login.
    async fn second(&mut self) {
        for tick in 0..10 {
            for isolate in 0..ISOLATES {
                self.view(isolate);
                let page = self.draw_below(PAGES);
                self.open(isolate, page).await;
                if tick % 2 == 0 {
                    self.fill_cart(isolate).await;
                }
                if tick == 9 {
                    self.log_in(isolate).await;
                }
            }
            self.steps.advance(TICK).await;
        }
    }

    /// The views of a tenth of a second. The edge tier's views come as sums.
    fn view(&mut self, isolate: usize) {
        let app = self.isolates[isolate].clone();
        let mut sums = [0_u64; ITEMS];
        for _ in 0..VIEWS {
            sums[self.draw_item()] += 1;
        }
        for (item, views) in sums.into_iter().enumerate().filter(|(_, views)| *views > 0) {
            assert!(app.activity.receive(&format!("views\titem-{item}\t\t{views}")));
            self.exact[item] += views;
        }
        for _ in 0..READER_VIEWS {
            let (reader, item) = (self.draw_below(READERS), self.draw_item());
            // A view counts once for each session and item.
            if self.read.insert((reader, item)) {
                let viewer = Viewer { token: Some(&self.readers[reader]), network: None };
                app.activity.record_visit(viewer, Some(&self.items[item]), app.clock.now());
                self.exact[item] += 1;
            }
        }
    }

    fn levels(&self) -> Vec<u32> {
        self.isolates.iter().map(|app| app.activity.pace().level()).collect()
    }

    /// Visits once a second, without a limit, until `is_over`.
    async fn calm_down(&mut self, seconds: u32, is_over: impl Fn(&Self) -> bool) {
        self.store.gateway.set_command_budget(None);
        for _ in 0..seconds {
            if is_over(self) {
                return;
            }
            for isolate in 0..ISOLATES {
                self.open(isolate, 0).await;
            }
            for _ in 0..10 {
                self.steps.advance(TICK).await;
            }
        }
        panic!("not over after {seconds} s: levels {:?}", self.levels());
    }

    async fn assert_nothing_accepted_is_lost(&self) {
        for Shopper { token, cart, .. } in &self.shoppers {
            let stored = self.store.raw(&["HGETALL", &format!("cart:{}", token.as_str())]).await;
            let stored: Vec<String> = serde_json::from_value(stored).unwrap();
            let stored: BTreeMap<_, _> = stored.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
            assert_eq!(&stored, cart);
        }
        for token in &self.logins {
            assert!(self.store.raw(&["HGET", "login:", token]).await.is_string());
        }
    }

    /// Compares the first 100 ranks.
    async fn assert_ranking(&self) {
        let ranked: Vec<String> =
            serde_json::from_value(self.store.raw(&["ZRANGE", "viewed:", "0", "-1"]).await).unwrap();
        let ranks: HashMap<_, _> = ranked.iter().map(String::as_str).zip(0_usize..).collect();
        let mut exact: Vec<_> = self.items.iter().zip(&self.exact).collect();
        exact.sort_by_key(|(_, views)| std::cmp::Reverse(**views));
        let differences =
            exact.iter().zip(0_usize..).take(100).map(|((item, _), rank)| ranks[item.as_str()].abs_diff(rank));
        let largest = differences.max().unwrap();
        println!("largest difference of the top 100: {largest} places");
        assert!(largest <= PLACES, "{largest} places");
    }
}

/// Plays the load for `seconds`, of which the database carries one command in `factor`.
async fn overload(factor: u64, seconds: u32) {
    let mut load = Load::start().await;
    let before = load.store.counts().commands;
    for _ in 0..3 {
        load.second().await;
    }
    let usual = (load.store.counts().commands - before) / 3;
    assert_eq!((load.levels(), load.refused), (vec![0; ISOLATES], 0));
    let budget = u32::try_from(usual / factor).unwrap();
    let (mut late_writes, mut late_refused) = (0, 0);
    for second in 0..seconds {
        load.store.gateway.set_command_budget(Some(budget));
        load.second().await;
        println!("second {second}: levels {:?}, {} of {} writes refused", load.levels(), load.refused, load.writes);
        if second == seconds / 2 {
            (late_writes, late_refused) = (load.writes, load.refused);
        }
    }
    assert!(load.levels().iter().all(|level| *level > 0));
    let (refused, writes) = (load.refused - late_refused, load.writes - late_writes);
    println!("{usual} commands a second, {budget} allowed; later, {refused} of {writes} writes were refused");
    assert!(refused * 10 <= writes, "visitors' writes come first: {refused} of {writes} were refused");
    load.calm_down(60, |load| load.isolates.iter().all(|app| app.activity.is_idle())).await;
    load.assert_nothing_accepted_is_lost().await;
    load.assert_ranking().await;
    load.calm_down(1_200, |load| load.levels() == [0; ISOLATES]).await;
}

#[tokio::test]
async fn twice_the_load_of_the_plan_loses_no_write_and_keeps_the_ranking() {
    LocalSet::new().run_until(overload(2, 30)).await;
}

#[tokio::test]
async fn eight_times_the_load_of_the_plan_loses_no_write_and_keeps_the_ranking() {
    LocalSet::new().run_until(overload(8, 30)).await;
}
