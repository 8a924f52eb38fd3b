//! The cart on a real server: as the book has it, and what the book leaves to chance.

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, Cart, CartWrite, Quantity},
    ports::error::Error,
    schema::{
        ids::{ItemId, UserId},
        token::Token,
    },
    sessions,
};
use edgefront_gateway::{Fault, FaultScope};
use futures_util::future::join_all;
use serde_json::json;

use crate::support::Store;

fn item(name: &str) -> ItemId {
    ItemId::parse(name).unwrap()
}

fn quantity(app: &Rc<App>, number: i64) -> Quantity {
    Quantity::parse(&json!(number), &app.config.cart).unwrap()
}

async fn try_set(app: &Rc<App>, token: Option<&Token>, name: &str, number: i64) -> Result<CartWrite, Error> {
    let number = quantity(app, number);
    carts::set_item(&app.redis, token, &item(name), number, app.clock.now(), &app.config).await
}

async fn set(app: &Rc<App>, token: &Token, name: &str, number: i64) -> Vec<(String, u32)> {
    lines(&try_set(app, Some(token), name, number).await.unwrap().cart)
}

async fn try_add(
    app: &Rc<App>,
    token: Option<&Token>,
    name: &str,
    number: i64,
    key: Option<&str>,
) -> Result<CartWrite, Error> {
    let number = quantity(app, number);
    carts::add_item(&app.redis, token, &item(name), number, key, app.clock.now(), &app.config).await
}

async fn add(app: &Rc<App>, token: &Token, name: &str, number: i64) -> Vec<(String, u32)> {
    lines(&try_add(app, Some(token), name, number, None).await.unwrap().cart)
}

async fn log_in(app: &Rc<App>) -> Token {
    let ada = UserId::parse("ada").unwrap();
    sessions::log_in(&app.redis, None, &ada, app.clock.now(), &app.config.session).await.unwrap()
}

async fn read(app: &Rc<App>, token: &Token) -> Option<Vec<(String, u32)>> {
    let read = carts::read(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
    read.map(|(_, cart)| lines(&cart))
}

fn lines(cart: &Cart) -> Vec<(String, u32)> {
    cart.lines.iter().map(|line| (line.item.to_string(), line.quantity)).collect()
}

/// What [`lines`] gives.
fn holds(lines: &[(&str, u32)]) -> Vec<(String, u32)> {
    lines.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

#[tokio::test]
async fn the_books_cart() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    assert_eq!(set(&app, &token, "mug", 3).await, holds(&[("mug", 3)]));
    assert_eq!(set(&app, &token, "mug", 2).await, holds(&[("mug", 2)]), "a set overwrites");
    assert_eq!(set(&app, &token, "cup", 1).await, holds(&[("cup", 1), ("mug", 2)]));
    let key = format!("cart:{}", token.as_str());
    assert_eq!(store.raw(&["HGET", &key, "mug"]).await, "2");
    assert_eq!(set(&app, &token, "cup", 0).await, holds(&[("mug", 2)]));
    assert_eq!(set(&app, &token, "mug", -1).await, holds(&[]), "0 and less remove");
    assert_eq!(store.raw(&["EXISTS", &key]).await, 0);

    set(&app, &token, "mug", 1).await;
    sessions::log_out(&app.redis, &token, app.clock.now(), &app.config.session).await.unwrap();
    assert_eq!(store.raw(&["EXISTS", &key]).await, 0, "it is deleted with its session");
}

#[tokio::test]
async fn the_first_item_starts_a_guests_session_and_the_next_joins_it() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let first = try_set(&app, None, "mug", 1).await.unwrap();
    let session = first.session.unwrap();
    assert!(first.created && session.user.is_none());
    let next = try_add(&app, Some(&session.token), "cup", 2, None).await.unwrap();
    assert!(!next.created);
    assert_eq!(next.session.unwrap().token, session.token);
    assert_eq!(read(&app, &session.token).await.unwrap(), holds(&[("cup", 2), ("mug", 1)]));
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 1);
}

#[tokio::test]
async fn nothing_to_remove_starts_no_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (dead, now) = (Token::new(app.clock.now()).unwrap(), app.clock.now());
    for token in [None, Some(&dead)] {
        let none = CartWrite { session: None, created: false, cart: Cart::default() };
        assert_eq!(carts::clear(&app.redis, token, now, &app.config).await, Ok(none.clone()));
        assert_eq!(carts::remove_item(&app.redis, token, &item("mug"), now, &app.config).await, Ok(none.clone()));
        assert_eq!(try_set(&app, token, "mug", -5).await, Ok(none));
    }
    assert_eq!(store.raw(&["DBSIZE"]).await, 0);
}

// D3
#[tokio::test]
async fn a_write_with_a_token_that_was_logged_out_starts_a_guests_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    sessions::log_out(&app.redis, &token, app.clock.now(), &app.config.session).await.unwrap();
    let write = try_set(&app, Some(&token), "cup", 1).await.unwrap();
    let session = write.session.unwrap();
    assert!(write.created && session.user.is_none() && session.token != token);
    assert_eq!(lines(&write.cart), holds(&[("cup", 1)]));
    assert_eq!(read(&app, &token).await, None);
    assert_eq!(store.raw(&["HEXISTS", "login:", token.as_str()]).await, 0);
}

// D7
#[tokio::test]
async fn a_write_after_the_idle_time_starts_a_guests_session() {
    let store = Store::new().await;
    let app = store.app(&[("SESSION_IDLE", "60")]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    store.clock.advance(Duration::from_secs(61));
    assert_eq!(read(&app, &token).await, None);
    let write = try_add(&app, Some(&token), "cup", 1, Some("key")).await.unwrap();
    assert!(write.created && write.session.unwrap().user.is_none());
    assert_eq!(lines(&write.cart), holds(&[("cup", 1)]));
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", token.as_str())]).await, json!(["mug", "1"]));
}

// D9
#[tokio::test]
async fn quantities_added_at_the_same_time_are_all_there() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    join_all((0..40).map(|_| add(&app, &token, "mug", 2))).await;
    assert_eq!(read(&app, &token).await.unwrap(), holds(&[("mug", 80)]));
}

// D9
#[tokio::test]
async fn what_is_added_stops_at_most_that_a_cart_holds_of_an_item() {
    let store = Store::new().await;
    let app = store.app(&[("CART_MAX_QUANTITY", "10")]);
    let token = log_in(&app).await;
    assert_eq!(add(&app, &token, "mug", 7).await, holds(&[("mug", 7)]));
    assert_eq!(add(&app, &token, "mug", 7).await, holds(&[("mug", 10)]));
    let none = try_add(&app, Some(&token), "mug", 0, None).await;
    assert_eq!(none, Err(Error::invalid("quantity", "must be at least 1")));
}

// D9
#[tokio::test]
async fn a_cart_is_full_at_so_many_different_items() {
    let store = Store::new().await;
    let app = store.app(&[("CART_MAX_LINES", "2")]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    set(&app, &token, "cup", 1).await;
    assert_eq!(try_set(&app, Some(&token), "bowl", 1).await, Err(Error::CartFull { limit: 2 }));
    assert_eq!(try_add(&app, Some(&token), "bowl", 1, None).await, Err(Error::CartFull { limit: 2 }));
    assert_eq!(add(&app, &token, "cup", 1).await, holds(&[("cup", 2), ("mug", 1)]), "what is in it may change");
    set(&app, &token, "mug", 0).await;
    assert_eq!(set(&app, &token, "bowl", 1).await, holds(&[("bowl", 1), ("cup", 2)]));
}

// D27
#[tokio::test]
async fn an_idempotency_key_makes_a_retry_harmless() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (token, other) = (log_in(&app).await, log_in(&app).await);
    let first = try_add(&app, Some(&token), "mug", 2, Some("key-1")).await;
    assert_eq!(lines(&first.as_ref().unwrap().cart), holds(&[("mug", 2)]));
    assert_eq!(try_add(&app, Some(&token), "mug", 2, Some("key-1")).await, first);
    assert_eq!(try_add(&app, Some(&token), "mug", 3, Some("key-1")).await, Err(Error::KeyReused));
    assert_eq!(try_add(&app, Some(&token), "cup", 2, Some("key-1")).await, Err(Error::KeyReused));
    assert_eq!(read(&app, &token).await.unwrap(), holds(&[("mug", 2)]));
    // Another key is another request, and so is another visitor's.
    try_add(&app, Some(&token), "mug", 2, Some("key-2")).await.unwrap();
    assert_eq!(read(&app, &token).await.unwrap(), holds(&[("mug", 4)]));
    let others = try_add(&app, Some(&other), "mug", 2, Some("key-1")).await.unwrap();
    assert_eq!(lines(&others.cart), holds(&[("mug", 2)]));
}

// D27
#[tokio::test]
async fn what_was_executed_before_the_reply_was_lost_is_not_added_again() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    add(&app, &token, "mug", 1).await;
    store.gateway.set_fault(Some(Fault::LoseReply));
    assert!(matches!(try_add(&app, Some(&token), "mug", 1, Some("key")).await, Err(Error::Redis(_))));
    store.gateway.set_fault(None);
    assert_eq!(read(&app, &token).await.unwrap(), holds(&[("mug", 2)]), "the client does not send it again by itself");
    try_add(&app, Some(&token), "mug", 1, Some("key")).await.unwrap();
    assert_eq!(read(&app, &token).await.unwrap(), holds(&[("mug", 2)]), "the visitor's retry changes nothing");
}

#[tokio::test]
async fn a_guests_first_write_is_sent_again_and_starts_one_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    // The server knows the script from now on.
    carts::clear(&app.redis, None, app.clock.now(), &app.config).await.unwrap();
    store.gateway.set_fault(Some(Fault::LoseReply));
    assert!(try_set(&app, None, "mug", 1).await.is_err());
    store.gateway.set_fault(None);
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 1);
}

#[tokio::test]
async fn lines_that_other_code_wrote_do_no_harm() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    let key = format!("cart:{}", token.as_str());
    store.raw(&["HSET", &key, "mug", "many", "a:b", "1", "cup", "2"]).await;
    assert_eq!(read(&app, &token).await.unwrap(), holds(&[("cup", 2)]));
    assert_eq!(add(&app, &token, "mug", 1).await, holds(&[("cup", 2), ("mug", 1)]));
}

#[tokio::test]
async fn every_call_is_one_request_and_a_write_says_that_somebody_was_here() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    set(&app, &token, "mug", 1).await;
    store.clock.advance(Duration::from_secs(5));
    let before = store.counts().requests;
    set(&app, &token, "mug", 2).await;
    add(&app, &token, "mug", 2).await;
    read(&app, &token).await.unwrap();
    carts::clear(&app.redis, Some(&token), app.clock.now(), &app.config).await.unwrap();
    assert_eq!(store.counts().requests - before, 4);
    assert_eq!(store.raw(&["ZSCORE", "recent:", token.as_str()]).await.as_str().map(str::parse::<f64>), {
        let now = app.clock.now().to_string();
        Some(now.parse())
    });
}

#[tokio::test]
async fn a_guest_whose_first_reply_was_lost_gets_their_session_by_the_second() {
    let store = Store::new().await;
    let app = store.app(&[]);
    // Redis knows the script from now on.
    try_set(&app, None, "cup", 1).await.unwrap();
    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(1));
    let write = try_set(&app, None, "mug", 2).await.unwrap();
    assert!(write.created, "its cookie must be set");
    let token = write.session.expect("a guest's").token;
    assert_eq!(read(&app, &token).await, Some(holds(&[("mug", 2)])));
}
