//! Reads of copies: a reader makes up for a cron that is late, and for a copy that is missing.

use std::time::Duration;

use edgefront::{ports::error::Error, row_cache};
use futures_util::future::join;
use serde_json::{Value, json};

use super::refreshed;
use crate::support::{Reply, Stock, row};

/// D24: a dead cron is made up for by the readers.
#[tokio::test]
async fn a_row_whose_turn_was_missed_says_so_and_a_refresh_by_name_renews_it() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    stock.refresh().await;
    stock.put("mug", 2);
    stock.store.clock.advance(Duration::from_secs(10));
    assert!(!stock.read("mug").await.unwrap().overdue, "only one period late");
    stock.store.clock.advance(Duration::from_secs(1));
    assert!(stock.read("mug").await.unwrap().overdue);
    let refresh =
        || async { row_cache::refresh(&stock.app.redis, &stock.source(), &[row("mug")], stock.now()).await.unwrap() };
    let (one, other) = join(refresh(), refresh()).await;
    assert_eq!((one.refreshed + other.refreshed, stock.origin.count()), (1, 2), "one of two readers does it");
    assert!(!stock.read("mug").await.unwrap().overdue);
    assert_eq!(stock.copied("mug").await, 2);
}

#[tokio::test]
async fn a_scheduled_row_without_a_copy_is_loaded_at_once() {
    let stock = Stock::new().await;
    stock.put("mug", 7);
    stock.schedule("mug", 3_600.0).await;
    for _ in ["just scheduled", "evicted"] {
        let row = stock.read("mug").await.unwrap();
        let read: Value = serde_json::from_slice(&row.json).unwrap();
        assert_eq!((&read["quantity"], row.age, row.overdue), (&json!(7), Duration::ZERO, false));
        assert_eq!(stock.copied("mug").await, 7);
        stock.store.raw(&["DEL", "inv:mug"]).await;
    }
    stock.delete("mug");
    assert_eq!(stock.read("mug").await, None, "the database does not know it");
}

/// Its next turn is nearer than a lease is long, so by its time alone it could be leased.
#[tokio::test]
async fn a_scheduled_row_whose_copy_is_lost_is_loaded_before_its_turn() {
    let stock = Stock::new().await;
    for (id, every) in [("mug", 5.0), ("lamp", 3_600.0)] {
        stock.put(id, 7);
        stock.schedule(id, every).await;
    }
    stock.refresh().await;
    let soon = (stock.now() + Duration::from_secs(8)).to_string();
    stock.store.raw(&["ZADD", "schedule:", &soon, "lamp"]).await;
    stock.store.raw(&["DEL", "inv:mug", "inv:lamp"]).await;
    stock.store.clock.advance(Duration::from_secs(1));
    for id in ["mug", "lamp"] {
        assert!(stock.read(id).await.is_some(), "{id}");
        assert_eq!(stock.copied(id).await, 7, "{id}");
    }
}

#[tokio::test]
async fn a_row_that_is_being_loaded_is_not_loaded_twice_though_its_copy_is_missing() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let meanwhile = async {
        stock.store.clock.advance(Duration::from_secs(9));
        let answer = row_cache::read(&stock.app.redis, Some(&stock.source()), &row("mug"), stock.now()).await;
        assert_eq!(answer, Err(Error::NotYet("row")));
    };
    let report = stock.refresh_while(meanwhile).await;
    assert_eq!((report, stock.origin.count()), (refreshed(1), 1));
}

#[tokio::test]
async fn readers_do_not_hammer_a_source_that_fails() {
    let stock = Stock::new().await;
    stock.schedule("mug", 5.0).await;
    stock.origin.answer(Reply::status(500));
    for _ in 0..5 {
        let answer = row_cache::read(&stock.app.redis, Some(&stock.source()), &row("mug"), stock.now()).await;
        assert_eq!(answer, Err(Error::NotYet("row")));
    }
    assert_eq!(stock.origin.count(), 1);
}

#[tokio::test]
async fn a_read_is_one_request_and_rows_come_in_the_asked_order() {
    let stock = Stock::new().await;
    for (id, quantity) in [("mug", 1), ("lamp", 2)] {
        stock.put(id, quantity);
        stock.schedule(id, 60.0).await;
    }
    stock.refresh().await;
    let before = stock.store.counts().requests;
    stock.read("mug").await.unwrap();
    assert_eq!(stock.store.counts().requests - before, 1);
    let rows = ["lamp", "unknown", "mug", "lamp"].map(row);
    let found = row_cache::read_many(&stock.app.redis, None, &rows, stock.now()).await.unwrap();
    assert_eq!(stock.store.counts().requests - before, 2);
    let quantity = |json: &[u8]| serde_json::from_slice::<Value>(json).unwrap()["quantity"].as_u64().unwrap();
    let found: Vec<_> = found.iter().map(|found| found.as_ref().map(|row| quantity(&row.json))).collect();
    assert_eq!(found, [Some(2), None, Some(1), Some(2)]);
}
