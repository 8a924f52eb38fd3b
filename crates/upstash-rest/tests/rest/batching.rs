//! Batching: concurrent callers share requests.

use std::{collections::HashSet, time::Duration};

use edgefront_gateway::Fault;
use futures_util::{
    FutureExt,
    future::{join, join_all, join3},
};
use upstash_rest::{Reply, cmd};

use crate::support::{Database, LOST, get, incr, refused, wrong};

#[tokio::test]
async fn a_single_caller_waits_for_nobody() {
    let db = Database::new().await;
    for number in 1..=3 {
        assert_eq!(db.client.run::<u64>(incr()).await, Ok(number));
    }
    assert_eq!((db.watch.turns.get(), db.counts()), (0, (3, 3)));
}

#[tokio::test]
async fn concurrent_calls_share_a_request() {
    let db = Database::new().await;
    let calls = (0..18).map(|_| db.client.run::<u64>(incr()));
    let numbers: HashSet<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers, (1..=18).collect());
    // The first has nothing to wait for and is sent alone; 16 share one request, and one is left.
    assert_eq!(db.counts(), (3, 18));
}

#[tokio::test]
async fn fewer_calls_share_a_request_to_a_redis_that_is_far_away() {
    let db = Database::new().await;
    db.watch.start_clock();
    db.gateway.set_fault(Some(Fault::Slow(Duration::from_millis(20))));
    for number in 1..=5 {
        assert_eq!(db.client.run::<u64>(incr()).await, Ok(number));
    }
    let numbers = join_all((0..17).map(|_| db.client.run::<u64>(incr()))).await;
    assert!(numbers.iter().all(Result::is_ok), "{numbers:?}");
    // The first of the 17 is sent alone. The other 16 share two requests.
    assert_eq!(db.counts(), (5 + 3, 5 + 17));
}

#[tokio::test]
async fn short_calls_share_no_request_with_long_ones() {
    let db = Database::new().await;
    let page = cmd::set("page", "x".repeat(20 << 10));
    let pages = join_all((0..14).map(|_| db.client.run(page.clone())));
    let numbers = join_all((0..3).map(|_| db.client.run::<u64>(incr())));
    let (pages, numbers) = join(pages, numbers).await;
    assert!(pages.iter().all(Result::is_ok) && numbers.iter().all(Result::is_ok));
    // The first of each kind is sent alone. 6 pages share a request, twice, then one is left; the two other numbers
    // share one.
    assert_eq!(db.counts(), (6, 17));
}

#[tokio::test]
async fn few_calls_with_large_replies_share_a_request() {
    let db = Database::new().await;
    let large = || db.client.run::<Reply>(get().expecting(3 << 20));
    let (_, replies) = join(large(), join_all((0..4).map(|_| large()))).await;
    assert!(replies.iter().all(|reply| *reply == Ok(Reply::Nil)), "{replies:?}");
    assert_eq!(db.counts().0, 3);
}

#[tokio::test]
async fn each_caller_gets_its_own_replies_and_errors() {
    let db = Database::new().await;
    let several = [incr(), wrong(), incr()];
    let ahead = db.client.run::<u64>(incr());
    let shared = join3(db.client.run::<u64>(wrong()), db.client.pipeline(&several), db.client.run::<u64>(incr()));
    let (_, (one, several, last)) = join(ahead, shared).await;
    assert_eq!((one, last), (refused("WRONGTYPE"), Ok(4)));
    assert_eq!(several.unwrap(), [Ok(Reply::Integer(2)), refused("WRONGTYPE"), Ok(Reply::Integer(3))]);
    assert_eq!(db.counts().0, 2);
}

#[tokio::test]
async fn after_a_lost_reply_only_the_repeatable_calls_of_a_batch_are_sent_again() {
    let db = Database::new().await;
    db.gateway.set_fault(Some(Fault::LoseReply));
    let calls = [incr(), incr(), get(), incr(), get()].map(|command| db.client.run::<Reply>(command));
    assert_eq!(join_all(calls).await, [(); 5].map(|()| Err(LOST)));
    assert_eq!(db.number().await, Some(3));
    // One alone, one shared by four, and the two reads once more.
    assert_eq!(db.counts(), (4, 7));
}

#[tokio::test]
async fn a_follower_that_is_dropped_disturbs_nobody() {
    let db = Database::new().await;
    let dropped = async { assert!(db.client.run::<u64>(incr()).now_or_never().is_none()) };
    let calls = join3(db.client.run::<u64>(incr()), db.client.run::<u64>(incr()), dropped);
    let (calls, last) = join(calls, db.client.run::<u64>(incr())).await;
    assert_eq!((calls.0, calls.1, last), (Ok(1), Ok(2), Ok(4)), "its command was sent");
    assert_eq!(db.counts(), (2, 4));
}

#[tokio::test]
async fn a_leader_that_is_dropped_tells_its_followers() {
    let db = Database::new().await;
    let mut ahead = Box::pin(db.client.run::<u64>(incr()));
    let mut leader = Box::pin(db.client.run::<u64>(incr()));
    let mut writer = Box::pin(db.client.run::<u64>(incr()));
    let mut reader = Box::pin(db.client.run::<u64>(get()));
    for call in [&mut ahead, &mut leader, &mut writer] {
        assert!(call.as_mut().now_or_never().is_none());
    }
    assert!(reader.as_mut().now_or_never().is_none());
    drop(leader);
    assert_eq!(ahead.await, Ok(1));
    assert_eq!((writer.await, reader.await), (Err(LOST), Ok(1)), "a reader tries again by itself");
    assert_eq!(db.client.run::<u64>(incr()).await, Ok(2), "the batch was not sent");
}

#[tokio::test]
async fn a_leader_that_is_dropped_in_flight_leaves_no_batch_behind() {
    let db = Database::new().await;
    assert!(db.client.run::<u64>(incr()).now_or_never().is_none());
    assert!(db.client.run::<u64>(incr()).await.is_ok());
    assert_eq!(db.watch.turns.get(), 0, "nothing is in flight any more");
}
