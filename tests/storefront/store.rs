//! The support itself: what every other test takes for granted.

use std::time::Duration;

use edgefront::{time::Clock, upstash::Command};
use edgefront_gateway::Fault;

use crate::support::Store;

#[tokio::test]
async fn a_store_is_empty_and_nobody_elses() {
    let (one, other) = (Store::new().await, Store::new().await);
    one.raw(&["SET", "a", "1"]).await;
    assert_eq!(one.raw(&["GET", "a"]).await, "1");
    assert_eq!(other.raw(&["DBSIZE"]).await, 0);
}

#[tokio::test]
async fn requests_of_the_client_are_counted_and_those_of_the_test_are_not() {
    let store = Store::new().await;
    store.raw(&["SET", "a", "1"]).await;
    let commands = [Command::read("GET").arg("a"), Command::read("GET").arg("b")];
    let replies: (String, Option<String>) = store.redis.all(&commands).await.unwrap();
    assert_eq!(replies, ("1".to_owned(), None));
    assert_eq!((store.counts().requests, store.counts().commands), (1, 2));
}

#[tokio::test]
async fn a_fault_meets_the_client_and_not_the_test() {
    let store = Store::new().await;
    store.gateway.set_fault(Some(Fault::Refuse));
    assert!(store.redis.run::<()>(Command::write("SET").arg("a").arg("1")).await.is_err());
    assert_eq!(store.raw(&["EXISTS", "a"]).await, 0);
    store.gateway.set_fault(None);
    assert!(store.redis.run::<()>(Command::write("SET").arg("a").arg("1")).await.is_ok());
}

#[tokio::test]
async fn a_sleep_moves_a_standing_clock_at_once() {
    let store = Store::new().await;
    let start = store.clock.now();
    assert_eq!(store.clock.now(), start);
    store.clock.sleep(Duration::from_hours(1)).await;
    store.clock.advance(Duration::from_millis(5));
    assert_eq!(store.clock.now().since(start), Duration::from_millis(3_600_005));
}
