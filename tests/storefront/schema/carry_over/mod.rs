//! The move of the shared keys, `cargo xtask carry-over`.

/// Keys under both names.
mod both_names;

use std::{cell::Cell, rc::Rc, time::Duration};

use edgefront::{
    App,
    orders::flash_sale::FlashSales,
    ports::error::{Error, Refusal},
    schema::{
        self,
        carry_over::{CarryOverError, CarryOverProgress, HalfLives, SharedNames},
        families::{FAMILIES, FamilyRow, Group},
        ids::ItemId,
    },
};
use edgefront_gateway::{Fault, FaultScope};
use serde_json::{Value, json};
use upstash_rest::Command;

use super::shards::MINUTE;
use crate::{
    orders::flash_sale::put as put_row,
    sessions::{log_in, user},
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

/// Moves all keys. Returns the number of moved keys.
async fn carry_over(store: &Store, names: SharedNames) -> u64 {
    schema::carry_over::carry_over(&store.aside, names, HALF_LIVES, |_| (), async || ()).await.expect("a server").moved
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

/// A shop between the deployment of step 3 and the first call: isolates of step 2 and 3.
fn isolates(store: &Store) -> [Rc<App>; 2] {
    ["1, 4", "4, 1"].map(|known| store.app(&[("SHARDS", "4"), ("SHARDS_KNOWN", known)]))
}

#[tokio::test]
async fn a_sale_moves_with_its_reservations_and_sells_no_piece_twice() {
    let store = Store::book().await;
    let [before, after] = isolates(&store);
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
    assert_eq!(crate::support::rank(&after.redis, &mug).await.unwrap(), Some(0));
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
    let report = |progress: CarryOverProgress| {
        assert!(progress.seen <= progress.total);
        calls.set(calls.get() + 1);
        // The third call is executed, but neither it nor its repetition is answered.
        if calls.get() == 2 {
            store.gateway.set_fault(Some(Fault::LoseReply));
        }
    };
    let broken = schema::carry_over::carry_over(&store.redis, SharedNames::Tags, HALF_LIVES, report, async || ());
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
    schema::carry_over::carry_over(&store.redis, SharedNames::Tags, HALF_LIVES, |_| (), async || ()).await.unwrap();
    assert_eq!(count(&store, "cache:{pages}*").await, 6000);
}

#[tokio::test]
async fn a_cluster_has_nothing_to_move() {
    let store = Store::spread().await;
    let outcome =
        schema::carry_over::carry_over(&store.aside, SharedNames::Tags, HALF_LIVES, |_| (), async || ()).await;
    assert!(matches!(outcome, Err(CarryOverError::Cluster)));
}
