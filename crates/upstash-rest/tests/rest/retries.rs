//! Retries after lost replies, and deadlines.

use std::time::{Duration, Instant};

use edgefront_gateway::{Fault, FaultScope};
use futures_util::future::join_all;
use upstash_rest::{Command, Error, Reply, TransportError, cmd};

use crate::support::{Database, LATE, LOST, get, incr};

#[tokio::test]
async fn a_write_whose_reply_is_lost_is_not_sent_again() {
    let db = Database::new().await;
    db.gateway.set_fault(Some(Fault::LoseReply));
    assert_eq!(db.client.run::<u64>(incr()).await, Err(LOST));
    assert_eq!(db.number().await, Some(1));
}

#[tokio::test]
async fn reads_and_repeatable_writes_are_tried_twice() {
    let db = Database::new().await;
    db.gateway.set_fault(Some(Fault::LoseReply));
    assert_eq!(db.client.run::<Reply>(get()).await, Err(LOST));
    assert_eq!(db.counts().0, 2);
    assert_eq!(db.client.run::<Reply>(Command::write("DEL").arg("n").repeatable()).await, Err(LOST));
    assert_eq!(db.counts().0, 4);
    assert_eq!(db.client.pipeline(&[get(), incr()]).await, Err(LOST));
    assert_eq!(db.counts().0, 5);
}

#[tokio::test]
async fn the_second_attempt_gives_the_reply() {
    let db = Database::new().await;
    db.aside::<()>(Command::write("SET").arg("n").arg("7")).await;
    let bodies = ["<html>", r#"{"error":"ERR the connection to Redis broke, the command may have been executed"}"#];
    let failures = bodies.map(|body| Fault::Status(502, body.to_owned()));
    for fault in [Fault::LoseReply, Fault::Truncate, Fault::Garbage].into_iter().chain(failures) {
        db.gateway.set_fault_for(fault.clone(), FaultScope::Next(1));
        assert_eq!(db.client.run::<u64>(get()).await, Ok(7), "{fault:?}");
    }
    db.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    assert_eq!(db.client.run(cmd::set("k", [0xff])).await, Ok(()), "a raw body, too");
}

#[tokio::test]
async fn the_first_error_is_told_if_both_attempts_fail() {
    let db = Database::new().await;
    db.watch.budget.set(1);
    db.gateway.set_fault(Some(Fault::Garbage));
    assert_eq!(db.client.run::<Reply>(get()).await, Err(Error::NotRest { status: 200 }));
    assert_eq!(db.watch.requests.borrow().len(), 2);
}

#[tokio::test]
async fn an_error_that_will_not_pass_is_not_tried_again() {
    let db = Database::new().await;
    for (fault, error) in [
        (Fault::quota(), Error::Quota),
        (Fault::Status(404, "<html>".to_owned()), Error::NotRest { status: 404 }),
        (Fault::Status(401, "{}".to_owned()), Error::Unauthorized),
    ] {
        db.gateway.set_fault(Some(fault));
        let before = db.gateway.received();
        assert_eq!(db.client.run::<Reply>(get()).await, Err(error));
        assert_eq!(db.gateway.received() - before, 1);
    }
}

#[tokio::test]
async fn a_request_that_the_transport_refuses_is_not_tried_again() {
    let db = Database::new().await;
    db.watch.budget.set(0);
    let refused = Error::Transport(TransportError::NotSent("no requests are left"));
    assert_eq!(db.client.run::<Reply>(get()).await, Err(refused.clone()));
    assert_eq!(refused.to_string(), "no requests are left");
    assert_eq!((db.watch.requests.borrow().len(), db.counts()), (1, (0, 0)));
}

#[tokio::test]
async fn no_call_outlives_its_deadline() {
    let db = Database::new().await;
    db.watch.start_clock();
    let client = db.client.with_deadline(Duration::from_millis(100));
    db.gateway.set_fault(Some(Fault::Slow(Duration::from_secs(30))));
    let begin = Instant::now();
    assert_eq!(client.run::<Reply>(get()).await, Err(LATE));
    assert!(begin.elapsed() < Duration::from_secs(10));
    // The deadline left no time for a second attempt.
    assert_eq!(db.watch.requests.borrow().len(), 1);
}

#[tokio::test]
async fn no_follower_waits_beyond_its_deadline() {
    let db = Database::new().await;
    let client = db.client.with_deadline(Duration::from_millis(100));
    db.gateway.set_fault(Some(Fault::Slow(Duration::from_secs(30))));
    let results = join_all((0..5).map(|_| client.run::<Reply>(get()))).await;
    assert_eq!(results, [(); 5].map(|()| Err(LATE)));
}
