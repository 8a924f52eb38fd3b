//! Isolates of both steps have written, so there are keys under both names.

use edgefront::{
    App,
    orders::{Customer, Order, insights},
    ports::time::Timestamp,
    ranking,
    row_cache::{self, Schedule},
    schema::{carry_over::SharedNames, ids::ItemId},
};
use serde_json::json;

use super::{MINUTE, WEEK, at, carry_over, content, filled, isolates, user};
use crate::support::{Store, row};

#[tokio::test]
async fn what_both_names_have_is_added_up() {
    let store = filled().await;
    for command in [
        &["ZADD", "viewed:{pages}", "-1", "mug", "-2", "pot"][..],
        &["ZADD", "purged:{pages}", "9", "item:mug"],
        &["SET", "purged:{pages}latest", "9"],
        &["SET", "cache:{pages}aa", "newer"],
        &[
            "ZADD",
            "stored:{pages}",
            "1795000000001",
            "aa",
            "-9007199254740990",
            "~aa",
            "-9007199254740988",
            "~bb",
            "6",
            "",
        ],
    ] {
        store.raw(command).await;
    }
    carry_over(&store, SharedNames::Tags).await;
    let moved = content(&store).await;
    assert_eq!(at(&moved, "viewed:{pages}"), &json!(["mug", "-10", "cup", "-5", "pot", "-2"]));
    assert_eq!(
        (at(&moved, "purged:{pages}"), at(&moved, "purged:{pages}latest")),
        (&json!(["item:mug", "9"]), &json!("9"))
    );
    assert_eq!(at(&moved, "cache:{pages}aa"), "newer");
    // 2 + 4 units; the page that both accounts name counts once.
    assert_eq!(store.raw(&["ZSCORE", "stored:{pages}", ""]).await, "6");
}

/// Counts one order of these items for each of `numbers`, by visitors who had viewed a lamp.
async fn learn(app: &App, numbers: std::ops::Range<u32>, items: &[&str], now: Timestamp) {
    let lines: Vec<_> = items.iter().map(|id| json!({"id": id, "quantity": 1})).collect();
    for number in numbers {
        let order = json!({"order_id": number, "items": lines}).to_string();
        let order = Order::parse(&order).unwrap();
        let viewed = [ItemId::parse("lamp").unwrap()];
        assert!(insights::learn(&app.redis, &order, &viewed, now, &app.config.insights).await.unwrap());
    }
}

/// The insights of the mug: its orders, the score of the pan, and the orders after views of the lamp.
async fn known(app: &App, now: Timestamp) -> (f64, f64, f64) {
    let [mug, lamp] = ["mug", "lamp"].map(|id| ItemId::parse(id).unwrap());
    let (redis, config) = (&app.redis, &app.config.insights);
    let orders = insights::item_stats(redis, &mug, now, config).await.unwrap().orders;
    let together = insights::bought_together(redis, &mug, 10, now, config).await.unwrap();
    let pan = together.iter().find(|other| other.item.as_str() == "pan").map_or(0.0, |pan| pan.score);
    (orders, pan, insights::bought_by_viewers(redis, &lamp, 10, now, config).await.unwrap().orders)
}

#[tokio::test]
async fn orders_that_both_names_have_are_added_up() {
    // The names that have more orders need not have more items.
    for (first, second) in [(8, 1), (1, 8)] {
        let store = Store::book().await;
        let ([before, after], now) = (isolates(&store), Timestamp::from_millis(1_795_000_000_000));
        learn(&before, 0..first, &["mug", "pan"], now).await;
        learn(&after, first..9, &["mug", "pan"], now).await;
        assert_eq!(first + second, 9);
        carry_over(&store, SharedNames::Tags).await;
        assert_eq!(known(&after, now).await, (9.0, 1.0, 9.0));
        // The number of items stays right.
        learn(&after, 9..10, &["mug", "pan", "cup"], now).await;
        let meta = store.raw(&["HGET", "bought:{orders}mug", ""]).await;
        assert!(meta.as_str().unwrap().ends_with(" 1 10 2"), "{meta}");
        assert_eq!(carry_over(&store, SharedNames::Tags).await, 0);
    }
}

#[tokio::test]
async fn counts_of_an_earlier_half_life_decay_before_they_are_added() {
    let store = Store::book().await;
    let ([before, after], now) = (isolates(&store), Timestamp::from_millis(1_795_000_000_000));
    learn(&before, 0..8, &["mug", "pan"], now).await;
    learn(&after, 8..9, &["mug", "pan"], now + WEEK * 2).await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(known(&after, now + WEEK * 2).await, (3.0, 1.0, 3.0));
    assert!(store.raw(&["TTL", "bought:{orders}mug"]).await.as_u64().unwrap() > 0);
    // An isolate of the former step, whose clock is behind.
    learn(&before, 9..13, &["mug", "pan"], now).await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(known(&after, now + WEEK * 2).await, (4.0, 1.0, 4.0));
}

#[tokio::test]
async fn views_of_an_earlier_half_life_decay_before_they_are_added() {
    let store = filled().await;
    for command in [&["ZADD", "viewed:{pages}", "-1", "mug"][..], &["SET", "rescaled:{pages}", "1795000600"]] {
        store.raw(command).await;
    }
    carry_over(&store, SharedNames::Tags).await;
    let moved = content(&store).await;
    assert_eq!(at(&moved, "viewed:{pages}"), &json!(["mug", "-3.25", "cup", "-1.25"]));
    assert_eq!(at(&moved, "rescaled:{pages}"), "1795000600");
    // Counts without a marker are of now.
    store.raw(&["ZADD", "viewed:", "-1", "mug"]).await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:{pages}", "mug"]).await, "-4.25");
}

/// Isolates of both steps count views and run crons, before the move and after it.
#[tokio::test]
async fn a_rescale_beside_the_move_halves_no_view_too_early() {
    let store = Store::book().await;
    let ([before, after], now) = (isolates(&store), Timestamp::from_millis(1_795_000_200_000));
    let count = async |key, views| store.raw(&["ZINCRBY", key, views, "mug"]).await;
    let rescale = async |app: &App, now| ranking::rescale(&app.redis, now, &app.config.ranking).await.unwrap();
    rescale(&before, now).await;
    count("viewed:", "-512").await;
    count("viewed:{pages}", "-400").await;
    for app in [&before, &after] {
        rescale(app, now).await;
    }
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:{pages}", "mug"]).await, "-912");
    count("viewed:", "-88").await;
    for app in [&before, &after] {
        rescale(app, now).await;
    }
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:{pages}", "mug"]).await, "-1000");
    rescale(&after, now + MINUTE * 5).await;
    assert_eq!(store.raw(&["ZSCORE", "viewed:{pages}", "mug"]).await, "-500");
}

/// Older versions wrote a JSON string.
#[tokio::test]
async fn insights_in_an_older_form_give_way_to_newer_ones() {
    let (text, hash) = (r#"{"began":1,"orders":1,"items":{}}"#, ["", "1795000000 1 2 1", "cup", "1"]);
    for (older, newer) in [("bought:mug", "bought:{orders}mug"), ("bought:{orders}mug", "bought:mug")] {
        let store = Store::book().await;
        store.raw(&["SET", older, text]).await;
        store.raw(&[&["HSET", newer][..], &hash].concat()).await;
        carry_over(&store, SharedNames::Tags).await;
        assert_eq!(content(&store).await, [("bought:{orders}mug".to_owned(), json!(hash))]);
    }
}

#[tokio::test]
async fn a_row_keeps_the_schedule_that_the_new_isolates_gave_it() {
    let store = Store::book().await;
    let ([before, after], pan) = (isolates(&store), row("pan"));
    let now = after.clock.now();
    row_cache::schedule(&before.redis, &pan, 5.0, now - MINUTE).await.unwrap();
    row_cache::schedule(&before.redis, &row("mug"), 5.0, now).await.unwrap();
    row_cache::schedule(&after.redis, &pan, 60.0, now).await.unwrap();
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(row_cache::schedule_of(&after.redis, &pan).await, Ok(Some(Schedule { every: 60.0, next: now })));
    assert_eq!(row_cache::schedule_of(&after.redis, &row("mug")).await, Ok(Some(Schedule { every: 5.0, next: now })));
}

#[tokio::test]
async fn an_order_that_is_reported_again_before_the_move_is_sold_once() {
    let store = Store::book().await;
    let ([before, after], ada) = (isolates(&store), user("ada"));
    let now = after.clock.now();
    let report = async |app: &App, order: &str| {
        let reservation = json!({"sale": "pan", "id": "1795000000.bTcyZTNiM2Y4YWI3NDkxOQ"});
        let order = json!({"order_id": order, "items": [{"id": "pan", "quantity": 1}], "reservation": reservation});
        let order = Order::parse(&order.to_string()).unwrap();
        let customer = Customer { token: None, user: Some(&ada) };
        order.settle(&app.redis, customer, now, &app.config.session).await.unwrap();
    };
    report(&before, "A-1").await;
    report(&before, "A-2").await;
    report(&after, "A-2").await;
    report(&after, "A-3").await;
    carry_over(&store, SharedNames::Tags).await;
    assert_eq!(store.raw(&["HGET", "flash:{rows}pan", "sold"]).await, "3");
}

#[tokio::test]
async fn the_later_window_of_a_sale_stays_alone_with_its_holds() {
    for (from, to) in [("1", "2"), ("2", "1")] {
        let store = Store::book().await;
        for (tag, window) in [("", from), ("{rows}", to)] {
            let (user, sale) = (format!("user-{window}"), format!("flash:{tag}pan"));
            let (hold, order) = (format!("hold:{user}"), format!("order:{window}"));
            store.raw(&["HSET", &sale, "window", window, "sold", "1", &hold, "id", &order, "bob"]).await;
            store.raw(&["ZADD", &format!("held:{tag}pan"), "9", &user]).await;
        }
        carry_over(&store, SharedNames::Tags).await;
        let expected = [
            ("flash:{rows}pan".to_owned(), json!(["window", "2", "sold", "1", "hold:user-2", "id", "order:2", "bob"])),
            ("held:{rows}pan".to_owned(), json!(["user-2", "9"])),
        ];
        assert_eq!(content(&store).await, expected);
    }
}

/// `sold` must outlive the sale, or its pieces are sold again.
#[tokio::test]
async fn a_key_that_both_names_have_lives_as_long_as_the_longer_one() {
    for (from, to) in [("1000", "2000"), ("2000", "1000")] {
        let store = Store::book().await;
        for (tag, ttl) in [("", from), ("{rows}", to)] {
            let (sale, held) = (format!("flash:{tag}pan"), format!("held:{tag}pan"));
            store.raw(&["HSET", &sale, "window", "1"]).await;
            store.raw(&["ZADD", &held, "9", "ada"]).await;
            store.raw(&["EXPIRE", &sale, ttl]).await;
            store.raw(&["EXPIRE", &held, ttl]).await;
        }
        carry_over(&store, SharedNames::Tags).await;
        for key in ["flash:{rows}pan", "held:{rows}pan"] {
            assert!(store.raw(&["TTL", key]).await.as_u64().unwrap() > 1900, "{key}");
        }
    }
}
