//! The test support itself, on which all other tests rely.

use std::time::Duration;

use edgefront::ports::time::Clock;
use edgefront_gateway::Fault;
use upstash_rest::Command;

use crate::support::{Reply, Shop, Store, TestOrigin, client, eventually};

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

#[tokio::test]
async fn a_shop_answers_and_its_log_is_kept() {
    let shop = Shop::native(&[]).await;
    assert_eq!(shop.visit("/_edge/nothing").await.status(), 404);
    shop.settled().await;
    assert_eq!(shop.logs(), Vec::<String>::new());
}

#[tokio::test]
async fn an_origin_answers_as_told_and_notes_what_it_was_asked() {
    let origin = TestOrigin::start();
    origin.answer(Reply::html("<p>").with_status(201).header("x-latin1", b"\xe9"));
    let answer = client().post(origin.url() + "/a?b").header("x-y", "z").body("hello").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["x-latin1"].as_bytes()), (201, b"\xe9".as_slice()));
    assert_eq!(answer.bytes().await.unwrap(), "<p>");
    let asked = origin.last();
    assert_eq!((asked.path.as_str(), asked.header("x-y"), asked.body.as_ref()), ("/a?b", "z", b"hello".as_slice()));
}

#[tokio::test]
async fn an_origin_truncates_or_omits_its_answer_as_told() {
    let origin = TestOrigin::start();
    origin.answer(Reply::truncated("half"));
    let answer = client().get(origin.url()).send().await.unwrap();
    assert_eq!(answer.headers()["content-length"], "1004");
    assert!(answer.bytes().await.is_err());
    origin.answer(Reply::nothing());
    assert!(client().get(origin.url()).send().await.is_err());
}

#[tokio::test]
async fn an_origin_sends_its_bytes_when_they_are_due() {
    let origin = TestOrigin::start();
    origin.answer(Reply::then_held("first", "last"));
    origin.hold();
    let mut answer = client().get(origin.url()).send().await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "first");
    origin.release();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "last");
    origin.answer(Reply::zeros(200_001));
    assert_eq!(client().get(origin.url()).send().await.unwrap().bytes().await.unwrap().len(), 200_001);
}

#[tokio::test]
async fn a_held_origin_has_been_asked_and_has_not_answered() {
    let origin = TestOrigin::start();
    origin.hold();
    let answer = tokio::spawn(client().get(origin.url()).send());
    eventually("the origin is asked", async || origin.count() == 1).await;
    assert!(!answer.is_finished());
    origin.release();
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
}
