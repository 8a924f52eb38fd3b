//! Sessions on a real server: the book's behaviour, and the races that the book leaves open.

/// The end of idle sessions and of those over the limit.
mod cleanup;
/// A new token for each login, and retries.
mod login;
/// The end of one session, and of all sessions of a user.
mod logout;
/// Activity, viewed items and the views that count.
mod touch;

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, CartChange, Quantity},
    ports::time::Timestamp,
    ranking::activity::Viewer,
    schema::{ids::UserId, token::Token},
    sessions::{self, SessionTouch, TOUCH_EVERY, TouchOutcome},
};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Store, item};

pub fn user(name: &str) -> UserId {
    UserId::parse(name).unwrap()
}

/// Logs a user in, and ends the session of `old_token`.
pub async fn log_in(app: &Rc<App>, old_token: Option<&Token>, name: &str) -> Token {
    crate::support::log_in(&app.redis, old_token, &user(name), app.clock.now(), &app.config.session).await.unwrap()
}

pub async fn log_out(app: &Rc<App>, token: &Token) {
    sessions::log_out(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
}

/// The user of a live session, `""` for a guest's; `None` if the session is not live.
async fn user_of(app: &Rc<App>, token: &Token) -> Option<String> {
    let session = sessions::check(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap()?;
    Some(session.user.map_or_else(String::new, |user| user.to_string()))
}

/// Records an activity at once, without the ranking.
async fn touch(app: &Rc<App>, token: &Token, name: Option<&str>, at: Timestamp) -> TouchOutcome {
    let touch = SessionTouch { token: token.clone(), item: name.map(item), at };
    crate::support::touch(&app.redis, &touch, &app.config.session).await.unwrap()
}

/// Records a view as the storefront does, and waits until it is written.
pub async fn view(app: &Rc<App>, token: &Token, name: &str) {
    let now = app.clock.now();
    app.activity.record_visit(Viewer { token: Some(token), network: None }, Some(&item(name)), now);
    if let Some(work) = app.activity.flush(&app.redis, &app.clock, &app.limits.views, now) {
        work.await;
    }
}

async fn viewed_items(app: &Rc<App>, token: &Token) -> Option<Vec<String>> {
    let read = sessions::read_viewed_items(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
    read.map(|(_, items)| items.iter().map(ToString::to_string).collect())
}

/// Starts a guest's session with two mugs in its cart.
async fn guest(app: &Rc<App>) -> Token {
    put_mugs(app, None, app.clock.now()).await
}

/// Puts two mugs into the cart of `token` and returns the session's token.
async fn put_mugs(app: &Rc<App>, token: Option<&Token>, now: Timestamp) -> Token {
    let change = CartChange::Set(item("mug"), Quantity::parse(&json!(2), app.config.cart.max_quantity).unwrap());
    carts::change(&app.redis, token, &change, now, &app.config).await.unwrap().session.unwrap().token
}

/// The list in a reply, sorted.
fn sorted(list: Value) -> Vec<String> {
    let mut list: Vec<String> = serde_json::from_value(list).unwrap();
    list.sort();
    list
}

#[tokio::test]
async fn sessions_work_as_in_the_book() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app, None, "ada").await;
    assert_eq!(user_of(&app, &token).await.as_deref(), Some("ada"));

    store.clock.advance(TOUCH_EVERY + Duration::from_millis(500));
    view(&app, &token, "mug").await;
    let now = app.clock.now();
    view(&app, &token, "cup").await;

    // Reads as code that was written against the book.
    let text = token.as_str();
    assert_eq!(store.raw(&["HGET", "login:", text]).await, "ada");
    let last_seen: Value = store.raw(&["ZSCORE", "recent:", text]).await;
    assert_eq!(Timestamp::from_score(last_seen.as_str().unwrap().parse().unwrap()), now);
    let viewed = format!("viewed:{text}");
    assert_eq!(store.raw(&["ZRANGE", &viewed, "0", "-1"]).await, json!(["mug", "cup"]));
    assert_eq!(store.raw(&["ZRANGE", "viewed:", "0", "-1", "WITHSCORES"]).await, json!(["cup", "-1", "mug", "-1"]));

    log_out(&app, &token).await;
    assert_eq!(user_of(&app, &token).await, None);
    assert_eq!(store.raw(&["EXISTS", "login:", "recent:", &viewed]).await, 0);
}

#[tokio::test]
async fn an_idle_session_is_not_live_even_before_the_cleanup() {
    let store = Store::new().await;
    let app = store.app(&[("SESSION_IDLE", "60")]);
    let token = log_in(&app, None, "ada").await;
    store.clock.advance(Duration::from_mins(1));
    assert_eq!(user_of(&app, &token).await.as_deref(), Some("ada"));
    store.clock.advance(Duration::from_millis(1));
    assert_eq!(user_of(&app, &token).await, None);
    assert_eq!(touch(&app, &token, Some("mug"), app.clock.now()).await, TouchOutcome::Ended);
    assert_eq!(viewed_items(&app, &token).await, None);
}

#[tokio::test]
async fn every_session_call_costs_one_request() {
    let store = Store::new().await;
    let app = store.app(&[]);
    // Loads the scripts.
    let first = log_in(&app, None, "ada").await;
    view(&app, &first, "mug").await;
    log_out(&app, &first).await;
    let before = store.counts().requests;
    let token = log_in(&app, None, "ada").await;
    view(&app, &token, "mug").await;
    user_of(&app, &token).await;
    viewed_items(&app, &token).await;
    log_out(&app, &token).await;
    // A view that counts takes two: the first records it, the second counts it in the ranking.
    assert_eq!(store.counts().requests - before, 6);
}

#[tokio::test]
async fn concurrent_logins_logouts_and_touches_leave_no_login_without_activity() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let visits = (0..50).map(|visitor| {
        let app = app.clone();
        async move {
            let name = format!("user-{}", visitor % 5);
            let mut token = log_in(&app, None, &name).await;
            for round in 0..4 {
                let old = token.clone();
                let next = async {
                    match (visitor + round) % 3 {
                        0 => Some(log_in(&app, Some(&old), &name).await),
                        1 => {
                            log_out(&app, &old).await;
                            None
                        }
                        _ => Some(old.clone()),
                    }
                };
                let (next, ..) = tokio::join!(
                    next,
                    view(&app, &old, "mug"),
                    view(&app, &old, "cup"),
                    touch(&app, &old, None, app.clock.now()),
                );
                token = next.unwrap_or(old);
            }
        }
    });
    join_all(visits).await;

    let logins = sorted(store.raw(&["HKEYS", "login:"]).await);
    assert_eq!(logins, sorted(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await));
    let is_of_live_session = |key: &String| logins.iter().any(|token| key.ends_with(token.as_str()));
    let viewed = sorted(store.raw(&["KEYS", "viewed:?*"]).await);
    assert!(viewed.iter().all(is_of_live_session), "views of ended sessions");
}
