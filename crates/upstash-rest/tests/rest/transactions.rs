//! Transactions.

use edgefront_gateway::{Fault, RequestKind};
use upstash_rest::{Command, Error, Reply, cmd};

use crate::support::{Database, LOST, get, incr, refused, wrong};

#[tokio::test]
async fn a_transaction_is_executed_as_a_whole_or_not_at_all() {
    let db = Database::new().await;
    assert_eq!(db.client.transaction::<(u64, u64)>(&[incr(), incr()]).await.unwrap(), (1, 2));
    let discarded = db.client.transaction::<Reply>(&[incr(), Command::write("NOSUCHCOMMAND")]).await;
    assert!(matches!(discarded, Err(Error::Unavailable)), "{discarded:?}");
    assert_eq!(db.number().await, Some(2));
}

#[tokio::test]
async fn the_first_error_of_a_transaction_is_its_error() {
    let db = Database::new().await;
    assert_eq!(db.client.transaction::<Reply>(&[incr(), wrong(), incr()]).await, refused("WRONGTYPE"));
    // Redis does not roll back: a command that fails while it runs leaves the others done.
    assert_eq!(db.number().await, Some(2));
}

#[tokio::test]
async fn a_transaction_of_typed_commands_gives_their_types() {
    let db = Database::new().await;
    let (first, added) = db.client.transaction((cmd::incr("n"), cmd::sadd("s", ["a", "b"]))).await.unwrap();
    assert_eq!((first, added), (1, 2));
    assert_eq!(db.gateway.log().last().map(|entry| entry.kind), Some(RequestKind::Transaction));
}

#[tokio::test]
async fn a_transaction_is_repeated_only_if_all_of_it_is_repeatable() {
    let db = Database::new().await;
    db.gateway.set_fault(Some(Fault::LoseReply));
    assert_eq!(db.client.transaction::<Reply>(&[incr(), get()]).await, Err(LOST));
    assert_eq!(db.counts().0, 1);
    assert_eq!(db.client.transaction((cmd::set("n", "7"), cmd::get("n"))).await.err(), Some(LOST));
    assert_eq!(db.counts().0, 3);
    assert_eq!(db.number().await, Some(7));
}
