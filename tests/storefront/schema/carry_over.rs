//! The move of the shared keys, `cargo xtask carry-over`.

use std::{cell::Cell, rc::Rc, time::Duration};

use edgefront::{
    App,
    orders::{Customer, Order, flash_sale::FlashSales, insights},
    ports::{
        error::{Error, Refusal},
        time::Timestamp,
    },
    ranking,
    row_cache::{self, Schedule},
    schema::{
        self,
        carry_over::{CarryOverError, HalfLives, SharedNames},
        families::{FAMILIES, FamilyRow, Group},
        ids::ItemId,
    },
};
use edgefront_gateway::{Fault, FaultScope};
use serde_json::{Value, json};
use upstash_rest::Command;

use super::shards::{MINUTE, log_in, user};
use crate::{
    orders::flash_sale::put as put_row,
    support::{Store, row},
};

/// Keys in the book's names, as commands that write them.
const KEYS: [&[&str]; 15] = [
    &["ZADD", "viewed:", "-9", "mug", "-5", "cup"],
    &["SET", "rescaled:", "1795000000"],
    &["ZADD", "ranked:", "-9", "mug"],
    &["ZADD", "purged:", "5", "item:mug"],
    &["SET", "purged:latest", "5"],
    &["SET", "cache:aa", "page", "EX", "1000"],
    &["HSET", "variants:aa", "en", "page"],
    // 3 units of 64 bytes.
    &["ZADD", "stored:", "1795000000000", "aa", "-9007199254740989", "~aa", "3", ""],
    &["HSET", "order:A-1", "insights", "1", "flash:pan", "7", "cart", "1"],
    &["HSET", "order:{3}A-1", "cart", "1"],
    &["ZADD", "bought:", "2", "mug"],
    &["SET", "rescaled:bought", "1795000000"],
    &["HSET", "bought:mug", "", "1795000000 1 2 1", "cup", "1"],
    &["HSET", "led-to:mug", "", "1795000000 1 2 1", "cup", "1"],
    &["SET", "traffic:", "untouched"],
];

const WEEK: Duration = Duration::from_hours(168);
/// The defaults.
const HALF_LIVES: HalfLives = HalfLives { ranking: Duration::from_mins(5), insights: WEEK };

/// Moves all keys. Returns how many moved.
async fn carry_over(store: &Store, names: SharedNames) -> u64 {
    schema::carry_over::carry_over(&store.aside, names, HALF_LIVES, |_| ()).await.expect("a server").moved
}

/// Every key with a value that shows its content.
async fn content(store: &Store) -> Vec<(String, Value)> {
    let mut keys: Vec<String> = serde_json::from_value(store.raw(&["KEYS", "*"]).await).unwrap();
    keys.sort();
    let mut found = Vec::new();
    for key in keys {
        let kind = store.raw(&["TYPE", &key]).await;
        let value = match kind.as_str().unwrap() {
            "zset" => store.raw(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]).await,
            "hash" => store.raw(&["HGETALL", &key]).await,
            _ => store.raw(&["GET", &key]).await,
        };
        found.push((key, value));
    }
    found
}

fn at<'a>(content: &'a [(String, Value)], key: &str) -> &'a Value {
    &content.iter().find(|(name, _)| name == key).unwrap_or_else(|| panic!("no {key} in {content:?}")).1
}

async fn filled() -> Store {
    let store = Store::book().await;
    for command in KEYS {
        store.raw(command).await;
    }
    store
}

#[tokio::test]
async fn the_shared_keys_get_tags_and_lose_them_again() {
    let store = filled().await;
    let before = content(&store).await;

    carry_over(&store, SharedNames::Tags).await;
    let moved = content(&store).await;
    for key in ["viewed:{pages}", "rescaled:{pages}", "ranked:{pages}", "purged:{pages}", "purged:{pages}latest"] {
        at(&moved, key);
    }
    assert_eq!(at(&moved, "cache:{pages}aa"), "page");
    assert_eq!(at(&moved, "rescaled:{orders}bought"), "1795000000");
    assert_eq!(
        at(&moved, "order:A-1"),
        &json!(["insights", "1", "flash:pan", "7", "cart", "1"]),
        "the session's field"
    );
    assert_eq!(at(&moved, "order:{orders}A-1"), &json!(["insights", "1", "flash:{rows}pan", "7"]));
    assert_eq!(store.raw(&["TTL", "cache:{pages}aa"]).await.as_i64().map(|ttl| ttl > 900), Some(true));
    let others = ["order:A-1", "order:{3}A-1", "traffic:"];
    let untagged = moved.iter().filter(|(key, _)| !key.contains('{') && !others.contains(&key.as_str()));
    assert_eq!(untagged.count(), 0);
    assert_eq!(carry_over(&store, SharedNames::Tags).await, 0);
    assert_eq!(content(&store).await, moved);

    assert!(carry_over(&store, SharedNames::Book).await > 0);
    assert_eq!(content(&store).await, before);
    assert_eq!(carry_over(&store, SharedNames::Book).await, 0);
}

/// A new family must be added to the script, or to the exceptions in docs/scaling.md.
#[tokio::test]
async fn every_shared_key_moves_except_leases_and_reported_views() {
    let store = Store::book().await;
    let is_shared = |row: &&FamilyRow| matches!(row.group, Group::Pages | Group::Rows | Group::Orders);
    for row in FAMILIES.iter().filter(is_shared) {
        let pattern = row.pattern();
        let key = pattern.split_once('{').map_or(pattern.clone(), |(prefix, _)| format!("{prefix}x1"));
        match row.kind {
            "string" => store.raw(&["SET", &key, "1"]).await,
            "hash" => store.raw(&["HSET", &key, "x1", "1"]).await,
            "zset" => store.raw(&["ZADD", &key, "1", "x1"]).await,
            "list" => store.raw(&["RPUSH", &key, "x1"]).await,
            kind => panic!("a key of another kind: {kind}"),
        };
    }
    let moved = carry_over(&store, SharedNames::Tags).await;
    let mut left: Vec<String> = store.aside.run(Command::read("KEYS").arg("*")).await.unwrap();
    let count = left.len() as u64;
    left.retain(|key| !key.contains('{'));
    left.sort();
    assert_eq!((left, moved), (vec!["once:x1".to_owned(), "render:x1".to_owned()], count - 2));
}

#[tokio::test]
async fn what_both_names_have_is_added_up() {
    let store = filled().await;
    for command in [
        &["ZADD", "viewed:{pages}", "-1", "mug", "-2", "pot"][..],
        &["ZADD", "purged:{pages}", "9", "item:mug"],
        &["SET", "purged:{pages}latest", "9"],
        &["SET", "cache:{pages}aa", "newer"],
        &[
            "ZADD",
            "stored:{pages}",
            "1795000000001",
            "aa",
            "-9007199254740990",
            "~aa",
            "-9007199254740988",
            "~bb",
            "6",
            "",
        ],
    ] {
        store.raw(command).await;
    }
    carry_over(&store, SharedNames::Tags).await;
    let moved = content(&store).await;
    assert_eq!(at(&moved, "viewed:{pages}"), &json!(["mug", "-10", "cup", "-5", "pot", "-2"]));
    assert_eq!(
        (at(&moved, "purged:{pages}"), at(&moved, "purged:{pages}latest")),
        (&json!(["item:mug", "9"]), &json!("9"))
    );
    assert_eq!(at(&moved, "cache:{pages}aa"), "newer");
    // 2 + 4 units; the page that both accounts name counts once.
    assert_eq!(store.raw(&["ZSCORE", "stored:{pages}", ""]).await, "6");
}

/// A shop between the deployment of step 3 and the first call: isolates of step 2 and 3.
fn isolates(store: &Store) -> [Rc<App>; 2] {
    ["1, 4", "4, 1"].map(|known| store.app(&[("SHARDS", "4"), ("SHARDS_KNOWN", known)]))
}

/// Counts orders of these items by visitors who had viewed a lamp, the first one with this number.
async fn learn(app: &App, numbers: std::ops::Range<u32>, items: &[&str], now: Timestamp) {
    let lines: Vec<_> = items.iter().map(|id| json!({"id": id, "quantity": 1})).collect();
    for number in numbers {
        let order = json!({"order_id": number, "items": lines}).to_string();
        let order = Order::parse(&order, &app.config.cart).unwrap();
        let viewed = [ItemId::parse("lamp").unwrap()];
        assert!(insights::learn(&app.redis, &order, &viewed, now, &app.config.insights).await.unwrap());
    }
}

/// What a shop knows of the mug: its orders, the score of the pan, and the orders after views of the lamp.
async fn known(app: &App, now: Timestamp) -> (f64, f64, f64) {
    let [mug, lamp] = ["mug", "lamp"].map(|id| ItemId::parse(id).unwrap());
    let (redis, config) = (&app.redis, &app.config.insights);
    let orders = insights::item_stats(redis, &mug, now, config).await.unwrap().orders;
    let together = insights::bought_together(redis, &mug, 10, now, config).await.unwrap();
    let pan = together.iter().find(|other| other.item.as_str() == "pan").map_or(0.0, |pan| pan.score);
    (orders, pan, insights::bought_by_viewers(redis, &lamp, 10, now, config).await.unwrap().orders)
}

#[tokio::test]
async fn orders_that_both_names_have_are_added_up() {
    // The names that have more orders need not have more items.
    for (first, second) in [(8, 1), (1, 8)] {
        let store = Store::book().await;
        let ([before, after], now) = (isolates(&store), Timestamp::from_millis(1_795_000_000_000));
        learn(&before, 0..first, &["mug", "pan"], now).await;
        learn(&after, first..9, &["mug", "pan"], now).await;
        assert_eq!(first + second, 9);
        carry_over(&store, SharedNames::Tags).await;
        assert_eq!(known(&after, now).await, (9.0, 1.0, 9.0));
        // The number of items stays right.
        learn(&after, 9..10, &["mug", "pan", "cup"], now).await;
        let meta = store.raw(&["HGET", "bought:{orders}mug", ""]).await;
        assert!(meta.as_str().unwrap().ends_with(" 1 10 2"), "{meta}");
        assert_eq!(carry_over(&store, SharedNames::Tags).await, 0);
    }
}

#[tokio::test]
async fn counts_of_an_earlier_half_life_decay_before_they_are_added() {
    let store = Store::book().await;
    let ([before, after], now) = (isolates(&store), Timestamp::from_millis(1_795_000_000_000));
    learn(&before, 0..8, &["mug", "pan"], now).await;
    learn(&after, 8..9, &["mug", "pan"], now + WEEK * 2).await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(known(&after, now + WEEK * 2).await, (3.0, 1.0, 3.0));
    assert!(store.raw(&["TTL", "bought:{orders}mug"]).await.as_u64().unwrap() > 0);
    // An isolate of the former step, whose clock is behind.
    learn(&before, 9..13, &["mug", "pan"], now).await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(known(&after, now + WEEK * 2).await, (4.0, 1.0, 4.0));
}

#[tokio::test]
async fn views_of_an_earlier_half_life_decay_before_they_are_added() {
    let store = filled().await;
    for command in [&["ZADD", "viewed:{pages}", "-1", "mug"][..], &["SET", "rescaled:{pages}", "1795000600"]] {
        store.raw(command).await;
    }
    carry_over(&store, SharedNames::Tags).await;
    let moved = content(&store).await;
    assert_eq!(at(&moved, "viewed:{pages}"), &json!(["mug", "-3.25", "cup", "-1.25"]));
    assert_eq!(at(&moved, "rescaled:{pages}"), "1795000600");
    // Counts without a marker are of now.
    store.raw(&["ZADD", "viewed:", "-1", "mug"]).await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:{pages}", "mug"]).await, "-4.25");
}

/// Older versions wrote a JSON string.
#[tokio::test]
async fn insights_in_an_older_form_give_way_to_newer_ones() {
    let (text, hash) = (r#"{"began":1,"orders":1,"items":{}}"#, ["", "1795000000 1 2 1", "cup", "1"]);
    for (older, newer) in [("bought:mug", "bought:{orders}mug"), ("bought:{orders}mug", "bought:mug")] {
        let store = Store::book().await;
        store.raw(&["SET", older, text]).await;
        store.raw(&[&["HSET", newer][..], &hash].concat()).await;
        carry_over(&store, SharedNames::Tags).await;
        assert_eq!(content(&store).await, [("bought:{orders}mug".to_owned(), json!(hash))]);
    }
}

#[tokio::test]
async fn a_row_keeps_the_schedule_that_the_new_isolates_gave_it() {
    let store = Store::book().await;
    let ([before, after], pan) = (isolates(&store), row("pan"));
    let now = after.clock.now();
    row_cache::schedule(&before.redis, &pan, 5.0, now - MINUTE).await.unwrap();
    row_cache::schedule(&before.redis, &row("mug"), 5.0, now).await.unwrap();
    row_cache::schedule(&after.redis, &pan, 60.0, now).await.unwrap();
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(row_cache::schedule_of(&after.redis, &pan).await, Ok(Some(Schedule { every: 60.0, next: now })));
    assert_eq!(row_cache::schedule_of(&after.redis, &row("mug")).await, Ok(Some(Schedule { every: 5.0, next: now })));
}

#[tokio::test]
async fn an_order_that_is_reported_again_before_the_move_is_sold_once() {
    let store = Store::book().await;
    let ([before, after], ada) = (isolates(&store), user("ada"));
    let now = after.clock.now();
    let report = async |app: &App, order: &str| {
        let reservation = json!({"sale": "pan", "id": "1795000000.bTcyZTNiM2Y4YWI3NDkxOQ"});
        let order = json!({"order_id": order, "items": [{"id": "pan", "quantity": 1}], "reservation": reservation});
        let order = Order::parse(&order.to_string(), &app.config.cart).unwrap();
        let customer = Customer { token: None, user: Some(&ada) };
        order.settle(&app.redis, customer, now, &app.config.session).await.unwrap();
    };
    report(&before, "A-1").await;
    report(&before, "A-2").await;
    report(&after, "A-2").await;
    report(&after, "A-3").await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(store.raw(&["HGET", "flash:{rows}pan", "sold"]).await, "3");
}

#[tokio::test]
async fn the_later_window_of_a_sale_stays_alone_with_its_holds() {
    for (from, to) in [("1", "2"), ("2", "1")] {
        let store = Store::book().await;
        for (tag, window) in [("", from), ("{rows}", to)] {
            let (user, sale) = (format!("user-{window}"), format!("flash:{tag}pan"));
            let (hold, order) = (format!("hold:{user}"), format!("order:{window}"));
            store.raw(&["HSET", &sale, "window", window, "sold", "1", &hold, "id", &order, "bob"]).await;
            store.raw(&["ZADD", &format!("held:{tag}pan"), "9", &user]).await;
        }
        carry_over(&store, SharedNames::Tags).await;
        let expected = [
            ("flash:{rows}pan".to_owned(), json!(["window", "2", "sold", "1", "hold:user-2", "id", "order:2", "bob"])),
            ("held:{rows}pan".to_owned(), json!(["user-2", "9"])),
        ];
        assert_eq!(content(&store).await, expected);
    }
}

/// `sold` must outlive the sale, or its pieces are sold again.
#[tokio::test]
async fn a_key_that_both_names_have_lives_as_long_as_the_longer_one() {
    for (from, to) in [("1000", "2000"), ("2000", "1000")] {
        let store = Store::book().await;
        for (tag, ttl) in [("", from), ("{rows}", to)] {
            let (sale, held) = (format!("flash:{tag}pan"), format!("held:{tag}pan"));
            store.raw(&["HSET", &sale, "window", "1"]).await;
            store.raw(&["ZADD", &held, "9", "ada"]).await;
            store.raw(&["EXPIRE", &sale, ttl]).await;
            store.raw(&["EXPIRE", &held, ttl]).await;
        }
        carry_over(&store, SharedNames::Tags).await;
        for key in ["flash:{rows}pan", "held:{rows}pan"] {
            assert!(store.raw(&["TTL", key]).await.as_u64().unwrap() > 1900, "{key}");
        }
    }
}

#[tokio::test]
async fn a_sale_moves_with_its_reservations_and_sells_no_piece_twice() {
    let store = Store::book().await;
    let app = |known| store.app(&[("SHARDS", "4"), ("SHARDS_KNOWN", known)]);
    let (before, after) = (app("1, 4"), app("4, 1"));
    let (now, id) = (before.clock.now(), row("pan"));
    let (starts, ends) = (now - MINUTE, now + 60 * MINUTE);
    let pan = json!({
        "id": "pan", "sale_starts_at": starts.as_secs(), "sale_ends_at": ends.as_secs(), "sale_pieces": 1, "sale_sold": 0,
        "sale_price_cents": 900, "price_cents": 1200,
    });
    put_row(&store, "pan", &pan, ends).await;
    store.raw(&["ZADD", "viewed:", "-9", "mug"]).await;
    let (ada, bob) = (log_in(&before, None, "ada").await, log_in(&before, None, "bob").await);
    let reserve = async |app: &Rc<App>, token| {
        let sales = FlashSales { redis: &app.redis, source: None, config: &app.config };
        sales.reserve(&id, token, now).await.map(|outcome| outcome.created)
    };
    assert_eq!(reserve(&before, &ada).await, Ok(true));
    assert!(matches!(reserve(&after, &bob).await, Err(Error::NotFound(_))), "before the move");

    carry_over(&store, SharedNames::Tags).await;

    assert_eq!(reserve(&after, &ada).await, Ok(false), "her reservation is there");
    assert_eq!(reserve(&after, &bob).await, Err(Error::Refused(Refusal::SoldOut)));
    assert!(matches!(reserve(&before, &bob).await, Err(Error::NotFound(_))));
    let mug = ItemId::parse("mug").unwrap();
    assert_eq!(ranking::rank(&after.redis, &mug).await.unwrap(), Some(0));
}

/// Stores pages under the book's names, more than one call looks at.
async fn store_pages(store: &Store, count: usize) {
    for from in (0..count).step_by(1000) {
        let pages: Vec<_> = (from..count.min(from + 1000))
            .map(|number| Command::write("SET").arg(format!("cache:{number:x}")).arg("page"))
            .collect();
        store.aside.pipeline(&pages).await.unwrap();
    }
}

async fn count(store: &Store, pattern: &str) -> usize {
    store.aside.run::<Vec<String>>(Command::read("KEYS").arg(pattern)).await.unwrap().len()
}

#[tokio::test]
async fn a_run_that_breaks_off_is_finished_by_the_next_one_although_replies_are_lost() {
    let store = Store::book().await;
    store_pages(&store, 12_000).await;
    let calls = Cell::new(0);
    let broken = schema::carry_over::carry_over(&store.redis, SharedNames::Tags, HALF_LIVES, |progress| {
        assert!(progress.seen <= progress.total);
        calls.set(calls.get() + 1);
        // The third call is executed, but neither it nor its repetition is answered.
        if calls.get() == 2 {
            store.gateway.set_fault(Some(Fault::LoseReply));
        }
    });
    assert!(matches!(broken.await, Err(CarryOverError::Redis(error)) if error.is_transient()));
    store.gateway.set_fault(None);
    let left = carry_over(&store, SharedNames::Tags).await;
    assert!((1..12_000).contains(&left), "{left}");
    assert_eq!((count(&store, "cache:{pages}*").await, count(&store, "cache:*").await), (12_000, 12_000));
    assert_eq!(carry_over(&store, SharedNames::Tags).await, 0);
}

#[tokio::test]
async fn a_single_lost_reply_does_not_stop_it() {
    let store = Store::book().await;
    store_pages(&store, 6000).await;
    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Every(3));
    schema::carry_over::carry_over(&store.redis, SharedNames::Tags, HALF_LIVES, |_| ()).await.unwrap();
    assert_eq!(count(&store, "cache:{pages}*").await, 6000);
}

#[tokio::test]
async fn a_cluster_has_nothing_to_move() {
    let store = Store::spread().await;
    let outcome = schema::carry_over::carry_over(&store.aside, SharedNames::Tags, HALF_LIVES, |_| ()).await;
    assert!(matches!(outcome, Err(CarryOverError::Cluster)));
}
