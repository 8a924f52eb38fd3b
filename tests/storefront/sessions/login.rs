use std::{rc::Rc, time::Duration};

use edgefront::{App, carts, schema::token::Token, sessions};
use edgefront_gateway::Fault;
use serde_json::json;
use upstash_rest::Command;

use super::{guest, log_in, log_out, sorted, user, user_of, view, viewed_items};
use crate::support::Store;

#[tokio::test]
async fn a_login_gives_a_new_token_and_ends_the_old_session_at_once() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let first = log_in(&app, None, "ada").await;
    let second = log_in(&app, Some(&first), "ada").await;
    assert_ne!(first, second);
    assert_eq!(user_of(&app, &first).await, None);
    assert_eq!(user_of(&app, &second).await.as_deref(), Some("ada"));
    assert_eq!(store.raw(&["ZRANGE", "sessions:ada", "0", "-1"]).await, json!([second.as_str()]));
}

#[tokio::test]
async fn a_login_moves_the_cart_and_the_views_of_a_guest_or_of_the_same_user() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = guest(&app).await;
    assert_eq!(user_of(&app, &guest).await.as_deref(), Some(""));
    view(&app, &guest, "cup").await;

    let token = log_in(&app, Some(&guest), "ada").await;
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", token.as_str())]).await, json!(["mug", "2"]));
    assert_eq!(viewed_items(&app, &token).await.unwrap(), ["cup"]);
    assert_eq!(store.raw(&["KEYS", &format!("*{}*", guest.as_str())]).await, json!([]));
    assert_eq!(store.raw(&["EXISTS", "abandoned:"]).await, 0);

    let next = log_in(&app, Some(&token), "ada").await;
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", next.as_str())]).await, json!(["mug", "2"]));
    assert_eq!(viewed_items(&app, &next).await.unwrap(), ["cup"]);
}

#[tokio::test]
async fn a_login_leaves_another_users_cart_and_views_behind() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let guest = guest(&app).await;
    let ada = log_in(&app, Some(&guest), "ada").await;
    view(&app, &ada, "cup").await;

    let bob = log_in(&app, Some(&ada), "bob").await;
    assert_eq!(user_of(&app, &ada).await, None);
    assert_eq!(viewed_items(&app, &bob).await.unwrap(), [""; 0]);
    assert_eq!(store.raw(&["KEYS", "cart:*"]).await, json!([]));
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!((&abandoned[0][1][1], &abandoned[0][1][5]), (&json!("ada"), &json!(r#"["mug","2"]"#)));
}

#[tokio::test]
async fn a_damaged_list_of_abandoned_carts_does_not_stop_a_login() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let ada = log_in(&app, Some(&guest(&app).await), "ada").await;
    let list = app.redis.keys().shard_of(&ada).abandoned();
    store.aside.run::<()>(Command::write("SET").arg(list).arg("another program's")).await.unwrap();

    let bob = log_in(&app, Some(&ada), "bob").await;
    assert_eq!((user_of(&app, &ada).await, user_of(&app, &bob).await.as_deref()), (None, Some("bob")));
    assert_eq!(store.raw(&["KEYS", "cart:*"]).await, json!([]));
}

#[tokio::test]
async fn the_next_login_removes_ended_sessions_from_the_users_list() {
    let store = Store::book().await;
    let app = store.app(&[("SESSION_MAX_AGE", "7776000")]);
    let first = log_in(&app, None, "ada").await;
    log_out(&app, &first).await;
    let second = log_in(&app, None, "ada").await;
    assert_eq!(store.raw(&["ZRANGE", "sessions:ada", "0", "-1"]).await, json!([second.as_str()]));
}

#[tokio::test]
async fn the_list_of_a_users_sessions_outlasts_a_raised_maximum_age() {
    let store = Store::book().await;
    let app = store.app(&[("SESSION_MAX_AGE", "60")]);
    log_in(&app, None, "ada").await;
    for list in ["devices:ada", "sessions:ada"] {
        let days = store.raw(&["TTL", list]).await.as_u64().unwrap().div_ceil(24 * 3_600);
        assert_eq!(days, 400, "the largest maximum age: {list}");
    }
}

/// Logs a guest in as ada, without the reply. The login before it has loaded the script, so the fault hits the execution.
async fn lose_login(store: &Store, app: &Rc<App>, guest: &Token) {
    store.gateway.set_fault(Some(Fault::LoseReply));
    let (ada, now) = (user("ada"), app.clock.now());
    let lost = crate::support::log_in(&app.redis, Some(guest), &ada, now, &app.config.session).await;
    assert!(lost.is_err());
    store.gateway.set_fault(None);
}

#[tokio::test]
async fn a_repeated_login_finds_its_session_by_the_old_token_for_the_same_user_only() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (bob, guest) = (log_in(&app, None, "bob").await, guest(&app).await);
    lose_login(&store, &app, &guest).await;
    let ada = log_in(&app, Some(&guest), "ada").await;

    let read = carts::read(&app.redis, &ada, app.clock.now(), &app.config.session).await.unwrap();
    assert_eq!(read.unwrap().1.total_quantity(), 2, "the cart moved");
    assert_eq!(log_in(&app, Some(&guest), "ada").await, ada, "submitted twice");
    assert_eq!(store.raw(&["HLEN", "login:"]).await, 2);
    log_out(&app, &ada).await;
    let next = log_in(&app, Some(&guest), "ada").await;
    assert_ne!(next, ada, "an ended session is not found");
    let other = log_in(&app, Some(&guest), "bob").await;
    assert!(![&next, &bob].contains(&&other), "another user's session is not found");
}

#[tokio::test]
async fn a_login_that_is_resent_after_a_lost_reply_starts_one_session() {
    let store = Store::new().await;
    let app = store.app(&[]);
    let (bob, guest) = (log_in(&app, None, "bob").await, guest(&app).await);
    lose_login(&store, &app, &guest).await;
    assert_eq!(store.raw(&["ZCARD", "recent:"]).await, 2);
    let ada = sorted(store.raw(&["ZRANGE", "sessions:ada", "0", "-1"]).await);
    assert_eq!(ada.len(), 1);
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", ada[0])]).await, json!(["mug", "2"]));
    assert_eq!(user_of(&app, &bob).await.as_deref(), Some("bob"));
}

#[tokio::test]
async fn a_repeated_login_finds_no_idle_session() {
    let store = Store::new().await;
    let app = store.app(&[("SESSION_IDLE", "60")]);
    let guest = guest(&app).await;
    let ada = log_in(&app, Some(&guest), "ada").await;
    store.clock.advance(Duration::from_mins(1));
    assert_eq!(log_in(&app, Some(&guest), "ada").await, ada);
    store.clock.advance(Duration::from_millis(1));
    let next = log_in(&app, Some(&guest), "ada").await;
    assert_ne!(next, ada);
    assert_eq!(user_of(&app, &next).await.as_deref(), Some("ada"));
}

#[tokio::test]
async fn ended_logins_do_not_hide_the_live_sessions_of_a_user() {
    let store = Store::book().await;
    let app = store.app(&[]);
    let mut first = Vec::new();
    for _ in 0..100 {
        first.push(log_in(&app, None, "ada").await);
        store.clock.advance(Duration::from_millis(1));
    }
    for _ in 0..100 {
        log_out(&app, &log_in(&app, None, "ada").await).await;
        store.clock.advance(Duration::from_millis(1));
    }
    // Each login looks at the newest ones or at the oldest ones.
    let listed = store.raw(&["ZCARD", "sessions:ada"]).await.as_u64().unwrap();
    assert!((100..160).contains(&listed), "{listed}");
    // A cleanup leaves ended logins in the list, too.
    for number in 0..100 {
        store
            .raw(&[
                "ZADD",
                "sessions:ada",
                &(app.clock.now() + Duration::from_secs(9)).to_string(),
                &format!("ended-{number}"),
            ])
            .await;
    }
    let (now, config) = (app.clock.now(), &app.config.session);
    let latest = sessions::latest_login(&app.redis, &user("ada"), now, config).await.unwrap();
    assert_eq!(latest.as_ref(), first.last());
    assert_eq!(sessions::list_devices(&app.redis, &first[0], now, config).await.unwrap().len(), 100);
}

#[tokio::test]
async fn a_session_past_its_maximum_age_is_not_listed() {
    let store = Store::new().await;
    let app = store.app(&[("SESSION_MAX_AGE", "600")]);
    log_in(&app, None, "ada").await;
    store.clock.advance(Duration::from_mins(10));
    let ada = log_in(&app, None, "ada").await;
    let devices = sessions::list_devices(&app.redis, &ada, app.clock.now(), &app.config.session).await.unwrap();
    assert_eq!(devices.into_iter().map(|device| device.token).collect::<Vec<_>>(), [ada]);
}
