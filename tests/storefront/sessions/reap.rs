//! The cleaning of sessions on a real server, and whom it must spare.

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, Quantity, abandoned},
    ports::budget::Budget,
    schema::{
        ids::{ItemId, UserId},
        scripts,
        token::Token,
    },
    sessions::{self, CleanupProbe, CleanupReport, SessionTouch, TOUCH_EVERY},
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use upstash_rest::Command;

use crate::support::Store;

const MINUTE: Duration = Duration::from_mins(1);

/// A store with a limit of sessions, which end after a minute that nobody was seen. In the book's layout: what is over the cap is
/// told of all sessions, and other code of the book is there.
async fn store(limit: &str) -> (Store, Rc<App>) {
    let store = Store::book().await;
    let app = store.app(&[("SESSION_LIMIT", limit), ("SESSION_IDLE", "60")]);
    (store, app)
}

async fn touch(app: &App, token: &Token, item: Option<ItemId>) {
    let sight = SessionTouch { token: token.clone(), item, at: app.clock.now() };
    sessions::touch(&app.redis, &sight, &app.config.session).await.unwrap();
}

/// A session of `name` that viewed something and has something in its cart, a moment younger than all before.
async fn session(store: &Store, app: &Rc<App>, name: &str) -> Token {
    store.clock.advance(Duration::from_millis(10));
    let now = app.clock.now();
    let (user, mug) = (UserId::parse(name).unwrap(), ItemId::parse("mug").unwrap());
    let token = sessions::log_in(&app.redis, None, &user, now, &app.config.session).await.unwrap();
    let quantity = Quantity::parse(&json!(2), &app.config.cart).unwrap();
    carts::set_item(&app.redis, Some(&token), &mug, quantity, now, &app.config).await.unwrap();
    touch(app, &token, Some(mug)).await;
    token
}

async fn clean(app: &Rc<App>, probe: CleanupProbe) -> CleanupReport {
    clean_within(app, probe, &Budget::new(app.clock.clone(), MINUTE, 1_000_000)).await
}

async fn clean_within(app: &Rc<App>, probe: CleanupProbe, budget: &Budget) -> CleanupReport {
    let redis = app.redis.with_deadline(MINUTE).through(budget.fetch(app.fetch.clone()));
    sessions::clean(&redis, &app.config.session, probe, budget).await.unwrap()
}

async fn living(store: &Store) -> Vec<String> {
    serde_json::from_value(store.raw(&["ZRANGE", "recent:", "0", "-1"]).await).unwrap()
}

async fn keys(store: &Store, pattern: &str) -> usize {
    store.raw(&["KEYS", pattern]).await.as_array().unwrap().len()
}

/// `count` sessions with all that a session has, seen now.
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

// D5
#[tokio::test]
async fn all_that_is_stored_of_a_session_goes_in_one_step() {
    let (store, app) = store("100").await;
    session(&store, &app, "ada").await;
    store.clock.advance(2 * MINUTE);
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 1, carts: 1, unfinished: false });
    let mut left: Vec<String> = serde_json::from_value(store.raw(&["KEYS", "*"]).await).unwrap();
    left.sort();
    // The lists of a user may name what has ended, and end by themselves.
    assert_eq!(left, ["abandoned:", "devices:ada", "sessions:ada"]);
    for list in ["devices:ada", "sessions:ada"] {
        let left = store.raw(&["TTL", list]).await.as_u64().unwrap();
        assert!((1..=app.config.session.max_age.as_secs()).contains(&left), "{list}: {left}");
    }
}

// D7
#[tokio::test]
async fn a_session_ends_after_the_idle_time_and_not_before() {
    let (store, app) = store("100").await;
    session(&store, &app, "ada").await;
    store.clock.advance(MINUTE / 2);
    let young = session(&store, &app, "bob").await;
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport::default());
    store.clock.advance(MINUTE / 2 + Duration::from_millis(5));
    assert_eq!(clean(&app, CleanupProbe::Idle).await.sessions, 1);
    assert_eq!(living(&store).await, [young.as_str()]);
}

#[tokio::test]
async fn over_the_cap_the_oldest_leave_first() {
    let (store, app) = store("3").await;
    let mut tokens = Vec::new();
    for number in 0..5 {
        tokens.push(session(&store, &app, &format!("user-{number}")).await.as_str().to_owned());
    }
    assert_eq!(clean(&app, CleanupProbe::Overflow).await, CleanupReport { sessions: 2, carts: 2, unfinished: false });
    assert_eq!(living(&store).await, tokens[2..]);
    assert_eq!(clean(&app, CleanupProbe::Overflow).await, CleanupReport::default());
}

// D8
#[tokio::test]
async fn the_cart_of_a_session_that_ends_is_recorded() {
    let (store, app) = store("100").await;
    session(&store, &app, "ada").await;
    let seen = app.clock.now();
    store.clock.advance(2 * MINUTE);
    clean(&app, CleanupProbe::Skip).await;
    let entries = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    let fields: Vec<&str> = entries[0][1].as_array().unwrap().iter().map(|field| field.as_str().unwrap()).collect();
    let [_, user, _, at, _, items] = fields[..] else { panic!("{fields:?}") };
    assert_eq!((user, items), ("ada", r#"["mug","2"]"#));
    assert_eq!(at.parse(), seen.to_string().parse::<f64>());
}

/// The two oldest tokens with their scores, as the cleaning reads them.
async fn oldest_two(store: &Store) -> Vec<String> {
    oldest(store, "1").await
}

/// All to the place `last`.
async fn oldest(store: &Store, last: &str) -> Vec<String> {
    serde_json::from_value(store.raw(&["ZRANGE", "recent:", "0", last, "WITHSCORES"]).await).unwrap()
}

/// What the cleaning then does with them.
fn reap(app: &Rc<App>, oldest: &[String]) -> Command {
    reap_above(app, app.config.session.limit, oldest)
}

/// A limit of 0 is for those who are idle, however few there are.
fn reap_above(app: &Rc<App>, limit: u64, oldest: &[String]) -> Command {
    let own = ["recent:", "login:", "abandoned:", "sessions:", "sessions:"].map(str::to_owned);
    let tokens = oldest.iter().step_by(2);
    let keys = tokens.flat_map(|token| [format!("viewed:{token}"), format!("cart:{token}")]);
    Command::script(&scripts::REAP, own.into_iter().chain(keys))
        .num(limit)
        .num(app.clock.now() - app.config.session.idle)
        .arg("")
        .args(oldest.iter().skip(1).step_by(2))
}

// D4
#[tokio::test]
async fn a_user_who_came_back_after_the_cleaning_read_the_oldest_keeps_login_and_cart() {
    let (store, app) = store("1").await;
    let back = session(&store, &app, "ada").await;
    session(&store, &app, "bob").await;
    let young = session(&store, &app, "eve").await;
    let oldest = oldest_two(&store).await;
    store.clock.advance(TOUCH_EVERY);
    touch(&app, &back, None).await;

    assert_eq!(app.redis.run(reap(&app, &oldest)).await, Ok((1_u64, 1_u64)));
    assert_eq!(living(&store).await, [young.as_str(), back.as_str()]);
    assert_eq!(store.raw(&["HGET", "login:", back.as_str()]).await, "ada");
    assert_eq!(store.raw(&["HGET", &format!("cart:{}", back.as_str()), "mug"]).await, "2");
}

// D4
#[tokio::test]
async fn one_of_the_idle_who_came_back_keeps_all_and_those_around_end() {
    let (store, app) = store("10").await;
    session(&store, &app, "ada").await;
    let back = session(&store, &app, "bob").await;
    session(&store, &app, "eve").await;
    store.clock.advance(2 * MINUTE);
    let idle = oldest(&store, "2").await;
    store.raw(&["ZADD", "recent:", &app.clock.now().to_string(), back.as_str()]).await;

    assert_eq!(app.redis.run(reap_above(&app, 0, &idle)).await, Ok((2_u64, 2_u64)));
    assert_eq!(living(&store).await, [back.as_str()]);
    assert_eq!(store.raw(&["HGETALL", "login:"]).await, json!([back.as_str(), "bob"]));
    assert_eq!(store.raw(&["HGETALL", &format!("cart:{}", back.as_str())]).await, json!(["mug", "2"]));
    assert_eq!((keys(&store, "cart:*").await, keys(&store, "viewed:?*").await), (1, 1));
    // Whoever they were, their carts are in the order in which they ended.
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!((&abandoned[0][1][1], &abandoned[1][1][1]), (&json!("ada"), &json!("eve")));
}

// D6
#[tokio::test]
async fn a_logout_after_the_cleaning_read_the_oldest_saves_one_of_them() {
    let (store, app) = store("1").await;
    session(&store, &app, "ada").await;
    let next = session(&store, &app, "bob").await;
    let young = session(&store, &app, "eve").await;
    let read = oldest_two(&store).await;
    sessions::log_out(&app.redis, &young, app.clock.now(), &app.config.session).await.unwrap();
    assert_eq!(app.redis.run(reap(&app, &read)).await, Ok((1_u64, 1_u64)));
    assert_eq!(living(&store).await, [next.as_str()]);
}

// D6
#[tokio::test]
async fn overlapping_cleaners_do_not_trim_below_the_cap() {
    let (store, app) = store("500").await;
    fill(&store, &app, 3_000).await;
    let cleaned = join_all((0..4).map(|_| clean(&app, CleanupProbe::Overflow))).await;
    assert_eq!(cleaned.iter().map(|cleaned| cleaned.sessions).sum::<u64>(), 2_500);
    assert_eq!(cleaned.iter().map(|cleaned| cleaned.carts).sum::<u64>(), 2_500);
    assert_eq!(living(&store).await.len(), 500);
    assert_eq!(store.raw(&["HLEN", "login:"]).await, 500);
    assert_eq!((keys(&store, "cart:*").await, keys(&store, "viewed:?*").await), (500, 500));
}

// D5
#[tokio::test]
async fn touches_during_the_cleaning_leave_no_login_that_was_never_seen() {
    let (store, app) = store("10").await;
    let mut tokens = Vec::new();
    for number in 0..60 {
        tokens.push(session(&store, &app, &format!("user-{number}")).await);
    }
    store.clock.advance(TOUCH_EVERY);
    let touches = join_all(tokens.iter().map(|token| touch(&app, token, None)));
    let (_, one, other) =
        tokio::join!(touches, clean(&app, CleanupProbe::Overflow), clean(&app, CleanupProbe::Overflow));
    assert_eq!(one.sessions + other.sessions, 50);
    let mut logins: Vec<String> = serde_json::from_value(store.raw(&["HKEYS", "login:"]).await).unwrap();
    let mut seen = living(&store).await;
    logins.sort();
    seen.sort();
    assert_eq!(logins, seen);
    assert_eq!((seen.len(), keys(&store, "cart:*").await), (10, 10));
}

#[tokio::test]
async fn a_run_that_finds_nothing_costs_one_command() {
    let (store, app) = store("10").await;
    session(&store, &app, "ada").await;
    for probe in [CleanupProbe::Overflow, CleanupProbe::Idle] {
        let before = store.counts().commands;
        assert_eq!(clean(&app, probe).await, CleanupReport::default());
        assert_eq!(store.counts().commands - before, 1, "{probe:?}");
    }
}

#[tokio::test]
async fn a_run_ends_with_its_time_and_says_that_there_is_more() {
    let (store, app) = store("10").await;
    fill(&store, &app, 20).await;
    let budget = Budget::new(app.clock.clone(), Duration::ZERO, 1_000_000);
    let cleaned = clean_within(&app, CleanupProbe::Overflow, &budget).await;
    assert_eq!(cleaned, CleanupReport { unfinished: true, ..CleanupReport::default() });
    assert_eq!(living(&store).await.len(), 20);
}

// D2
#[tokio::test]
async fn an_empty_or_broken_token_in_redis_neither_reaches_the_ranking_nor_stops_the_cleaning() {
    let (store, app) = store("10").await;
    store.raw(&["ZADD", "viewed:", "-5", "mug"]).await;
    store.raw(&["ZADD", "recent:", "0", ""]).await;
    store.raw(&["HSET", "login:", "", "nobody"]).await;
    let broken = Command::write("ZADD").arg("recent:").num(0).arg([0xff, 0xfe]);
    store.aside.run::<()>(broken).await.unwrap();
    let stale = session(&store, &app, "ada").await;
    store.clock.advance(2 * MINUTE);
    let young = session(&store, &app, "bob").await;

    assert_eq!(clean(&app, CleanupProbe::Idle).await.sessions, 1);
    assert_eq!(living(&store).await, [young.as_str()]);
    assert_eq!(store.raw(&["HKEYS", "login:"]).await, json!([young.as_str()]));
    assert_ne!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, Value::Null);
    assert_eq!(keys(&store, &format!("*{}", stale.as_str())).await, 0);
}

#[tokio::test]
async fn sessions_of_other_code_of_the_book_are_cleaned_too() {
    let (store, app) = store("10").await;
    let uuid = "79ef9a65-4a7c-4a9c-8f3c-6d0a4a3a2b11";
    store.raw(&["HSET", "login:", uuid, "user {1}"]).await;
    store.raw(&["ZADD", "recent:", "1700000000.25", uuid]).await;
    store.raw(&["ZADD", &format!("viewed:{uuid}"), "1700000000.25", "a:b"]).await;
    store.raw(&["HSET", &format!("cart:{uuid}"), "a:b", "3"]).await;
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 1, carts: 1, unfinished: false });
    assert_eq!(store.raw(&["KEYS", "*"]).await, json!(["abandoned:"]));
}

#[tokio::test]
async fn what_other_code_left_under_a_sessions_keys_does_not_stop_the_cleaning() {
    let (store, app) = store("10").await;
    let (typed, odd) = (session(&store, &app, "ada").await, session(&store, &app, "bob").await);
    let foreign = Command::write("HSET").arg("login:").arg("somebody").arg([0xff]);
    store.aside.run::<()>(foreign).await.unwrap();
    store.raw(&["ZADD", "recent:", "1", "somebody"]).await;
    store.raw(&["SET", &format!("cart:{}", typed.as_str()), "not a hash"]).await;
    store.raw(&["SET", "sessions:ada", "not a list"]).await;
    store.raw(&["HSET", &format!("cart:{}", odd.as_str()), "mug", "inf", "cup", "3", "bowl", "nan"]).await;
    store.clock.advance(2 * MINUTE);
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 3, carts: 1, unfinished: false });
    assert_eq!(living(&store).await, [""; 0]);
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!(abandoned[0][1][1], "bob");
    let lines = abandoned::page(&app.redis, None, 10).await.unwrap().carts.remove(0).lines;
    assert_eq!(lines.iter().map(|line| (line.item.as_str(), line.quantity)).collect::<Vec<_>>(), [("cup", 3)]);
}

/// What its pace (`cargo bench --bench cleanup`) rests on.
#[tokio::test]
async fn a_thousand_sessions_end_in_one_request() {
    let (store, app) = store("1").await;
    // So that the server knows the script.
    fill(&store, &app, 2).await;
    assert_eq!(clean(&app, CleanupProbe::Overflow).await.sessions, 1);
    fill(&store, &app, 10_000).await;
    let before = store.counts();
    let cleaned = clean(&app, CleanupProbe::Overflow).await;
    assert_eq!(cleaned, CleanupReport { sessions: 10_000, carts: 10_000, unfinished: false });
    // The probe, the first and the last look.
    assert_eq!(store.counts().requests - before.requests, 10 + 3);
    // The list of carts has its bound, but for a node of the stream.
    fill(&store, &app, 300).await;
    assert_eq!(clean(&app, CleanupProbe::Overflow).await.carts, 300);
    let listed = store.raw(&["XLEN", "abandoned:"]).await;
    assert!(listed.as_u64().is_some_and(|listed| (10_000..=10_100).contains(&listed)), "{listed}");
}
