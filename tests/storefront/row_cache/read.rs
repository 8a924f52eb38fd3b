//! Reads of copies: a read makes up for a late cron, and for a missing copy.

use std::time::Duration;

use edgefront::{
    ports::error::Error,
    row_cache::{self, CachedRow},
};
use futures_util::future::join;
use serde_json::{Value, json};

use super::refreshed;
use crate::support::{Reply, Stock, eventually, row};

/// Reads make up for a dead cron.
#[tokio::test]
async fn an_overdue_row_is_marked_and_one_of_two_named_refreshes_loads_it() {
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
    assert_eq!(
        (one.refreshed + other.refreshed, stock.origin.count()),
        (1, 2),
        "one of the two refreshes loads the row"
    );
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
    assert_eq!(stock.read("mug").await, None, "the row is gone from the database");
}

/// The next refresh is nearer than the length of a lease, so its time alone could be that of a lease.
#[tokio::test]
async fn a_scheduled_row_without_a_copy_is_loaded_before_it_is_due() {
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
async fn a_row_that_is_being_loaded_is_not_loaded_twice() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let meanwhile = async {
        stock.store.clock.advance(Duration::from_secs(9));
        let answer = row_cache::read(&stock.app.redis, Some(&stock.source()), &row("mug"), stock.now()).await;
        assert_eq!(answer, Err(Error::NotYet));
    };
    let report = Box::pin(stock.refresh_while(meanwhile)).await;
    assert_eq!((report, stock.origin.count()), (refreshed(1), 1));
}

#[tokio::test]
async fn reads_do_not_overload_a_failing_source() {
    let stock = Stock::new().await;
    stock.schedule("mug", 5.0).await;
    stock.origin.answer(Reply::status(500));
    for _ in 0..5 {
        let answer = row_cache::read(&stock.app.redis, Some(&stock.source()), &row("mug"), stock.now()).await;
        assert_eq!(answer, Err(Error::NotYet));
    }
    assert_eq!(stock.origin.count(), 1);
}

#[tokio::test]
async fn a_read_takes_one_request_and_keeps_the_order_of_the_rows() {
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
    let found: Vec<_> = found.iter().map(|found| found.copy().map(|row| quantity(&row.json))).collect();
    assert_eq!(found, [Some(2), None, Some(1), Some(2)]);
}

#[tokio::test]
async fn the_time_of_a_slow_query_is_part_of_the_age() {
    let stock = Stock::new().await;
    let query = Duration::from_secs(9);
    let seconds = |row: Option<CachedRow>| row.unwrap().age.as_secs();
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    Box::pin(stock.refresh_while(async { stock.store.clock.advance(query) })).await;
    assert_eq!(seconds(stock.read("mug").await), 9);
    // Without a copy, the reader waits for the query.
    stock.store.raw(&["DEL", "inv:mug"]).await;
    stock.origin.hold();
    let meanwhile = async {
        eventually("the source is asked again", async || stock.origin.count() == 2).await;
        stock.store.clock.advance(query);
        stock.origin.release();
    };
    let (row, ()) = Box::pin(join(stock.read("mug"), meanwhile)).await;
    assert_eq!(seconds(row), 9);
    assert_eq!(seconds(stock.read("mug").await), 9);
}
