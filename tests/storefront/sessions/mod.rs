//! Login tokens on a real server: what the book does with them, and what it does wrong.

mod reap;

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, Quantity},
    ports::time::Timestamp,
    ranking::activity::Viewer,
    schema::{
        ids::{ItemId, UserId},
        token::Token,
    },
    sessions::{self, SessionTouch, TOUCH_EVERY, TouchOutcome},
};
use edgefront_gateway::Fault;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::Store;

fn user(name: &str) -> UserId {
    UserId::parse(name).unwrap()
}

fn item(name: &str) -> ItemId {
    ItemId::parse(name).unwrap()
}

async fn log_in(app: &Rc<App>, old: Option<&Token>, name: &str) -> Token {
    sessions::log_in(&app.redis, old, &user(name), app.clock.now(), &app.config.session).await.unwrap()
}

async fn log_out(app: &Rc<App>, token: &Token) {
    sessions::log_out(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
}

/// The user of a living session: None if it does not live, "" for a guest.
async fn who(app: &Rc<App>, token: &Token) -> Option<String> {
    let session = sessions::check(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap()?;
    Some(session.user.map_or_else(String::new, |user| user.to_string()))
}

/// Notes a session at once, without the ranking.
async fn touch(app: &Rc<App>, token: &Token, name: Option<&str>, at: Timestamp) -> TouchOutcome {
    let sight = SessionTouch { token: token.clone(), item: name.map(item), at };
    sessions::touch(&app.redis, &sight, &app.config.session).await.unwrap()
}

/// A view as the storefront notes it, written.
async fn view(app: &Rc<App>, token: &Token, name: &str) {
    let now = app.clock.now();
    app.activity.record_visit(Viewer { token: Some(token), network: None }, Some(&item(name)), now);
    if let Some(work) = app.activity.flush(&app.redis, &app.clock, &app.limits.views, now) {
        work.await;
    }
}

async fn recent(app: &Rc<App>, token: &Token) -> Option<Vec<String>> {
    let recent = sessions::recent_items(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
    recent.map(|(_, items)| items.iter().map(ToString::to_string).collect())
}

/// A guest's session with one item in its cart.
async fn guest(app: &Rc<App>) -> Token {
    let quantity = Quantity::parse(&json!(2), &app.config.cart).unwrap();
    let (mug, now) = (item("mug"), app.clock.now());
    carts::set_item(&app.redis, None, &mug, quantity, now, &app.config).await.unwrap().session.unwrap().token
}

/// All keys in the database.
async fn keys(store: &Store) -> Vec<String> {
    let mut keys: Vec<String> = serde_json::from_value(store.raw(&["KEYS", "*"]).await).unwrap();
    keys.sort();
    keys
}

#[tokio::test]
async fn the_books_login_cookie() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app, None, "ada").await;
    assert_eq!(who(&app, &token).await.as_deref(), Some("ada"));

    store.clock.advance(TOUCH_EVERY + Duration::from_millis(500));
    let now = app.clock.now();
    view(&app, &token, "mug").await;
    view(&app, &token, "cup").await;

    // As code that was written against the book reads it.
    let text = token.as_str();
    assert_eq!(store.raw(&["HGET", "login:", text]).await, "ada");
    let seen: Value = store.raw(&["ZSCORE", "recent:", text]).await;
    assert_eq!(Timestamp::from_score(seen.as_str().unwrap().parse().unwrap()), now);
    let viewed = format!("viewed:{text}");
    assert_eq!(store.raw(&["ZRANGE", &viewed, "0", "-1"]).await, json!(["mug", "cup"]));
    assert_eq!(store.raw(&["ZRANGE", "viewed:", "0", "-1", "WITHSCORES"]).await, json!(["cup", "-1", "mug", "-1"]));

    log_out(&app, &token).await;
    assert_eq!(who(&app, &token).await, None);
    assert_eq!(store.raw(&["EXISTS", "login:", "recent:", &viewed]).await, 0);
}

#[tokio::test]
async fn a_login_gives_a_new_token_and_the_old_one_dies_at_once() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let first = log_in(&app, None, "ada").await;
    let second = log_in(&app, Some(&first), "ada").await;
    assert_ne!(first, second);
    assert_eq!(who(&app, &first).await, None);
    assert_eq!(who(&app, &second).await.as_deref(), Some("ada"));
    assert_eq!(store.raw(&["ZRANGE", "sessions:ada", "0", "-1"]).await, json!([second.as_str()]));
}

#[tokio::test]
async fn a_login_takes_a_guests_cart_and_views_along() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = guest(&app).await;
    assert_eq!(who(&app, &guest).await.as_deref(), Some(""));
    view(&app, &guest, "cup").await;

    let token = log_in(&app, Some(&guest), "ada").await;
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", token.as_str())]).await, json!(["mug", "2"]));
    assert_eq!(recent(&app, &token).await.unwrap(), ["cup"]);
    assert_eq!(store.raw(&["KEYS", &format!("*{}*", guest.as_str())]).await, json!([]));
    assert_eq!(store.raw(&["EXISTS", "abandoned:"]).await, 0);

    // And so does the same user's next login.
    let again = log_in(&app, Some(&token), "ada").await;
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", again.as_str())]).await, json!(["mug", "2"]));
}

#[tokio::test]
async fn a_login_leaves_another_users_cart_and_views_behind() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = guest(&app).await;
    let adas = log_in(&app, Some(&guest), "ada").await;
    view(&app, &adas, "cup").await;

    let bobs = log_in(&app, Some(&adas), "bob").await;
    assert_eq!(who(&app, &adas).await, None);
    assert_eq!(recent(&app, &bobs).await.unwrap(), [""; 0]);
    assert_eq!(store.raw(&["KEYS", "cart:*"]).await, json!([]));
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!((&abandoned[0][1][1], &abandoned[0][1][5]), (&json!("ada"), &json!(r#"["mug","2"]"#)));
}

// D3
#[tokio::test]
async fn a_stale_token_cannot_revive_a_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app, None, "ada").await;
    log_out(&app, &token).await;
    let before = keys(&store).await;
    assert_eq!(touch(&app, &token, Some("mug"), app.clock.now()).await, TouchOutcome::Ended);
    assert_eq!(touch(&app, &token, None, app.clock.now()).await, TouchOutcome::Ended);
    assert_eq!(recent(&app, &token).await, None);
    assert_eq!(keys(&store).await, before);
}

// D7
#[tokio::test]
async fn a_session_that_was_not_seen_for_the_idle_time_is_none_even_before_it_is_cleaned() {
    let store = Store::new().await;
    let app = store.app(&[("SESSION_IDLE", "60")]);
    let token = log_in(&app, None, "ada").await;
    store.clock.advance(Duration::from_mins(1));
    assert_eq!(who(&app, &token).await.as_deref(), Some("ada"));
    store.clock.advance(Duration::from_millis(1));
    assert_eq!(who(&app, &token).await, None);
    assert_eq!(touch(&app, &token, Some("mug"), app.clock.now()).await, TouchOutcome::Ended);
    assert_eq!(recent(&app, &token).await, None);
}

// D26
#[tokio::test]
async fn a_late_touch_moves_nothing_back_and_fractions_of_a_second_count() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let now = app.clock.now();
    let (one, other) = (log_in(&app, None, "ada").await, log_in(&app, None, "bob").await);
    let later = now + TOUCH_EVERY;
    assert_eq!(touch(&app, &other, Some("mug"), later + Duration::from_millis(1)).await, TouchOutcome::Counts);
    assert_eq!(touch(&app, &one, Some("mug"), later + Duration::from_millis(2)).await, TouchOutcome::Counts);
    assert_eq!(touch(&app, &one, Some("cup"), now - Duration::from_secs(9)).await, TouchOutcome::Counts);
    assert_eq!(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await, json!([other.as_str(), one.as_str()]));
    assert_eq!(recent(&app, &one).await.unwrap(), ["mug", "cup"]);
    // A view that arrives late is none of the newest, not even of an item that was viewed since.
    assert_eq!(touch(&app, &one, Some("mug"), now - Duration::from_secs(10)).await, TouchOutcome::Seen);
    assert_eq!(recent(&app, &one).await.unwrap(), ["mug", "cup"]);
}

#[tokio::test]
async fn a_session_remembers_the_25_newest_items() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let token = log_in(&app, None, "ada").await;
    for number in 0..30 {
        store.clock.advance(Duration::from_millis(10));
        view(&app, &token, &format!("item-{number}")).await;
    }
    let newest: Vec<_> = (5..30).rev().map(|number| format!("item-{number}")).collect();
    assert_eq!(recent(&app, &token).await.unwrap(), newest);
}

// D17
#[tokio::test]
async fn a_view_counts_once_in_a_session_and_window() {
    let store = Store::new().await;
    let app = store.app(&[("VIEW_WINDOW", "60")]);
    let (one, other) = (log_in(&app, None, "ada").await, log_in(&app, None, "bob").await);
    for _ in 0..3 {
        view(&app, &one, "mug").await;
    }
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-1");
    view(&app, &other, "mug").await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-2");
    store.clock.advance(Duration::from_mins(1));
    view(&app, &one, "mug").await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-3");
}

// D17
#[tokio::test]
async fn a_reported_view_counts_only_for_an_item_that_ranks_already() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (one, other) = (log_in(&app, None, "ada").await, log_in(&app, None, "bob").await);
    view(&app, &one, "mug").await;
    for name in ["mug", "made-up"] {
        app.activity.record_reported_view(
            Viewer { token: Some(&other), network: None },
            &item(name),
            None,
            app.clock.now(),
        );
    }
    app.activity.flush(&app.redis, &app.clock, &app.limits.views, app.clock.now()).unwrap().await;
    assert_eq!(store.raw(&["ZRANGE", "viewed:", "0", "-1", "WITHSCORES"]).await, json!(["mug", "-2"]));
}

#[tokio::test]
async fn a_logout_of_a_user_ends_all_their_sessions_and_nobody_elses() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let mut adas = Vec::new();
    for _ in 0..205 {
        adas.push(log_in(&app, None, "ada").await);
    }
    let bobs = log_in(&app, None, "bob").await;
    let now = app.clock.now();
    let ended = sessions::log_out_user(&app.redis, &user("ada"), now, &app.config.session).await.unwrap();
    assert_eq!(ended, 205);
    assert_eq!(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await, json!([bobs.as_str()]));
    assert_eq!(store.raw(&["HKEYS", "login:"]).await, json!([bobs.as_str()]));
    assert_eq!(store.raw(&["EXISTS", "sessions:ada"]).await, 0);
    assert_eq!(sessions::log_out_user(&app.redis, &user("ada"), now, &app.config.session).await, Ok(0));
}

#[tokio::test]
async fn a_token_that_was_logged_out_leaves_its_users_list_at_the_next_login() {
    let store = Store::book().await;
    let app = store.app(&[("SESSION_MAX_AGE", "7776000")]);
    let first = log_in(&app, None, "ada").await;
    log_out(&app, &first).await;
    let second = log_in(&app, None, "ada").await;
    assert_eq!(store.raw(&["ZRANGE", "sessions:ada", "0", "-1"]).await, json!([second.as_str()]));
    // And a user who never comes back leaves no list.
    let ttl = store.raw(&["TTL", "sessions:ada"]).await.as_u64().unwrap();
    assert!((7_775_990..=7_776_000).contains(&ttl), "{ttl}");
}

// D27
#[tokio::test]
async fn a_login_whose_answer_was_lost_is_found_by_the_old_token_and_by_its_own_user_only() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = guest(&app).await;
    let mugs = Quantity::parse(&json!(2), &app.config.cart).unwrap();
    carts::set_item(&app.redis, Some(&guest), &item("mug"), mugs, app.clock.now(), &app.config).await.unwrap();
    // Redis knows the script from now on.
    let bobs = log_in(&app, None, "bob").await;
    store.gateway.set_fault(Some(Fault::LoseReply));
    let lost = sessions::log_in(&app.redis, Some(&guest), &user("ada"), app.clock.now(), &app.config.session).await;
    store.gateway.set_fault(None);
    assert!(lost.is_err());

    let adas = log_in(&app, Some(&guest), "ada").await;

    let (_, cart) = carts::read(&app.redis, &adas, app.clock.now(), &app.config.session).await.unwrap().expect("ada's");
    assert_eq!(cart.quantity(), 2, "the cart came along");
    assert_eq!(log_in(&app, Some(&guest), "ada").await, adas, "pressed twice");
    assert_eq!(store.raw(&["HLEN", "login:"]).await, 2);
    log_out(&app, &adas).await;
    let again = log_in(&app, Some(&guest), "ada").await;
    assert_ne!(again, adas, "what has ended is not found");
    let others = log_in(&app, Some(&guest), "bob").await;
    assert!(![&again, &bobs].contains(&&others), "nor what is somebody else's");
}

#[tokio::test]
async fn a_login_that_is_sent_again_after_a_lost_reply_starts_one_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = guest(&app).await;
    // The server knows the script from now on: so what is lost is the reply to its execution.
    let bobs = log_in(&app, None, "bob").await;
    store.gateway.set_fault(Some(Fault::LoseReply));
    let lost = sessions::log_in(&app.redis, Some(&guest), &user("ada"), app.clock.now(), &app.config.session).await;
    store.gateway.set_fault(None);
    assert!(lost.is_err());
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 2);
    let adas: Vec<String> = serde_json::from_value(store.raw(&["ZRANGE", "sessions:ada", "0", "-1"]).await).unwrap();
    assert_eq!(adas.len(), 1);
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", adas[0])]).await, json!(["mug", "2"]));
    assert_eq!(who(&app, &bobs).await.as_deref(), Some("bob"));
}

#[tokio::test]
async fn every_call_is_one_request() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let warm = log_in(&app, None, "ada").await;
    view(&app, &warm, "mug").await;
    log_out(&app, &warm).await;
    let before = store.counts().requests;
    let token = log_in(&app, None, "ada").await;
    view(&app, &token, "mug").await;
    who(&app, &token).await;
    recent(&app, &token).await;
    log_out(&app, &token).await;
    assert_eq!(store.counts().requests - before, 6, "a view that counts is noted by one, and counted by the next");
}

#[tokio::test]
async fn views_that_come_within_a_tenth_of_a_second_share_a_pipeline() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let mut tokens = Vec::new();
    for visitor in 0..20 {
        tokens.push(log_in(&app, None, &format!("user-{visitor}")).await);
    }
    view(&app, &tokens[0], "cup").await;
    let (before, now) = (store.counts().requests, app.clock.now());
    let note = |token| {
        app.activity.record_visit(Viewer { token: Some(token), network: None }, Some(&item("mug")), now);
        app.activity.flush(&app.redis, &app.clock, &app.limits.views, now)
    };
    let first = note(&tokens[0]).expect("the first one sends");
    let others = async { tokens[1..].iter().for_each(|token| assert!(note(token).is_none(), "for all others")) };
    tokio::join!(first, others);
    assert_eq!(store.counts().requests - before, 2, "noted by one, counted by the next");
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-20");
}

// D3, D5
#[tokio::test]
async fn logins_logouts_and_touches_at_once_leave_no_login_that_was_never_seen() {
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

    let sorted = |list: Value| {
        let mut list: Vec<String> = serde_json::from_value(list).unwrap();
        list.sort();
        list
    };
    let logins = sorted(store.raw(&["HKEYS", "login:"]).await);
    assert_eq!(logins, sorted(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await));
    let living = |key: &String| logins.iter().any(|token| key.ends_with(token.as_str()));
    let viewed = sorted(store.raw(&["KEYS", "viewed:?*"]).await);
    assert!(viewed.iter().all(living), "views of sessions that ended");
}
