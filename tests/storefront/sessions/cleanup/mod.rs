/// Touches, logouts and other runs at the same time.
mod concurrency;
/// Requests and commands of a run.
mod cost;
/// Data in Redis that edgefront did not write.
mod foreign_data;

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    ports::budget::Budget,
    schema::{redis::Redis, token::Token},
    sessions::{self, CleanupProbe, CleanupReport},
};
use serde_json::json;
use upstash_rest::Command;

use super::{log_in, put_mugs};
use crate::support::Store;

const MINUTE: Duration = Duration::from_mins(1);

/// A store with a limit of sessions and an idle time of a minute. In the book's layout, so that the limit is one for
/// all sessions.
async fn store_with_limit(limit: &str) -> (Store, Rc<App>) {
    let store = Store::book().await;
    let app = store.app(&[("SESSION_LIMIT", limit), ("SESSION_IDLE", "60")]);
    (store, app)
}

async fn touch(app: &Rc<App>, token: &Token, item: Option<&str>) {
    super::touch(app, token, item, app.clock.now()).await;
}

/// Starts a session with a viewed item and a cart, 10 ms after the session before.
async fn start_session(store: &Store, app: &Rc<App>, user: &str) -> Token {
    store.clock.advance(Duration::from_millis(10));
    let token = log_in(app, None, user).await;
    put_mugs(app, Some(&token), app.clock.now()).await;
    touch(app, &token, Some("mug")).await;
    token
}

/// Starts `count` sessions of users, each with a viewed item and a cart, directly in Redis.
async fn fill(store: &Store, app: &Rc<App>, count: usize) {
    let now = app.clock.now();
    for start in (0..count).step_by(200) {
        let commands: Vec<_> = (start..count.min(start + 200))
            .flat_map(|number| {
                let token = Token::new(now).unwrap();
                let user = format!("user-{number}");
                [
                    Command::write("HSET").arg("login:").arg(token.as_str()).arg(&user),
                    Command::write("ZADD").arg("recent:").num(now).arg(token.as_str()),
                    Command::write("ZADD").arg(format!("sessions:{user}")).num(now).arg(token.as_str()),
                    Command::write("ZADD").arg(format!("viewed:{}", token.as_str())).num(now).arg("mug"),
                    Command::write("HSET").arg(format!("cart:{}", token.as_str())).args(["mug", "2"]),
                ]
            })
            .collect();
        for reply in store.aside.pipeline(&commands).await.unwrap() {
            reply.unwrap();
        }
    }
}

async fn clean(app: &Rc<App>, probe: CleanupProbe) -> CleanupReport {
    clean_within(app, probe, &Budget::new(app.clock.clone(), MINUTE, 1_000_000)).await
}

async fn clean_within(app: &Rc<App>, probe: CleanupProbe, budget: &Budget) -> CleanupReport {
    let redis: Redis = app.redis.with_deadline(MINUTE).through(budget.fetch(app.fetch.clone()));
    sessions::clean(&redis, &app.config.session, probe, budget).await.unwrap()
}

/// The tokens in `recent:`, oldest first.
async fn remaining_tokens(store: &Store) -> Vec<String> {
    serde_json::from_value(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await).unwrap()
}

async fn count_keys(store: &Store, pattern: &str) -> usize {
    store.raw(&["KEYS", pattern]).await.as_array().unwrap().len()
}

#[tokio::test]
async fn the_cleanup_deletes_all_data_of_a_session() {
    let (store, app) = store_with_limit("100").await;
    start_session(&store, &app, "ada").await;
    store.clock.advance(2 * MINUTE);
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 1, carts: 1, unfinished: false });
    // The lists of a user may name ended sessions; they expire.
    assert_eq!(super::sorted(store.raw(&["KEYS", "*"]).await), ["abandoned:", "devices:ada", "sessions:ada"]);
    for list in ["devices:ada", "sessions:ada"] {
        assert!(store.raw(&["TTL", list]).await.as_u64() > Some(0), "{list}");
    }
}

#[tokio::test]
async fn a_session_ends_after_the_idle_time_and_not_before() {
    let (store, app) = store_with_limit("100").await;
    start_session(&store, &app, "ada").await;
    store.clock.advance(MINUTE / 2);
    let younger = start_session(&store, &app, "bob").await;
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport::default());
    store.clock.advance(MINUTE / 2 + Duration::from_millis(5));
    assert_eq!(clean(&app, CleanupProbe::Idle).await.sessions, 1);
    assert_eq!(remaining_tokens(&store).await, [younger.as_str()]);
}

#[tokio::test]
async fn a_session_not_seen_for_the_maximum_age_ends_before_the_idle_time() {
    let store = Store::book().await;
    let app = store.app(&[("SESSION_IDLE", "600"), ("SESSION_MAX_AGE", "60")]);
    start_session(&store, &app, "ada").await;
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport::default());
    store.clock.advance(MINUTE + Duration::from_millis(5));
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 1, carts: 1, unfinished: false });
    assert_eq!(remaining_tokens(&store).await, [""; 0]);
}

#[tokio::test]
async fn over_the_limit_the_oldest_sessions_end_first() {
    let (store, app) = store_with_limit("3").await;
    let mut tokens = Vec::new();
    for number in 0..5 {
        tokens.push(start_session(&store, &app, &format!("user-{number}")).await.as_str().to_owned());
    }
    assert_eq!(clean(&app, CleanupProbe::Overflow).await, CleanupReport { sessions: 2, carts: 2, unfinished: false });
    assert_eq!(remaining_tokens(&store).await, tokens[2..]);
    assert_eq!(clean(&app, CleanupProbe::Overflow).await, CleanupReport::default());
}

#[tokio::test]
async fn the_cart_of_an_ended_session_is_recorded_as_abandoned() {
    let (store, app) = store_with_limit("100").await;
    start_session(&store, &app, "ada").await;
    let last_seen = app.clock.now();
    store.clock.advance(2 * MINUTE);
    clean(&app, CleanupProbe::Skip).await;
    let entries = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    let [_, user, _, seen, _, items] = entries[0][1].as_array().unwrap().as_slice() else { panic!("{entries}") };
    assert_eq!((user, items), (&json!("ada"), &json!(r#"["mug","2"]"#)));
    assert_eq!(seen.as_str().unwrap().parse(), last_seen.to_string().parse::<f64>());
}

#[tokio::test]
async fn a_run_out_of_time_reports_that_it_is_unfinished() {
    let (store, app) = store_with_limit("10").await;
    fill(&store, &app, 20).await;
    let budget = Budget::new(app.clock.clone(), Duration::ZERO, 1_000_000);
    let report = clean_within(&app, CleanupProbe::Overflow, &budget).await;
    assert_eq!(report, CleanupReport { unfinished: true, ..CleanupReport::default() });
    assert_eq!(remaining_tokens(&store).await.len(), 20);
}
