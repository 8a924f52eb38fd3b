use edgefront::{
    carts::{CartChange, CartWriteOutcome},
    ports::error::Error,
};
use edgefront_gateway::{Fault, FaultScope};

use super::{add, change, expected, lines, log_in, read, try_add, try_set};
use crate::support::Store;

#[tokio::test]
async fn an_idempotency_key_makes_a_retry_harmless() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    let first = try_add(&app, Some(&token), "mug", 2, Some("key-1")).await;
    assert_eq!(lines(&first.as_ref().unwrap().cart), expected(&[("mug", 2)]));
    let repeated = CartWriteOutcome { additions: 0, starts_cart: false, ..first.unwrap() };
    assert_eq!(try_add(&app, Some(&token), "mug", 2, Some("key-1")).await, Ok(repeated));
    assert_eq!(try_add(&app, Some(&token), "mug", 3, Some("key-1")).await, Err(Error::KeyReused));
    assert_eq!(try_add(&app, Some(&token), "cup", 2, Some("key-1")).await, Err(Error::KeyReused));
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("mug", 2)]));
}

#[tokio::test]
async fn another_idempotency_key_or_another_session_is_another_request() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (token, other_token) = (log_in(&app).await, log_in(&app).await);
    try_add(&app, Some(&token), "mug", 2, Some("key-1")).await.unwrap();
    try_add(&app, Some(&token), "mug", 2, Some("key-2")).await.unwrap();
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("mug", 4)]));
    let other = try_add(&app, Some(&other_token), "mug", 2, Some("key-1")).await.unwrap();
    assert_eq!(lines(&other.cart), expected(&[("mug", 2)]));
}

#[tokio::test]
async fn an_add_that_was_executed_before_its_reply_was_lost_is_not_repeated() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    add(&app, &token, "mug", 1).await;
    store.gateway.set_fault(Some(Fault::LoseReply));
    assert!(matches!(try_add(&app, Some(&token), "mug", 1, Some("key")).await, Err(Error::Redis(_))));
    store.gateway.set_fault(None);
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("mug", 2)]), "the client does not resend an add");
    try_add(&app, Some(&token), "mug", 1, Some("key")).await.unwrap();
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("mug", 2)]), "the visitor's retry changes nothing");
}

#[tokio::test]
async fn a_quantity_that_was_set_before_its_reply_was_lost_is_not_set_again() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    add(&app, &token, "mug", 1).await;
    let received = store.gateway.received();
    store.gateway.set_fault(Some(Fault::LoseReply));
    assert!(matches!(try_set(&app, Some(&token), "mug", 3).await, Err(Error::Redis(_))));
    store.gateway.set_fault(None);
    assert_eq!(store.gateway.received(), received + 1, "between two executions, another request may write");
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("mug", 3)]));
}

#[tokio::test]
async fn a_guests_first_write_is_resent_and_starts_one_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    // Loads the script, so that the fault hits its execution.
    change(&app, None, CartChange::Clear).await.unwrap();
    store.gateway.set_fault(Some(Fault::LoseReply));
    assert!(try_set(&app, None, "mug", 1).await.is_err());
    store.gateway.set_fault(None);
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 1);
}

#[tokio::test]
async fn the_reply_to_a_resent_write_tells_a_guest_their_new_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    // Loads the script, so that the fault hits its execution.
    try_set(&app, None, "cup", 1).await.unwrap();
    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    let outcome = try_set(&app, None, "mug", 2).await.unwrap();
    assert!(outcome.created, "the response must set its cookie");
    let token = outcome.session.unwrap().token;
    assert_eq!(read(&app, &token).await, Some(expected(&[("mug", 2)])));
}
