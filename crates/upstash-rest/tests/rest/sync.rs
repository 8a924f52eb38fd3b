//! Sync tokens of users who share a client.

use std::rc::Rc;

use edgefront_gateway::{Fault, FaultScope};
use futures_util::future::{join, join3};
use http::HeaderValue;
use upstash_rest::{Command, SyncScope, TransportError};

use crate::support::{Database, get, incr, unused_database};

fn scope() -> Rc<SyncScope> {
    Rc::default()
}

fn of(token: &'static str) -> Rc<SyncScope> {
    SyncScope::new(Some(HeaderValue::from_static(token))).into()
}

/// The sync token of each request that was sent; "" without one.
fn tokens(db: &Database) -> Vec<String> {
    let requests = db.watch.requests.borrow();
    let token = |request: &http::Request<_>| request.headers().get("upstash-sync-token").cloned();
    requests
        .iter()
        .map(|request| token(request).map(|token| token.to_str().unwrap().to_owned()).unwrap_or_default())
        .collect()
}

async fn run(db: &Database, scope: &Rc<SyncScope>, command: Command) -> Option<u64> {
    db.client.in_scope(Some(scope.clone()), db.client.run(command)).await.unwrap()
}

#[tokio::test]
async fn a_scope_sends_the_token_of_its_last_synced_write() {
    let db = Database::new().await;
    let scope = scope();
    for command in [get(), incr(), get(), incr().synced(), get(), get()] {
        run(&db, &scope, command).await;
    }
    assert_eq!(tokens(&db), ["", "", "", "", "4", "4"]);
    assert_eq!(scope.take_written().unwrap(), "4");
    let later = of("4");
    run(&db, &later, get()).await;
    assert_eq!((tokens(&db).pop().unwrap().as_str(), later.take_written()), ("4", None));
}

#[tokio::test]
async fn no_scope_waits_for_the_writes_of_another() {
    let db = Database::new().await;
    let (ada, bob) = (scope(), scope());
    run(&db, &ada, incr().synced()).await;
    run(&db, &bob, get()).await;
    db.client.run::<Option<u64>>(get()).await.unwrap();
    run(&db, &bob, get()).await;
    db.client.run::<Option<u64>>(get()).await.unwrap();
    assert_eq!(tokens(&db), ["", "", "", "", "3"], "a client without a scope sends the last token");
    assert!(ada.take_written().is_some() && bob.take_written().is_none());
}

#[tokio::test]
async fn concurrent_calls_share_a_request_if_token_and_kind_are_equal() {
    let db = Database::new().await;
    let ahead = || async { join(run(&db, &scope(), get()), run(&db, &scope(), incr())).await };
    let (one, other, ada) = (scope(), scope(), of("1"));
    let reads = join3(run(&db, &one, get()), run(&db, &other, get()), run(&db, &ada, get()));
    let writes = join3(run(&db, &one, incr().synced()), run(&db, &other, incr()), run(&db, &ada, incr()));
    join3(Box::pin(ahead()), Box::pin(reads), Box::pin(writes)).await;
    // Those ahead are alone. Then come the calls without a token and the one with a token, of each kind.
    assert_eq!(db.counts(), (6, 8));
    assert!(
        one.take_written().is_some() && other.take_written().is_none(),
        "only one caller of the request has marked its write"
    );
}

#[tokio::test]
async fn each_kind_of_call_keeps_the_token() {
    let db = Database::new().await;
    let write = || Command::write("SET").arg("k");
    let scope = scope();
    let transaction = [write().arg("1").synced(), get()];
    db.client
        .in_scope(Some(scope.clone()), db.client.transaction::<(String, Option<u64>)>(&transaction))
        .await
        .unwrap();
    assert_eq!(scope.take_written().unwrap(), "1");
    let bytes = write().arg([0xff]).synced();
    db.client.in_scope(Some(scope.clone()), db.client.run::<String>(bytes)).await.unwrap();
    assert_eq!(scope.take_written().unwrap(), "2");
}

#[tokio::test]
async fn a_user_reads_their_write_from_a_replica_that_lags_and_others_do_not_wait() {
    let db = Database::new().await;
    db.gateway.set_fault(Some(Fault::StaleReads(unused_database())));
    let (ada, bob) = (scope(), scope());
    run(&db, &ada, incr().synced()).await;
    assert_eq!((run(&db, &ada, get()).await, run(&db, &bob, get()).await), (Some(1), None));
    let elsewhere = SyncScope::new(ada.take_written()).into();
    let other = db.client.with_deadline(crate::support::DEADLINE);
    assert_eq!(other.in_scope(Some(elsewhere), other.run(get())).await, Ok(Some(1_u64)));
}

#[tokio::test]
async fn the_handles_of_a_client_read_each_others_writes() {
    let db = Database::new().await;
    db.gateway.set_fault(Some(Fault::StaleReads(unused_database())));
    let other = db.client.with_deadline(crate::support::DEADLINE);
    let reply: u64 = db.client.run(incr()).await.unwrap();
    assert_eq!(other.run(get()).await, Ok(Some(reply)));
}

#[tokio::test]
async fn a_scope_knows_a_lost_write_and_can_refuse_reads() {
    let db = Database::new().await;
    let ada = scope();
    db.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    assert!(db.client.in_scope(Some(ada.clone()), db.client.run::<u64>(incr().synced())).await.is_err());
    assert_eq!((ada.take_written(), ada.take_lost_write(), ada.take_lost_write()), (None, true, false));
    let (transaction, bytes) = ([incr().synced()], Command::write("SET").arg("k").arg([0xff]).synced());
    db.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    assert!(db.client.in_scope(Some(ada.clone()), db.client.transaction::<(u64,)>(&transaction)).await.is_err());
    assert!(ada.take_lost_write(), "a transaction");
    db.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    assert!(db.client.in_scope(Some(ada.clone()), db.client.run::<String>(bytes)).await.is_err());
    assert!(ada.take_lost_write(), "a command with bytes");
    assert_eq!(run(&db, &scope(), Command::write("DEL").arg("n")).await, Some(1));
    ada.refuse_reads();
    let read = db.client.in_scope(Some(ada.clone()), db.client.run::<Option<u64>>(get())).await;
    assert_eq!(read, Err(TransportError::Unreachable.into()));
    assert_eq!(run(&db, &ada, incr().synced()).await, Some(1), "writes pass");
}
