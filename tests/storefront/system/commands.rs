//! The commands of each action, counted by the server (`INFO commandstats`). Upstash bills every command, and each call
//! inside a script: `EVALSHA` counts as one, and each `redis.call` as one more. The tables of docs/scaling.md repeat
//! the limits. The simulation adds up the steps of [`costs`], so their sums must equal the server's counts.

use std::{collections::BTreeMap, time::Duration};

use edgefront::{
    jobs::{self, EVERY_FIVE_MINUTES, EVERY_MINUTE},
    orders::flash_sale::FlashSales,
    schema::{ids::UserId, token::Token},
};
use edgefront_gateway::server::{Server, ServerOptions};
use edgefront_simulate::costs;
use futures_util::future::join_all;
use http::{Method, header};
use serde_json::json;

use crate::{
    orders::flash_sale,
    support::{Reply, SERVICE_KEY, Shop, Stock, Store, row},
};

/// Commands that the tests and the connections send; they do not count.
const OWN: [&str; 9] = ["info", "hello", "client", "select", "script", "ping", "command", "keys", "config"];

/// The limits, in commands.
pub const CART_WRITE: f64 = costs::CART_WRITE + costs::CART_WRITE_SEEN;
pub const SESSION_CHECK: f64 = costs::SESSION_CHECK;
pub const HOT_VIEW: f64 = 2.6;
/// With the check of a session that began at most half of `SESSION_IDLE` ago.
const RESERVATION: f64 = costs::RESERVATION;
/// The difference between a sum of steps and the server's count, each for one action.
const TOLERANCE: f64 = 0.75;

/// A server that only one shop uses, so that its counts are those of this shop.
pub struct Counted {
    _server: Server,
    before: BTreeMap<String, u64>,
}

impl Counted {
    pub async fn store() -> (Self, Store) {
        let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let store = Store::on(&server.url()).await;
        store.load_scripts().await;
        (Self { _server: server, before: BTreeMap::new() }, store)
    }

    pub async fn begin(&mut self, store: &Store) {
        self.before = calls(store).await;
    }

    /// As [`Counted::assert_at_most`], and panics if the steps of [`costs`] add up to another number.
    async fn assert_cost(&self, store: &Store, what: &str, actions: u32, cost: f64) {
        let each = self.assert_at_most(store, what, actions, cost + TOLERANCE).await;
        assert!(each >= cost - TOLERANCE, "{what}: {each} commands, the simulation counts {cost}");
    }

    /// Commands since [`Counted::begin`], by name.
    async fn counts(&self, store: &Store) -> BTreeMap<String, u32> {
        let since = |(name, count): (String, u64)| {
            let count = count - self.before.get(&name).copied().unwrap_or_default();
            (count > 0).then(|| (name, u32::try_from(count).unwrap()))
        };
        calls(store).await.into_iter().filter_map(since).collect()
    }

    /// Commands since [`Counted::begin`] for each of `actions`; panics over `limit`.
    pub async fn assert_at_most(&self, store: &Store, what: &str, actions: u32, limit: f64) -> f64 {
        let counts = self.counts(store).await;
        let each = f64::from(counts.values().sum::<u32>()) / f64::from(actions);
        println!("{what}: {each:.2} {counts:?}");
        assert!(each <= limit, "{what}: {each} commands, at most {limit}: {counts:?}");
        each
    }
}

async fn calls(store: &Store) -> BTreeMap<String, u64> {
    let info = store.raw(&["INFO", "commandstats"]).await;
    let calls = |line: &str| {
        let (command, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let command = command.split('|').next().unwrap_or_default();
        let count = figures.strip_prefix("calls=")?.split(',').next()?.parse().ok()?;
        (!OWN.contains(&command)).then(|| (command.to_owned(), count))
    };
    info.as_str().expect("text").lines().filter_map(calls).collect()
}

async fn log_in(store: &Store, shop_app: &std::rc::Rc<edgefront::App>, name: &str) -> (Token, String) {
    let user = UserId::parse(name).unwrap();
    // A minute ago, so that its activity is recorded.
    let now = shop_app.clock.now() - Duration::from_mins(1);
    let token = crate::support::log_in(&store.redis, None, &user, now, &shop_app.config.session).await.unwrap();
    let cookie = shop_app.keyring.pair(&token).unwrap();
    (token, cookie)
}

const VISITS: u32 = 10;

async fn shop(memory: &str) -> (Counted, Shop) {
    let (counted, store) = Counted::store().await;
    (counted, Shop::native_on(store, &[("PAGE_MEMORY", memory), ("PAGE_TTL", "300")]))
}

async fn rank(shop: &Shop) {
    for item in 0..200 {
        shop.store.raw(&["ZADD", "viewed:", "-100", &format!("item-{item}")]).await;
    }
}

/// 32 concurrent cold pages share the batches that write their accounts (`ZMSCORE`) and their sessions' activity
/// (`HMGET`). The speed of the machine determines the number of batches. All other commands are the same in each run.
fn assert_cold_pages_share(counts: &BTreeMap<String, u32>) {
    let [accounts, touches] = ["zmscore", "hmget"].map(|name| counts[name]);
    assert!(accounts <= 8 && touches <= 2, "few batches: {counts:?}");
    // `EVALSHA`, the command by which the batch is counted, `ZADD`. A store script can write an account without `EVALSHA`.
    let batches = f64::from(3 * (accounts + touches));
    let each = costs::LOOKUP + costs::RANK + costs::LEASE + costs::SESSION + costs::STORE + costs::COUNT;
    let limit = 32.0 * (each + costs::TOUCH_NEW_ITEM) + batches;
    let sum = f64::from(counts.values().sum::<u32>());
    println!("cold page, 32 at once, session: {:.2} {counts:?}", sum / 32.0);
    assert!(sum <= limit, "{sum} commands, at most {limit}: {counts:?}");
}

async fn visit(shop: &Shop, cookie: &str, item: u32) -> String {
    let answer = shop.get(&format!("/products/item-{item}")).header(header::COOKIE, cookie).send().await.unwrap();
    let status = answer.headers()["cache-status"].to_str().unwrap().to_owned();
    answer.bytes().await.unwrap();
    status
}

#[tokio::test]
async fn a_page_hit_stays_within_its_cost() {
    let (mut counted, shop) = shop("0").await;
    rank(&shop).await;
    for item in 0..VISITS {
        visit(&shop, "", item).await;
    }
    shop.settled().await;
    let app = shop.store.app(&[]);
    let (_, cookie) = log_in(&shop.store, &app, "ada").await;
    for (what, cookie, cost) in [
        ("hit, no session", String::new(), costs::PAGE_WITHOUT_SESSION),
        ("hit, session", cookie, costs::PAGE_WITH_SESSION),
    ] {
        counted.begin(&shop.store).await;
        for item in 0..VISITS {
            let status = visit(&shop, &cookie, item).await;
            assert!(status.contains("hit"), "{status}");
            shop.settled().await;
        }
        counted.assert_cost(&shop.store, what, VISITS, cost).await;
    }
}

#[tokio::test]
async fn a_cold_page_stays_within_its_cost() {
    let (mut counted, shop) = shop("5").await;
    rank(&shop).await;
    let app = shop.store.app(&[]);
    let mut cookies = Vec::new();
    for number in 0..32 {
        cookies.push(log_in(&shop.store, &app, &format!("user-{number}")).await.1);
    }
    counted.begin(&shop.store).await;
    join_all((0..32).map(|item| visit(&shop, &cookies[item as usize], item))).await;
    shop.settled().await;
    assert_cold_pages_share(&counted.counts(&shop.store).await);
    counted.begin(&shop.store).await;
    for item in 40..50 {
        let status = visit(&shop, &cookies[item as usize - 40], item).await;
        assert!(status.contains("stored"), "{status}");
        shop.settled().await;
    }
    counted.assert_cost(&shop.store, "cold page, alone, session", 10, costs::COLD_PAGE).await;
    counted.begin(&shop.store).await;
    for item in 60..70 {
        let status = visit(&shop, "", item).await;
        assert!(status.contains("stored"), "{status}");
        shop.settled().await;
    }
    counted.assert_cost(&shop.store, "cold page, alone, no session", 10, costs::COLD_PAGE_WITHOUT_SESSION).await;
    // The first page is in the isolate's memory now, and was not viewed by the other sessions.
    visit(&shop, "", 60).await;
    shop.settled().await;
    counted.begin(&shop.store).await;
    join_all(cookies.iter().map(|cookie| visit(&shop, cookie, 60))).await;
    shop.settled().await;
    counted.assert_at_most(&shop.store, "hot view, 32 at once, session", 32, HOT_VIEW).await;
}

#[tokio::test]
async fn a_dynamic_page_stays_within_its_cost() {
    let (mut counted, shop) = shop("5").await;
    shop.origin.answer(Reply::html("<p>Yours").header("cache-control", "private"));
    let app = shop.store.app(&[]);
    let mut cookies = Vec::new();
    for number in 0..VISITS {
        cookies.push(log_in(&shop.store, &app, &format!("user-{number}")).await.1);
    }
    let visit = async |cookie: &str| {
        let answer = shop.get("/account").header(header::COOKIE, cookie).send().await.unwrap();
        assert!(answer.bytes().await.unwrap().starts_with(b"<p>Yours"));
        shop.settled().await;
    };
    counted.begin(&shop.store).await;
    visit("").await;
    counted.assert_cost(&shop.store, "dynamic page, first visit", 1, costs::DYNAMIC_PAGE_FIRST).await;
    counted.begin(&shop.store).await;
    for _ in 0..VISITS {
        visit("").await;
    }
    counted.assert_at_most(&shop.store, "dynamic page, no session", VISITS, 0.0).await;
    counted.begin(&shop.store).await;
    for cookie in &cookies {
        visit(cookie).await;
    }
    counted.assert_cost(&shop.store, "dynamic page, session", VISITS, costs::DYNAMIC_PAGE).await;
}

#[tokio::test]
async fn a_flash_reservation_stays_within_its_cost() {
    let (mut counted, store) = Counted::store().await;
    let app = store.app(&[]);
    let now = app.clock.now();
    let columns = json!({
        "id": "pan", "sale_starts_at": now.as_secs() - 60, "sale_ends_at": now.as_secs() + 3_600, "sale_pieces": 100,
    });
    flash_sale::put(&store, "pan", &columns, now + Duration::from_hours(1)).await;
    let sales = FlashSales { redis: &app.redis, source: None, config: &app.config };
    let mut tokens = Vec::new();
    for user in 0..=VISITS {
        tokens.push(log_in(&store, &app, &format!("user-{user}")).await.0);
    }
    let reserve = async |token: &Token| assert!(sales.reserve(&row("pan"), token, now).await.unwrap().created);
    // The first reservation also sets when the keys expire.
    reserve(&tokens[0]).await;
    counted.begin(&store).await;
    for token in &tokens[1..] {
        reserve(token).await;
    }
    counted.assert_at_most(&store, "flash reservation", VISITS, RESERVATION).await;
}

#[tokio::test]
async fn a_cart_write_and_a_session_check_stay_within_their_cost() {
    let (mut counted, shop) = shop("5").await;
    let app = shop.store.app(&[]);
    let (_, cookie) = log_in(&shop.store, &app, "ada").await;
    let put = async |quantity: u32| {
        let request = shop.request(Method::PUT, "/_edge/v1/cart/items/mug").header(header::COOKIE, &cookie);
        let request = request.header("sec-fetch-site", "same-origin");
        let body = format!("{{\"quantity\":{quantity}}}");
        let answer = request.header(header::CONTENT_TYPE, "application/json").body(body).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    };
    put(1).await;
    counted.begin(&shop.store).await;
    for quantity in 1..=VISITS {
        put(quantity).await;
    }
    shop.settled().await;
    counted.assert_cost(&shop.store, "cart write", VISITS, CART_WRITE).await;
    counted.begin(&shop.store).await;
    for _ in 0..VISITS {
        let request = shop.request(Method::PUT, "/_edge/v1/cart/items/mug").header("sec-fetch-site", "same-origin");
        let request = request.header(header::CONTENT_TYPE, "application/json").body("{\"quantity\":1}");
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    shop.settled().await;
    counted.assert_cost(&shop.store, "cart write of a new guest", VISITS, costs::CART_WRITE_GUEST).await;
    counted.begin(&shop.store).await;
    for _ in 0..VISITS {
        shop.get("/_edge/v1/session").header(header::COOKIE, &cookie).send().await.unwrap();
    }
    shop.settled().await;
    counted.assert_cost(&shop.store, "session check", VISITS, costs::SESSION_CHECK).await;
}

#[tokio::test]
async fn idle_crons_a_month() {
    let (mut counted, store) = Counted::store().await;
    let stock = Stock::on(store, &[("TRAFFIC_INTERVAL", "2")]);
    jobs::run_cron(&stock.app, EVERY_FIVE_MINUTES, stock.now()).await;
    jobs::run_cron(&stock.app, EVERY_MINUTE, stock.now()).await;
    counted.begin(&stock.store).await;
    // Nine hours are a multiple of every period.
    for minute in 0..540 {
        stock.store.clock.advance(Duration::from_mins(1));
        jobs::run_cron(&stock.app, EVERY_MINUTE, stock.now()).await;
        if minute % 5 == 0 {
            jobs::run_cron(&stock.app, EVERY_FIVE_MINUTES, stock.now()).await;
        }
    }
    counted.assert_at_most(&stock.store, "an idle month of the crons", 1, costs::CRONS_A_MONTH / 80.0).await;
}

#[tokio::test]
async fn a_row_refresh_stays_within_its_cost() {
    // A cron refreshes rows with a period of 5 s twelve times, and each other one once.
    for (rows, period, limit) in [(1, 5.0, 4.5), (10, 5.0, 1.4), (1, 60.0, 10.0), (10, 60.0, 2.0)] {
        let (mut counted, store) = Counted::store().await;
        let stock = Stock::on(store, &[]);
        // In this minute and the next one, the cleanup sends nothing.
        stock.store.clock.advance(Duration::from_mins(10 - stock.now().as_secs() / 60 % 9));
        for row in 0..rows {
            let id = format!("row-{row}");
            stock.put(&id, 1);
            stock.schedule(&id, period).await;
        }
        jobs::run_cron(&stock.app, EVERY_MINUTE, stock.now()).await;
        stock.store.clock.advance(Duration::from_secs_f64(period));
        counted.begin(&stock.store).await;
        let before = stock.origin.count();
        jobs::run_cron(&stock.app, EVERY_MINUTE, stock.now()).await;
        let rounds = u32::try_from(stock.origin.count() - before).unwrap();
        println!("{rounds} rounds");
        counted
            .assert_at_most(&stock.store, &format!("row refresh every {period} s, {rows} rows"), rounds * rows, limit)
            .await;
    }
}

#[tokio::test]
async fn an_open_dashboard_stays_within_its_cost() {
    let (mut counted, store) = Counted::store().await;
    let shop = Shop::native_on(store, &[("ROWS_URL", "{origin}/rows")]);
    rank(&shop).await;
    let app = shop.store.app(&[]);
    log_in(&shop.store, &app, "ada").await;
    for row in 0..10 {
        let id = format!("row-{row}");
        shop.store.raw(&["ZADD", "schedule:", "1", &id]).await;
        shop.store.raw(&["ZADD", "delay:", "60", &id]).await;
        shop.store.raw(&["SET", &format!("inv:{id}"), "{}"]).await;
    }
    shop.store.raw(&["XADD", "abandoned:", "*", "user", "ada", "seen", "1", "items", "[\"mug\",\"1\"]"]).await;
    let call = async |path: &str| {
        let answer = shop.get(&format!("/_edge/v1{path}")).bearer_auth(SERVICE_KEY).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    };
    let script = include_str!("../../../assets/dashboard.js");
    let number = |name: &str| {
        let (_, value) = script.split_once(&format!("const {name} = ")).expect(name);
        value.split(';').next().unwrap().replace('_', "").parse::<u32>().unwrap()
    };
    let (polls, tables_every) = (60_000 / number("POLL_INTERVAL"), number("TABLES_EVERY"));
    assert_eq!(polls % tables_every, 0, "a minute has whole rounds");
    for minutes in [15, 60, 1_440, 10_080] {
        counted.begin(&shop.store).await;
        let is_long = minutes > 60;
        for poll in 0..polls {
            call(&format!("/traffic?minutes={}", if is_long { 15 } else { minutes })).await;
            call("/stats").await;
            if poll % tables_every == 0 {
                for path in ["/jobs", "/ranking?limit=10&since=hour", "/schedule?limit=10", "/abandoned?limit=5"] {
                    call(path).await;
                }
                if is_long {
                    call(&format!("/traffic?minutes={minutes}")).await;
                }
            }
        }
        counted.assert_at_most(&shop.store, &format!("dashboard a minute, {minutes} minutes"), 1, 60.0).await;
    }
}
