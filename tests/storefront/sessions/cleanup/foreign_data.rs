use edgefront::{
    carts::abandoned,
    sessions::{CleanupProbe, CleanupReport},
};
use serde_json::{Value, json};
use upstash_rest::Command;

use super::{MINUTE, clean, count_keys, remaining_tokens, start_session, store_with_limit};
use crate::sessions::sorted;

#[tokio::test]
async fn invalid_tokens_neither_reach_the_ranking_nor_stop_the_cleanup() {
    let (store, app) = store_with_limit("10").await;
    store.raw(&["ZADD", "viewed:", "-5", "mug"]).await;
    store.raw(&["ZADD", "recent:", "0", ""]).await;
    store.raw(&["HSET", "login:", "", "nobody"]).await;
    let not_utf8 = Command::write("ZADD").arg("recent:").num(0).arg([0xff, 0xfe]);
    store.aside.run::<()>(not_utf8).await.unwrap();
    let idle = start_session(&store, &app, "ada").await;
    store.clock.advance(2 * MINUTE);
    let younger = start_session(&store, &app, "bob").await;

    assert_eq!(clean(&app, CleanupProbe::Idle).await.sessions, 1);
    assert_eq!(remaining_tokens(&store).await, [younger.as_str()]);
    assert_eq!(store.raw(&["HKEYS", "login:"]).await, json!([younger.as_str()]));
    assert_ne!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, Value::Null);
    assert_eq!(count_keys(&store, &format!("*{}", idle.as_str())).await, 0);
}

#[tokio::test]
async fn sessions_of_code_that_was_written_against_the_book_end_too() {
    let (store, app) = store_with_limit("10").await;
    let uuid = "79ef9a65-4a7c-4a9c-8f3c-6d0a4a3a2b11";
    store.raw(&["HSET", "login:", uuid, "user {1}"]).await;
    store.raw(&["ZADD", "recent:", "1700000000.25", uuid]).await;
    store.raw(&["ZADD", &format!("viewed:{uuid}"), "1700000000.25", "a:b"]).await;
    store.raw(&["HSET", &format!("cart:{uuid}"), "a:b", "3"]).await;
    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 1, carts: 1, unfinished: false });
    assert_eq!(store.raw(&["KEYS", "*"]).await, json!(["abandoned:"]));
}

#[tokio::test]
async fn values_of_another_type_do_not_stop_the_cleanup() {
    let (store, app) = store_with_limit("10").await;
    let wrong_type = start_session(&store, &app, "ada").await;
    let wrong_quantity = start_session(&store, &app, "bob").await;
    let not_utf8 = Command::write("HSET").arg("login:").arg("somebody").arg([0xff]);
    store.aside.run::<()>(not_utf8).await.unwrap();
    store.raw(&["ZADD", "recent:", "1", "somebody"]).await;
    store.raw(&["SET", &format!("cart:{}", wrong_type.as_str()), "not a hash"]).await;
    store.raw(&["SET", "sessions:ada", "not a list"]).await;
    let cart = format!("cart:{}", wrong_quantity.as_str());
    store.raw(&["HSET", &cart, "mug", "inf", "cup", "3", "bowl", "nan"]).await;
    store.clock.advance(2 * MINUTE);

    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 3, carts: 1, unfinished: false });
    assert_eq!(remaining_tokens(&store).await, [""; 0]);
    let abandoned = store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!(abandoned[0][1][1], "bob");
    let lines = abandoned::read_page(&app.redis, None, 10).await.unwrap().carts.remove(0).lines;
    assert_eq!(lines.iter().map(|line| (line.item.as_str(), line.quantity)).collect::<Vec<_>>(), [("cup", 3)]);
}

#[tokio::test]
async fn a_damaged_list_of_abandoned_carts_does_not_stop_the_cleanup() {
    let (store, app) = store_with_limit("10").await;
    start_session(&store, &app, "ada").await;
    start_session(&store, &app, "bob").await;
    store.raw(&["SET", "abandoned:", "another program's"]).await;
    store.clock.advance(2 * MINUTE);

    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 2, carts: 0, unfinished: false });
    assert_eq!(
        sorted(store.raw(&["KEYS", "*:*"]).await),
        ["abandoned:", "devices:ada", "devices:bob", "sessions:ada", "sessions:bob"]
    );
    assert_eq!(store.raw(&["GET", "abandoned:"]).await, "another program's");
}

#[tokio::test]
async fn an_item_that_is_not_utf8_costs_only_its_line_of_an_abandoned_cart() {
    let (store, app) = store_with_limit("10").await;
    let token = start_session(&store, &app, "ada").await;
    let script = "return redis.call('HSET', KEYS[1], ARGV[1], 1)";
    let not_utf8 = Command::write("EVAL").arg(script).num(1).arg(format!("cart:{}", token.as_str())).arg([0xff]);
    store.aside.run::<()>(not_utf8).await.unwrap();
    store.clock.advance(2 * MINUTE);

    assert_eq!(clean(&app, CleanupProbe::Idle).await, CleanupReport { sessions: 1, carts: 1, unfinished: false });
    let carts = abandoned::read_page(&app.redis, None, 10).await.unwrap().carts;
    assert_eq!(carts[0].lines.iter().map(|line| line.item.as_str()).collect::<Vec<_>>(), ["mug"]);
}
