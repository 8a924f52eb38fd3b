//! Carts on a real server: the book's behaviour, and the races that the book leaves open.

/// Repeated requests and lost replies.
mod retries;
/// Writes with and without a live session, and the limits of a cart.
mod write;

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, Cart, CartChange, CartWriteOutcome, CartWriteRequest, Quantity},
    ports::error::Error,
    schema::{ids::UserId, token::Token},
    sessions::{self, TOUCH_EVERY},
};
use serde_json::json;

use crate::support::{Store, item};

fn quantity(app: &Rc<App>, number: i64) -> Quantity {
    Quantity::parse(&json!(number), app.config.cart.max_quantity).unwrap()
}

async fn change(app: &Rc<App>, token: Option<&Token>, change: CartChange) -> Result<CartWriteOutcome, Error> {
    carts::change(&app.redis, token, &change, app.clock.now(), &app.config).await
}

async fn try_set(app: &Rc<App>, token: Option<&Token>, name: &str, number: i64) -> Result<CartWriteOutcome, Error> {
    change(app, token, CartChange::Set(item(name), quantity(app, number))).await
}

async fn set(app: &Rc<App>, token: &Token, name: &str, number: i64) -> Vec<(String, u32)> {
    lines(&try_set(app, Some(token), name, number).await.unwrap().cart)
}

async fn try_add(
    app: &Rc<App>,
    token: Option<&Token>,
    name: &str,
    number: i64,
    idempotency_key: Option<&str>,
) -> Result<CartWriteOutcome, Error> {
    let change = CartChange::Add(item(name), quantity(app, number));
    let request = CartWriteRequest { token, changes: &[change], idempotency_key };
    carts::write(&app.redis, &request, app.clock.now(), &app.config).await
}

async fn add(app: &Rc<App>, token: &Token, name: &str, number: i64) -> Vec<(String, u32)> {
    lines(&try_add(app, Some(token), name, number, None).await.unwrap().cart)
}

async fn log_in(app: &Rc<App>) -> Token {
    let ada = UserId::parse("ada").unwrap();
    crate::support::log_in(&app.redis, None, &ada, app.clock.now(), &app.config.session).await.unwrap()
}

async fn log_out(app: &Rc<App>, token: &Token) {
    sessions::log_out(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
}

async fn read(app: &Rc<App>, token: &Token) -> Option<Vec<(String, u32)>> {
    let read = carts::read(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
    read.map(|(_, cart)| lines(&cart))
}

fn lines(cart: &Cart) -> Vec<(String, u32)> {
    cart.lines.iter().map(|line| (line.item.to_string(), line.quantity)).collect()
}

/// The expected result of [`lines`].
fn expected(lines: &[(&str, u32)]) -> Vec<(String, u32)> {
    lines.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
}

#[tokio::test]
async fn carts_work_as_in_the_book() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    assert_eq!(set(&app, &token, "mug", 3).await, expected(&[("mug", 3)]));
    assert_eq!(set(&app, &token, "mug", 2).await, expected(&[("mug", 2)]), "a set overwrites");
    assert_eq!(set(&app, &token, "cup", 1).await, expected(&[("cup", 1), ("mug", 2)]));
    let key = format!("cart:{}", token.as_str());
    assert_eq!(store.raw(&["HGET", &key, "mug"]).await, "2");
    assert_eq!(set(&app, &token, "cup", 0).await, expected(&[("mug", 2)]));
    assert_eq!(set(&app, &token, "mug", -1).await, expected(&[]), "0 and less remove the item");
    assert_eq!(store.raw(&["EXISTS", &key]).await, 0);

    set(&app, &token, "mug", 1).await;
    log_out(&app, &token).await;
    assert_eq!(store.raw(&["EXISTS", &key]).await, 0, "the cart ends with its session");
}

#[tokio::test]
async fn lines_that_other_code_wrote_are_ignored() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    let key = format!("cart:{}", token.as_str());
    store.raw(&["HSET", &key, "mug", "many", "a:b", "1", "cup", "2"]).await;
    assert_eq!(read(&app, &token).await.unwrap(), expected(&[("cup", 2)]));
    assert_eq!(add(&app, &token, "mug", 1).await, expected(&[("cup", 2), ("mug", 1)]));
}

#[tokio::test]
async fn every_cart_call_costs_one_request_and_a_write_records_activity() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app).await;
    let began = store.raw(&["ZSCORE", "recent:", token.as_str()]).await;
    // A token names whole seconds.
    store.clock.advance(TOUCH_EVERY.saturating_sub(Duration::from_secs(1)));
    set(&app, &token, "mug", 1).await;
    assert_eq!(store.raw(&["ZSCORE", "recent:", token.as_str()]).await, began, "the session is young enough");
    store.clock.advance(TOUCH_EVERY);
    let before = store.counts().requests;
    set(&app, &token, "mug", 2).await;
    add(&app, &token, "mug", 2).await;
    read(&app, &token).await.unwrap();
    change(&app, Some(&token), CartChange::Clear).await.unwrap();
    assert_eq!(store.counts().requests - before, 4);
    let last_seen = store.raw(&["ZSCORE", "recent:", token.as_str()]).await;
    assert_eq!(last_seen.as_str().map(str::parse::<f64>), Some(app.clock.now().to_string().parse()));
}
