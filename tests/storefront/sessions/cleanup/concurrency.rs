use std::rc::Rc;

use edgefront::{
    App,
    schema::scripts,
    sessions::{self, CleanupProbe, DeviceSelection, TOUCH_EVERY, log_out_devices},
};
use futures_util::future::join_all;
use serde_json::json;
use upstash_rest::Command;

use super::{MINUTE, clean, count_keys, fill, remaining_tokens, start_session, store_with_limit, touch};
use crate::{
    sessions::{log_out, sorted},
    support::Store,
};

/// The `count` oldest tokens and their scores, as a run reads them.
async fn read_oldest(store: &Store, count: usize) -> Vec<String> {
    let last = (count - 1).to_string();
    serde_json::from_value(store.raw(&["ZRANGE", "recent:", "0", &last, "WITHSCORES"]).await).unwrap()
}

/// Ends the sessions that [`read_oldest`] read, as a run does. `limit` is 0 if all of them are idle.
async fn reap(app: &Rc<App>, limit: u64, oldest: &[String]) -> (u64, u64) {
    let own_keys = ["recent:", "login:", "abandoned:", "sessions:", "sessions:"].map(str::to_owned);
    let tokens = oldest.iter().step_by(2);
    let keys = tokens.flat_map(|token| [format!("viewed:{token}"), format!("cart:{token}")]);
    let command = Command::script(&scripts::REAP, own_keys.into_iter().chain(keys))
        .num(limit)
        .num(app.clock.now() - app.config.session.idle)
        .arg("")
        .args(oldest.iter().skip(1).step_by(2));
    app.redis.run(command).await.unwrap()
}

#[tokio::test]
async fn a_session_over_the_limit_that_is_touched_after_the_read_keeps_login_and_cart() {
    let (store, app) = store_with_limit("1").await;
    let touched = start_session(&store, &app, "ada").await;
    start_session(&store, &app, "bob").await;
    let youngest = start_session(&store, &app, "eve").await;
    let oldest = read_oldest(&store, 2).await;
    store.clock.advance(TOUCH_EVERY);
    touch(&app, &touched, None).await;

    assert_eq!(reap(&app, 1, &oldest).await, (1, 1));
    assert_eq!(remaining_tokens(&store).await, [youngest.as_str(), touched.as_str()]);
    assert_eq!(store.raw(&["HGET", "login:", touched.as_str()]).await, "ada");
    assert_eq!(store.raw(&["HGET", &format!("cart:{}", touched.as_str()), "mug"]).await, "2");
}

#[tokio::test]
async fn an_idle_session_that_is_touched_after_the_read_keeps_all_data_and_the_others_end() {
    let (store, app) = store_with_limit("10").await;
    start_session(&store, &app, "ada").await;
    let touched = start_session(&store, &app, "bob").await;
    start_session(&store, &app, "eve").await;
    store.clock.advance(2 * MINUTE);
    let idle = read_oldest(&store, 3).await;
    store.raw(&["ZADD", "recent:", &app.clock.now().to_string(), touched.as_str()]).await;

    assert_eq!(reap(&app, 0, &idle).await, (2, 2));
    assert_eq!(remaining_tokens(&store).await, [touched.as_str()]);
    assert_eq!(store.raw(&["HGETALL", "login:"]).await, json!([touched.as_str(), "bob"]));
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", touched.as_str())]).await, json!(["mug", "2"]));
    assert_eq!((count_keys(&store, "cart:*").await, count_keys(&store, "viewed:?*").await), (1, 1));
    // The carts are recorded in the order in which their sessions ended.
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!((&abandoned[0][1][1], &abandoned[1][1][1]), (&json!("ada"), &json!("eve")));
}

#[tokio::test]
async fn a_logout_after_the_read_spares_a_session_over_the_limit() {
    let (store, app) = store_with_limit("1").await;
    start_session(&store, &app, "ada").await;
    let spared = start_session(&store, &app, "bob").await;
    let youngest = start_session(&store, &app, "eve").await;
    let oldest = read_oldest(&store, 2).await;
    log_out(&app, &youngest).await;
    assert_eq!(reap(&app, 1, &oldest).await, (1, 1));
    assert_eq!(remaining_tokens(&store).await, [spared.as_str()]);
}

/// The cleanup runs between the end of the logins and the deletion of their data.
#[tokio::test]
async fn a_cart_that_the_cleanup_finds_after_a_logout_keeps_its_user() {
    let (store, app) = store_with_limit("1").await;
    let phone = start_session(&store, &app, "ada").await;
    let desk = start_session(&store, &app, "ada").await;
    let (now, config) = (app.clock.now(), &app.config.session);
    let ended = log_out_devices(&app.redis, &desk, &DeviceSelection::Others, now, config).await.unwrap().unwrap();
    assert_eq!(sessions::check(&app.redis, &phone, now, config).await, Ok(None));
    assert_eq!(clean(&app, CleanupProbe::Overflow).await.carts, 1);
    ended.delete_data(&app.redis, now, config).await.unwrap();
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!((abandoned.as_array().map(Vec::len), &abandoned[0][1][1]), (Some(1), &json!("ada")));
    assert_eq!(store.raw(&["HGETALL", "login:"]).await, json!([desk.as_str(), "ada"]));
}

/// A session that was touched after the read is spared, and a later run still knows the user.
#[tokio::test]
async fn a_spared_session_without_a_login_keeps_its_user() {
    let (store, app) = store_with_limit("1").await;
    let phone = start_session(&store, &app, "ada").await;
    let desk = start_session(&store, &app, "ada").await;
    let oldest = read_oldest(&store, 1).await;
    log_out_devices(&app.redis, &desk, &DeviceSelection::All, app.clock.now(), &app.config.session).await.unwrap();
    store.raw(&["ZINCRBY", "recent:", "1", phone.as_str()]).await;
    assert_eq!(reap(&app, 0, &oldest).await, (0, 0));
    store.clock.advance(MINUTE * 2);
    assert_eq!(clean(&app, CleanupProbe::Idle).await.carts, 2);
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!((&abandoned[0][1][1], &abandoned[1][1][1]), (&json!("ada"), &json!("ada")));
    assert_eq!(store.raw(&["EXISTS", "login:"]).await, 0);
}

#[tokio::test]
async fn overlapping_runs_do_not_end_sessions_below_the_limit() {
    let (store, app) = store_with_limit("500").await;
    fill(&store, &app, 3_000).await;
    let reports = join_all((0..4).map(|_| clean(&app, CleanupProbe::Overflow))).await;
    assert_eq!(reports.iter().map(|report| report.sessions).sum::<u64>(), 2_500);
    assert_eq!(reports.iter().map(|report| report.carts).sum::<u64>(), 2_500);
    assert_eq!(remaining_tokens(&store).await.len(), 500);
    assert_eq!(store.raw(&["HLEN", "login:"]).await, 500);
    assert_eq!((count_keys(&store, "cart:*").await, count_keys(&store, "viewed:?*").await), (500, 500));
}

#[tokio::test]
async fn touches_during_overlapping_runs_leave_no_login_without_activity() {
    let (store, app) = store_with_limit("10").await;
    let mut tokens = Vec::new();
    for number in 0..60 {
        tokens.push(start_session(&store, &app, &format!("user-{number}")).await);
    }
    store.clock.advance(TOUCH_EVERY);
    let touches = join_all(tokens.iter().map(|token| touch(&app, token, None)));
    let (_, first, second) =
        tokio::join!(touches, clean(&app, CleanupProbe::Overflow), clean(&app, CleanupProbe::Overflow));
    assert_eq!(first.sessions + second.sessions, 50);
    let logins = sorted(store.raw(&["HKEYS", "login:"]).await);
    assert_eq!(logins, sorted(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await));
    assert_eq!((logins.len(), count_keys(&store, "cart:*").await), (10, 10));
}
