//! A primary, two replicas that lag, and visitors who move between the locations.

mod browser;
mod overlap;

use std::time::{Duration, Instant};

use edgefront::{
    ports::time::Timestamp,
    schema::{
        redis::{MAX_REPLICA_LAG, Redis},
        token::Token,
    },
};
use edgefront_gateway::{Fault, FaultScope};
use http::Method;
use serde_json::{Value, json};
use upstash_rest::Command;

use self::browser::Browser;
use crate::{
    orders::flash_sale,
    page_cache::{header as header_of, make_popular},
    routes::api::with_json,
    schema::document,
    support::{Regions, Reply, SERVICE_KEY, Shop, eventually},
};

/// Longer than any test, so that only a replica that has caught up ends the wait.
const PATIENT: Duration = Duration::from_hours(1);
/// Between a replica and the primary, for the printed times. No test depends on it.
const ROUND_TRIP: Duration = Duration::from_millis(100);
const CART: &str = r#"{"op":"add","id":"mug","quantity":2}"#;
/// The primary answers at once if a replica is behind.
const IMPATIENT: Duration = Duration::from_millis(1);

#[tokio::test]
async fn a_login_a_cart_write_and_a_logout_are_seen_at_once_through_every_location() {
    let regions = Regions::start(&[], IMPATIENT).await;
    for (number, writer) in regions.all().into_iter().enumerate() {
        regions.stop_replication();
        let mut visitor = Browser::default();
        visitor.log_in(writer, "ada").await;
        visitor.put(writer, "mug", 2).await;
        for reader in regions.all() {
            assert_eq!(visitor.user(reader).await, json!("ada"), "written at {number}");
            assert_eq!(visitor.quantity(reader).await, json!(2), "written at {number}");
        }
        for far in &regions.far {
            assert_eq!(visitor.without_token().user(far).await, json!(null), "the replica has not moved");
        }
        for (quantity, place) in [3, 4, 5].into_iter().zip(regions.all()) {
            visitor.put(place, "mug", quantity).await;
            for reader in regions.all() {
                assert_eq!(visitor.quantity(reader).await, json!(quantity));
            }
        }
        regions.replicate();
        for far in &regions.far {
            eventually("the replica has the login", async || visitor.without_token().quantity(far).await == json!(5))
                .await;
        }
        regions.stop_replication();
        visitor.log_out(writer).await;
        for reader in regions.all() {
            assert_eq!(visitor.user(reader).await, json!(null), "ended at {number}");
        }
        for far in &regions.far {
            assert_eq!(visitor.without_token().user(far).await, json!("ada"), "the replica has not moved");
        }
        regions.replicate();
    }
}

#[tokio::test]
async fn a_service_ends_the_sessions_that_its_region_does_not_know_yet() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, other] = &regions.far;
    regions.stop_replication();
    let mut visitor = Browser::default();
    visitor.log_in(far, "ada").await;
    let end = other.request(Method::DELETE, "/_edge/v1/users/ada/sessions").bearer_auth(SERVICE_KEY);
    assert_eq!(Browser::default().send(end).await, (200, json!({"ended": 1}).to_string()));
    regions.replicate();
    for reader in regions.all() {
        assert_eq!(visitor.user(reader).await, json!(null));
    }
}

#[tokio::test]
async fn an_order_of_a_session_that_its_region_does_not_know_yet_confirms_the_reservation() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, other] = &regions.far;
    let sale =
        json!({"id": "pan", "sale_starts_at": 1, "sale_ends_at": 4_102_444_800_u64, "sale_pieces": 1, "sale_sold": 0});
    let due = Timestamp::from_millis(4_102_444_800_000);
    flash_sale::put(&regions.home.store, "pan", &sale, due).await;
    regions.stop_replication();
    let mut visitor = Browser::default();
    visitor.log_in(far, "ada").await;
    let held = visitor.api(far, Method::POST, "/flash/pan/reservations", None).await;
    let token = visitor.cookies["__Host-session"].split_once('.').expect("a MAC").0.to_owned();
    let reservation = json!({"sale": "pan", "id": held["reservation"]["id"]});
    let order =
        json!({"order_id": "A-1", "items": [{"id": "pan", "quantity": 1}], "token": token, "reservation": reservation});
    let report = other.request(Method::POST, "/_edge/v1/orders").bearer_auth(SERVICE_KEY);
    assert_eq!(Browser::default().send(with_json(report, &order)).await, (204, String::new()));
    let counts = regions.home.get("/_edge/v1/flash/pan/holds").bearer_auth(SERVICE_KEY);
    let counts: Value = serde_json::from_str(&Browser::default().send(counts).await.1).unwrap();
    assert_eq!([&counts["sold"], &counts["held"]], [1, 0]);
}

#[tokio::test]
async fn a_change_whose_reply_was_lost_is_seen_by_the_next_request() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, other] = &regions.far;
    let mut visitor = Browser::default();
    visitor.log_in(far, "ada").await;
    regions.stop_replication();
    let broken = r#"{"error":"ERR the connection to Redis broke, the command may have been executed"}"#;
    for (fault, quantity) in [(Fault::Status(502, broken.to_owned()), json!(0)), (Fault::LoseReply, json!(2))] {
        far.store.gateway.set_fault_for(fault.clone(), FaultScope::Next(1));
        let write = with_json(far.request(Method::PUT, "/_edge/v1/cart/items/mug"), &json!({"quantity": 2}));
        assert_eq!(visitor.send(write).await.0, 503, "{fault:?}");
        assert_eq!(visitor.sync_names().len(), 2, "{fault:?}: one demands a merge");
        assert_eq!(visitor.quantity(other).await, quantity, "{fault:?}");
        assert_eq!(visitor.sync_names().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_read_waits_for_the_replica_and_the_primary_is_not_asked() {
    let regions = Regions::start(&[], PATIENT).await;
    let [far, other] = &regions.far;
    let mut visitor = Browser::default();
    regions.stop_replication();
    visitor.put(far, "mug", 2).await;
    let (before, forwarded) = (other.store.gateway.received(), other.store.gateway.forwarded());
    let catch_up = eventually("the gateway has the read", async || {
        let has_come = other.store.gateway.received() > before;
        if has_come {
            regions.replicate();
        }
        has_come
    });
    let (quantity, ()) = tokio::join!(visitor.quantity(other), catch_up);
    assert_eq!((quantity, other.store.gateway.forwarded()), (json!(2), forwarded));
}

#[tokio::test]
async fn other_readers_are_at_most_the_lag_behind() {
    let regions = Regions::start(&[], PATIENT).await;
    let mut visitor = Browser::default();
    visitor.log_in(&regions.far[0], "ada").await;
    for far in &regions.far {
        eventually("the change arrives", async || visitor.without_token().user(far).await == json!("ada")).await;
    }
}

#[tokio::test]
async fn a_page_with_the_visitors_parts_shows_their_change_through_every_location() {
    let variables = [("HOLES", "/products/* #user <- user"), ("PAGE_MEMORY", "0")];
    let regions = Regions::start(&variables, IMPATIENT).await;
    for shop in regions.all() {
        shop.origin.answer(Reply::html("<b id=user>nobody</b>").header("cache-control", "max-age=600, public"));
        assert!(shop.visit("/products/mug").await.status().is_success());
    }
    regions.stop_replication();
    let mut visitor = Browser::default();
    visitor.log_in(&regions.far[0], "ada").await;
    for shop in regions.all() {
        let (_, page) = visitor.send(shop.get("/products/mug")).await;
        assert_eq!(page, "<b id=user>ada</b>");
    }
}

#[tokio::test]
async fn a_directive_of_the_origin_sets_the_token() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, other] = &regions.far;
    regions.stop_replication();
    let mut visitor = Browser::default();
    far.origin.answer(Reply::html("welcome").header("edge-login", "ada").header("edge-cart", CART));
    other.origin.answer_with(|asked| Reply::html(asked.header("edge-user").to_owned()));
    visitor.send(far.request(Method::POST, "/login")).await;
    assert_eq!(visitor.send(other.get("/account")).await.1, "ada");
    // A cookie of edgefront's own says nothing to the origin.
    assert!(other.origin.asked().iter().all(|asked| !asked.header("cookie").contains("__Host-session")));
}

#[tokio::test]
async fn only_a_change_of_the_visitor_sets_the_cookie() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    make_popular(far, "mug").await;
    for path in ["/products/mug", "/products/mug", "/", "/_edge/v1/session", "/_edge/v1/cart", "/_edge/v1/popular"] {
        assert_eq!(header_of(&far.visit(path).await, "set-cookie"), "", "{path}");
    }
    let mut visitor = Browser::default();
    visitor.log_in(far, "ada").await;
    let mut reader = visitor.without_token();
    for path in ["/products/mug", "/_edge/v1/session", "/_edge/v1/cart"] {
        reader.send(far.get(path)).await;
        assert_eq!(reader.cookies.len(), 1, "{path}: {reader:?}");
    }
    let single = Shop::native(&[]).await;
    let mut visitor = Browser::default();
    visitor.log_in(&single, "ada").await;
    visitor.put(&single, "mug", 1).await;
    assert_eq!(visitor.cookies.keys().collect::<Vec<_>>(), ["__Host-session"]);
}

#[tokio::test]
async fn no_region_clears_the_cookie_of_a_session_that_it_does_not_know() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    regions.stop_replication();
    let app = far.store.app(&[]);
    let (now, token) = (app.clock.now(), Token::new(app.clock.now() - 2 * MAX_REPLICA_LAG).expect("a token"));
    for write in
        [["HSET", "login:", token.as_str(), "ada"], ["ZADD", "recent:", &now.as_secs().to_string(), token.as_str()]]
    {
        regions.home.store.raw(&write).await;
    }
    let pair = app.keyring.pair(&token).expect("a cookie");
    let (name, value) = pair.split_once('=').expect("a pair");
    let mut visitor = Browser { cookies: [(name.to_owned(), value.to_owned())].into() };
    assert_eq!(visitor.user(far).await, json!(null));
    assert_eq!(visitor.user(&regions.home).await, json!("ada"));
}

#[tokio::test]
async fn a_forged_token_costs_no_wait_and_a_true_one_at_most_the_bounded_wait() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    let mut visitor = Browser::default();
    visitor.log_in(far, "ada").await;
    eventually("the replica has it", async || visitor.without_token().user(far).await == json!("ada")).await;
    regions.stop_replication();
    let forwarded = far.store.gateway.forwarded();
    let mut forger = visitor.without_token();
    for id in ["a", "b"] {
        let value = format!("{}.{}", "A".repeat(80), "A".repeat(43));
        forger.cookies.insert(format!("__Host-session-sync-{id}"), value);
    }
    assert_eq!((forger.user(far).await, far.store.gateway.forwarded()), (json!("ada"), forwarded));
    visitor.put(far, "mug", 1).await;
    assert_eq!((visitor.quantity(far).await, far.store.gateway.forwarded()), (json!(1), forwarded + 2));
}

#[tokio::test]
async fn the_token_passes_between_the_tiers() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, other] = &regions.far;
    let tiers = far.tiers::<1>(&[("READ_REGIONS", "1")], false).await;
    regions.stop_replication();
    let mut visitor = Browser::default();
    visitor.put(&tiers.edge[0], "mug", 2).await;
    for shop in [&tiers.edge[0], other, &regions.home] {
        assert_eq!(visitor.quantity(shop).await, json!(2));
    }
    visitor.put(other, "mug", 3).await;
    assert_eq!(visitor.quantity(&tiers.edge[0]).await, json!(3));
}

/// Visits a stored page. Returns whether it came from Redis without the primary.
async fn is_near_hit(shop: &Shop, path: &str) -> bool {
    let is_hit = header_of(&shop.visit(path).await, "cache-status").contains("hit");
    is_hit && shop.blocking_and_forwarded().await.1 == 0
}

/// Stores a page, and waits until both replicas have it.
async fn store_everywhere(regions: &Regions, path: &str) {
    regions.home.visit(path).await;
    for far in &regions.far {
        eventually("the replica has the page", async || is_near_hit(far, path).await).await;
    }
}

const LONG: &str = "max-age=600, public";

#[tokio::test]
async fn a_hit_is_read_near_and_a_miss_asks_the_primary() {
    let regions = Regions::start(&[("PAGE_MEMORY", "0")], IMPATIENT).await;
    let [far, _] = &regions.far;
    for shop in regions.all() {
        shop.origin.answer(Reply::html("page").header("cache-control", LONG));
    }
    store_everywhere(&regions, "/a").await;
    for _ in 0..5 {
        assert!(is_near_hit(far, "/a").await);
    }
    assert_eq!(far.blocking_and_forwarded().await, (1, 0));
    far.visit("/b").await;
    assert_eq!(far.blocking_and_forwarded().await, (2, 1), "a miss needs the lease");
}

#[tokio::test]
async fn an_isolate_reads_what_it_purged_from_the_primary_and_others_are_the_lag_behind() {
    let regions = Regions::start(&[("PAGE_MEMORY", "0")], IMPATIENT).await;
    for shop in regions.all() {
        shop.origin.answer(Reply::html("old").header("cache-control", LONG));
    }
    store_everywhere(&regions, "/a").await;
    let [far, other] = &regions.far;
    regions.stop_replication();
    for shop in regions.all() {
        shop.origin.answer(Reply::html("new").header("cache-control", LONG));
    }
    let purge = far.request(Method::POST, "/_edge/v1/purge").bearer_auth(SERVICE_KEY);
    assert!(with_json(purge, &json!({"all": true})).send().await.unwrap().status().is_success());
    let text = async |shop: &Shop| shop.visit("/a").await.text().await.unwrap();
    for _ in 0..2 {
        assert_eq!(text(far).await, "new", "it purged the page itself");
        far.settled().await;
    }
    assert_eq!(text(other).await, "old", "the replica has not moved");
    regions.replicate();
    eventually("the purge arrives", async || text(other).await == "new").await;
}

#[tokio::test]
async fn a_lookup_shows_the_visitors_own_session() {
    let regions = Regions::start(&[("PAGE_MEMORY", "0")], IMPATIENT).await;
    regions.stop_replication();
    let mut visitor = Browser::default();
    visitor.log_in(&regions.far[0], "ada").await;
    for shop in regions.all() {
        shop.origin
            .answer_with(|asked| Reply::html(asked.header("edge-user").to_owned()).header("cache-control", "private"));
        assert_eq!(visitor.send(shop.get("/mine")).await.1, "ada");
    }
}

/// The requests that a visitor near a replica waits for. docs/scaling.md repeats the table.
#[tokio::test]
async fn a_visitor_waits_for_the_primary_only_where_the_table_says_so() {
    let variables = [("PATHS_PERSONAL", "/account"), ("PAGE_TTL", "3600")];
    let regions = Regions::start(&variables, PATIENT).await;
    let [far, _] = &regions.far;
    far.store.gateway.set_latency(ROUND_TRIP);
    let mut rows = Vec::new();
    let mut start = Instant::now();
    let mut note = async |action: &str| {
        let taken = start.elapsed();
        let (requests, forwarded) = far.blocking_and_forwarded().await;
        rows.push([action, &requests.to_string(), &forwarded.to_string()].map(str::to_owned));
        println!("{action}: {} ms", taken.as_millis());
        far.settled().await;
        start = Instant::now();
    };
    let mut visitor = Browser::default();
    make_popular(far, "mug").await;
    // The replica learns the scripts.
    far.visit("/products/pen").await;
    visitor.api(far, Method::GET, "/items/mug/related", None).await;
    far.settled().await;
    regions.home.origin.answer(Reply::html("cup").header("cache-control", LONG));
    let cup = async |shop: &Shop| shop.get("/products/cup").header("host", "shop.example").send().await.unwrap();
    cup(&regions.home).await;
    regions.home.settled().await;
    let keys = async |redis: &Redis| redis.run::<Vec<String>>(Command::read("KEYS").arg("cache:*")).await.unwrap();
    let stored = keys(&far.store.aside).await;
    assert!(!stored.is_empty());
    eventually("the replica has the page", async || keys(&far.store.redis).await.len() == stored.len()).await;
    note("warm").await;
    assert!(header_of(&cup(far).await, "cache-status").contains("hit"));
    note("page that only Redis has").await;
    far.visit("/products/mug").await;
    note("page that no cache has").await;
    far.visit("/products/mug").await;
    note("page in the isolate's memory").await;
    visitor.log_in(far, "ada").await;
    note("login").await;
    visitor.send(far.get("/account")).await;
    note("personal page").await;
    visitor.user(far).await;
    note("`GET /session`").await;
    visitor.put(far, "mug", 2).await;
    note("cart write").await;
    visitor.api(far, Method::GET, "/cart", None).await;
    note("`GET /cart`").await;
    visitor.api(far, Method::GET, "/recent", None).await;
    note("`GET /recent`").await;
    visitor.api(far, Method::GET, "/popular", None).await;
    note("`GET /popular`").await;
    visitor.api(far, Method::GET, "/items/mug/related", None).await;
    note("`GET /items/{item}/related`").await;
    visitor.log_out(far).await;
    note("logout").await;
    rows.remove(0);
    let heads = ["Action of a visitor near a replica", "requests to Redis", "answered by the primary"];
    document::hold("docs/scaling.md", "regions", &document::table(heads, rows));
}
