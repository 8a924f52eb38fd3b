//! A change of `SHARDS` while sessions are live. Isolates with the old and the new number run at the same time, and no
//! session, cart or piece of a sale is lost or doubled.

use std::{collections::BTreeSet, num::NonZeroU16, rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, abandoned},
    metrics::storage,
    orders::{Customer, Order, flash_sale::FlashSales},
    ports::{budget::Budget, error::Error, time::Timestamp},
    schema::{keys::Keys, shard::Shard, token::Token},
    sessions::{self, CleanupProbe, DeviceSelection, LoginRequest},
};
use edgefront_gateway::Fault;
use serde_json::json;

use super::shards::{MINUTE, lines, many, put};
use crate::{
    orders::flash_sale::put as put_row,
    sessions::{log_in, user},
    support::{Store, row},
};

/// The variables before, during and after a change from 1 shard to 4, in the order of the operator's steps.
const STEPS: [[(&str, &str); 2]; 3] = [
    [("SHARDS", "1"), ("SHARDS_KNOWN", "")],
    [("SHARDS", "1"), ("SHARDS_KNOWN", "1, 4")],
    [("SHARDS", "4"), ("SHARDS_KNOWN", "1, 4")],
];

/// A shop during a change: an isolate of each step on one store.
struct Change {
    store: Store,
    /// `SHARDS` = 1, without `SHARDS_KNOWN`.
    before: Rc<App>,
    /// `SHARDS` = 1, with `SHARDS_KNOWN`.
    old: Rc<App>,
    /// `SHARDS` = 4, with `SHARDS_KNOWN`.
    new: Rc<App>,
}

impl Change {
    async fn start(more: &[(&str, &str)]) -> Self {
        let store = Store::book().await;
        let [before, old, new] = STEPS.map(|step| store.app(&[more, &step].concat()));
        Self { store, before, old, new }
    }

    fn apps(&self) -> [&Rc<App>; 3] {
        [&self.before, &self.old, &self.new]
    }
}

async fn lives(app: &Rc<App>, token: &Token) -> bool {
    sessions::check(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap().is_some()
}

fn layout(token: &Token) -> u16 {
    token.layout().map_or(1, NonZeroU16::get)
}

#[tokio::test]
async fn every_isolate_reads_and_writes_the_carts_of_both_layouts() {
    let change = Change::start(&[]).await;
    let guests = [put(&change.old, None, "mug", 1).await, put(&change.new, None, "mug", 1).await];
    assert_eq!(guests.each_ref().map(layout), [1, 4]);
    for token in &guests {
        for (quantity, app) in (2..).zip(change.apps()) {
            assert_eq!(put(app, Some(token), "cup", quantity).await, *token);
            for other in change.apps() {
                assert_eq!(lines(other, token).await, Some(json!({"mug": 1, "cup": quantity})));
            }
        }
        sessions::log_out(&change.before.redis, token, change.old.clock.now(), &change.old.config.session)
            .await
            .unwrap();
        assert!(!lives(&change.new, token).await);
    }
    let left = change.store.raw(&["KEYS", "cart:*"]).await;
    assert_eq!(left, json!([]));
}

#[tokio::test]
async fn a_cart_write_in_the_earlier_layout_costs_one_request() {
    let change = Change::start(&[]).await;
    let guest = put(&change.old, None, "mug", 1).await;
    let before = change.store.counts().requests;
    put(&change.new, Some(&guest), "mug", 2).await;
    assert_eq!(change.store.counts().requests - before, 1);
}

#[tokio::test]
async fn a_login_keeps_the_cart_in_the_layout_of_its_session() {
    let change = Change::start(&[]).await;
    for (from, other) in [(&change.old, &change.new), (&change.new, &change.before)] {
        let guest = put(from, None, "mug", 2).await;
        let ada = log_in(other, Some(&guest), "ada").await;
        assert_eq!(layout(&ada), layout(&guest));
        assert_eq!(lines(from, &ada).await, Some(json!({"mug": 2})));
        assert!(!lives(other, &guest).await);
        // A visitor whose response was lost repeats the login at another isolate.
        assert_eq!(log_in(from, Some(&guest), "ada").await, ada);
    }
}

#[tokio::test]
async fn a_login_whose_reply_was_lost_is_found_again_in_either_layout() {
    let change = Change::start(&[]).await;
    log_in(&change.old, None, "bob").await;
    let guest = put(&change.old, None, "mug", 2).await;
    change.store.gateway.set_fault(Some(Fault::LoseReply));
    let (now, config) = (change.new.clock.now(), &change.new.config.session);
    let lost = crate::support::log_in(&change.old.redis, Some(&guest), &user("ada"), now, config).await;
    change.store.gateway.set_fault(None);
    assert!(lost.is_err());
    let ada = log_in(&change.new, Some(&guest), "ada").await;
    assert_eq!(lines(&change.new, &ada).await, Some(json!({"mug": 2})));
    assert_eq!(change.store.raw(&["HLEN", "login:"]).await, 2, "bob's and ada's");
}

#[tokio::test]
async fn a_visitor_whose_session_has_ended_starts_in_the_new_layout() {
    let change = Change::start(&[]).await;
    let app = &change.new;
    let ended = async || {
        let token = put(&change.old, None, "mug", 2).await;
        sessions::log_out(&app.redis, &token, app.clock.now(), &app.config.session).await.unwrap();
        token
    };
    let guest = put(app, Some(&ended().await), "cup", 1).await;
    assert_eq!((layout(&guest), lines(&change.before, &guest).await), (4, Some(json!({"cup": 1}))));

    let token = ended().await;
    let ada = log_in(app, Some(&token), "ada").await;
    assert_eq!(layout(&ada), 4);
    assert_eq!(log_in(app, Some(&token), "ada").await, ada, "submitted twice");

    let (token, ada) = (ended().await, user("ada"));
    let request = LoginRequest { user: &ada, old_token: Some(&token), label: None, idempotency_key: Some("key") };
    let log_in = async || sessions::log_in(&app.redis, &request, app.clock.now(), &app.config.session).await.unwrap();
    assert_eq!(log_in().await, log_in().await);
    // Clearing a cart starts no session.
    let clear = carts::CartChange::Clear;
    let write = carts::change(&app.redis, Some(&token), &clear, app.clock.now(), &app.config).await.unwrap();
    assert_eq!((write.session, write.created), (None, false));
}

#[tokio::test]
async fn a_user_sees_and_ends_the_sessions_of_both_layouts() {
    let change = Change::start(&[]).await;
    let mut tokens = many(&change.store, &change.old, 2, "ada").await;
    tokens.extend(many(&change.store, &change.new, 6, "ada").await);
    let (now, config) = (change.new.clock.now(), &change.new.config.session);
    let newest_first: Vec<_> = tokens.iter().rev().collect();
    for app in [&change.old, &change.new] {
        let listed = sessions::list_devices(&app.redis, &tokens[0], now, config).await.unwrap();
        assert_eq!(listed.iter().map(|device| &device.token).collect::<Vec<_>>(), newest_first);
    }
    let redis = &change.old.redis;
    let ended = sessions::log_out_devices(redis, &tokens[7], &DeviceSelection::Others, now, config).await.unwrap();
    ended.unwrap().delete_data(redis, now, config).await.unwrap();
    for token in &tokens {
        assert_eq!(lives(&change.new, token).await, *token == tokens[7]);
    }
    assert_eq!(sessions::log_out_user(redis, &user("ada"), now, config).await, Ok(1));
    assert_eq!(change.store.raw(&["KEYS", "login:*"]).await, json!([]));
}

/// Runs a cleanup; returns the number of sessions ended.
async fn clean(app: &Rc<App>, probe: CleanupProbe) -> u64 {
    let budget = Budget::new(app.clock.clone(), MINUTE, 1_000);
    sessions::clean(&app.redis, &app.config.session, probe, &budget).await.unwrap().sessions
}

#[tokio::test]
async fn no_session_ends_while_both_layouts_together_are_below_the_limit() {
    let change = Change::start(&[("SESSION_LIMIT", "40")]).await;
    // Three times the share of a shard.
    many(&change.store, &change.old, 30, "ada").await;
    many(&change.store, &change.new, 10, "ada").await;
    for probe in [CleanupProbe::Overflow, CleanupProbe::Idle, CleanupProbe::Skip] {
        for app in [&change.old, &change.new] {
            assert_eq!(clean(app, probe).await, 0);
        }
    }
}

#[tokio::test]
async fn the_cleanup_ends_idle_and_surplus_sessions_of_both_layouts() {
    let change = Change::start(&[("SESSION_LIMIT", "40"), ("SESSION_IDLE", "3600")]).await;
    let old = many(&change.store, &change.old, 40, "ada").await;
    let new = many(&change.store, &change.new, 40, "ada").await;
    let surplus = clean(&change.new, CleanupProbe::Overflow).await;
    // Each shard rounds its limit down.
    assert!((40..=44).contains(&surplus), "{surplus}");
    assert!(!lives(&change.new, &old[0]).await && lives(&change.new, &old[39]).await, "the oldest of a shard end");
    assert!(lives(&change.new, &new[39]).await);

    change.store.clock.advance(Duration::from_hours(2));
    let left = 80 - surplus;
    assert_eq!(clean(&change.new, CleanupProbe::Idle).await, left);
    assert_eq!(change.store.raw(&["KEYS", "login:*"]).await, json!([]));
}

#[tokio::test]
async fn statistics_and_abandoned_carts_cover_both_layouts() {
    let change = Change::start(&[]).await;
    let (app, now) = (&change.new, change.new.clock.now());
    let stats = async || storage::read_stats(&app.redis, now).await.unwrap();
    let mut tokens = Vec::new();
    for number in 0..6 {
        let from = if number % 2 == 0 { &change.old } else { app };
        tokens.push(put(from, None, &format!("item-{number}"), 1).await);
    }
    let counted = stats().await;
    assert_eq!((counted.sessions, counted.earlier_sessions, counted.online), (6, 3, 6));
    for token in &tokens {
        sessions::log_out(&app.redis, token, now, &app.config.session).await.unwrap();
    }
    let counted = stats().await;
    assert_eq!((counted.sessions, counted.earlier_sessions, counted.abandoned_carts), (0, 0, 6));
    let (mut found, mut before) = (BTreeSet::new(), None);
    loop {
        let page = abandoned::read_page(&app.redis, before, 1).await.unwrap();
        found.extend(page.carts.iter().map(|cart| cart.lines[0].item.to_string()));
        before = page.next.map(|next| abandoned::AbandonedCursor::parse(&next.to_string()).unwrap());
        if before.is_none() {
            break;
        }
    }
    assert_eq!(found, (0..6).map(|number| format!("item-{number}")).collect());
}

#[tokio::test]
async fn isolates_of_both_numbers_sell_each_piece_of_a_sale_once() {
    let change = Change::start(&[]).await;
    let (now, id) = (change.new.clock.now(), row("pan"));
    let (starts, ends) = (now - MINUTE, now + 60 * MINUTE);
    let pan = json!({
        "id": "pan", "sale_starts_at": starts.as_secs(), "sale_ends_at": ends.as_secs(), "sale_pieces": 5, "sale_sold": 0,
        "sale_price_cents": 900, "price_cents": 1200,
    });
    put_row(&change.store, "pan", &pan, ends).await;
    let sales = |app: &Rc<App>| {
        let app = app.clone();
        let id = id.clone();
        async move |token: &Token| {
            FlashSales { redis: &app.redis, source: None, config: &app.config }.reserve(&id, token, now).await
        }
    };
    let mut sold = 0;
    for number in 0..4 {
        for app in change.apps() {
            let user = format!("user-{number}-{sold}");
            let token = log_in(app, None, &user).await;
            for other in change.apps() {
                match sales(other)(&token).await {
                    Ok(outcome) => sold += u32::from(outcome.created),
                    Err(Error::Refused(_)) => assert_eq!(sold, 5),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    assert_eq!(sold, 5);
}

#[tokio::test]
async fn an_order_leaves_one_cart_even_if_sessions_of_two_layouts_report_it() {
    let change = Change::start(&[]).await;
    let (now, config) = (change.new.clock.now(), &change.new.config);
    let text = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2}]}"#;
    let order = Order::parse(text).unwrap();
    let tokens = [put(&change.old, None, "mug", 5).await, put(&change.new, None, "mug", 5).await];
    for app in [&change.before, &change.new, &change.old, &change.new] {
        for token in &tokens {
            let customer = Customer { token: Some(token), user: None };
            order.settle(&app.redis, customer, now, &config.session).await.unwrap();
        }
    }
    assert_eq!(lines(&change.new, &tokens[0]).await, Some(json!({"mug": 3})));
    assert_eq!(lines(&change.new, &tokens[1]).await, Some(json!({"mug": 5})));
}

/// The shop repeats the report when the customer has a session in another layout.
#[tokio::test]
async fn an_order_from_before_the_change_leaves_no_second_cart_at_any_step() {
    for (shards, known) in [("1", "1, 4"), ("4", "1, 4"), ("4", "4, 1"), ("4", "")] {
        let change = Change::start(&[]).await;
        let (now, config) = (change.new.clock.now(), &change.new.config);
        let text = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2}]}"#;
        let order = Order::parse(text).unwrap();
        let report = async |app: &Rc<App>, token: &Token| {
            let customer = Customer { token: Some(token), user: None };
            order.settle(&app.redis, customer, now, &config.session).await.unwrap();
        };
        let first = put(&change.before, None, "mug", 5).await;
        report(&change.before, &first).await;
        let later = put(&change.new, None, "mug", 5).await;
        report(&change.store.app(&[("SHARDS", shards), ("SHARDS_KNOWN", known)]), &later).await;
        let left = [lines(&change.old, &first).await, lines(&change.old, &later).await];
        assert_eq!(left, [Some(json!({"mug": 3})), Some(json!({"mug": 5}))], "{shards} of {known}");
    }
}

#[tokio::test]
async fn sessions_survive_several_changes_and_the_way_back() {
    let store = Store::book().await;
    let mut tokens = Vec::new();
    for (shards, known) in [("1", ""), ("4", "1, 4"), ("16", "1, 4, 16"), ("1", "1, 4, 16")] {
        let app = store.app(&[("SHARDS", shards), ("SHARDS_KNOWN", known)]);
        let token = put(&app, None, "mug", 1).await;
        assert_eq!(layout(&token).to_string(), shards);
        tokens.push(token);
        for token in &tokens {
            assert_eq!(lines(&app, token).await, Some(json!({"mug": 1})));
        }
    }
}

fn known(shards: u16, known: &[u16]) -> Keys {
    let number = |shards| NonZeroU16::new(shards).unwrap();
    Keys::with_known(number(shards), &known.iter().copied().map(number).collect::<Vec<_>>())
}

#[test]
fn every_layout_finds_the_session_of_a_token() {
    let now = Timestamp::from_millis(1_795_000_000_000);
    let layouts = [Keys::BOOK, known(1, &[1, 4]), known(4, &[1, 4]), known(16, &[1, 4, 16]), known(1, &[1, 4, 1])];
    for token in layouts.map(|keys| keys.draw(now).unwrap()) {
        let beside = layouts.map(|keys| keys.draw_beside(&token, now).unwrap());
        let shard = layouts[0].shard_of(&token);
        for keys in layouts {
            assert!(beside.iter().all(|beside| keys.shard_of(beside) == shard) && keys.shard_of(&token) == shard);
        }
    }
}

#[test]
fn the_shared_keys_have_the_names_of_the_first_layout() {
    for (keys, ranking) in [
        (known(1, &[1, 4]), "viewed:"),
        (known(4, &[1, 4]), "viewed:"),
        (known(4, &[4, 1]), "viewed:{pages}"),
        (known(16, &[4, 16]), "viewed:{pages}"),
        (known(1, &[4, 1]), "viewed:{pages}"),
    ] {
        assert_eq!(keys.ranking(), ranking, "{keys:?}");
    }
}

#[test]
fn shards_of_several_layouts_overlap() {
    let names = |keys: Keys| keys.shards().map(Shard::recent).collect::<Vec<_>>();
    assert_eq!(names(known(2, &[1, 2])), ["recent:", "recent:{0}", "recent:{1}"]);
    assert_eq!(names(known(1, &[3, 2, 1])), ["recent:", "recent:{0}", "recent:{1}", "recent:{2}"]);
    let keys = known(2, &[1, 3, 2]);
    assert_eq!(keys.shards().map(|shard| keys.is_in_use(shard)).collect::<Vec<_>>(), [false, true, true, false]);
    assert!(keys.is_changing() && !known(2, &[2]).is_changing());
}

#[test]
fn a_token_without_a_mark_is_of_the_book_or_of_the_first_layout() {
    let token = Token::new(Timestamp::from_millis(0)).unwrap();
    let shard = |shards| token.shard(NonZeroU16::new(shards).unwrap()).to_string();
    assert_eq!(known(4, &[1, 4]).shard_of(&token).name(), "book");
    assert_eq!(known(4, &[4, 1]).shard_of(&token).name(), "book");
    assert_eq!(known(16, &[4, 16]).shard_of(&token).name(), shard(4));
    assert_eq!(known(4, &[4]).shard_of(&token).name(), shard(4));
}
