//! Sessions in four shards, on a cluster of three servers: the behavior that only this layout has. `cargo xtask test
//! --cluster` runs all other tests on a cluster, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use edgefront::{
    App,
    carts::{self, CartChange, Quantity, abandoned},
    orders::{Customer, Order},
    ports::budget::Budget,
    schema::{
        ids::{ItemId, OrderId},
        keys::Keys,
        token::Token,
    },
    sessions::{self, CleanupProbe, DeviceSelection, LoginRequest},
};
use serde_json::{Value, json};

use crate::{
    routes::api::{Visitor, log_in as log_in_by_http, service},
    sessions::{log_in, user},
    support::{Shop, Store},
};

pub const MINUTE: Duration = Duration::from_mins(1);

fn keys(app: &Rc<App>) -> Keys {
    app.redis.keys()
}

pub async fn put(app: &Rc<App>, token: Option<&Token>, item: &str, quantity: u32) -> Token {
    let (item, quantity) =
        (ItemId::parse(item).unwrap(), Quantity::parse(&json!(quantity), app.config.cart.max_quantity).unwrap());
    let change = CartChange::Set(item, quantity);
    let write = carts::change(&app.redis, token, &change, app.clock.now(), &app.config).await.unwrap();
    write.session.unwrap().token
}

pub async fn lines(app: &Rc<App>, token: &Token) -> Option<Value> {
    let read = carts::read(&app.redis, token, app.clock.now(), &app.config.session).await.unwrap();
    read.map(|(_, cart)| cart.to_json())
}

/// Creates sessions of one user, each seen a moment after the one before.
pub async fn many(store: &Store, app: &Rc<App>, count: usize, name: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for _ in 0..count {
        store.clock.advance(Duration::from_millis(10));
        tokens.push(log_in(app, None, name).await);
    }
    tokens
}

#[tokio::test]
async fn all_keys_of_a_session_are_in_its_shard() {
    let store = Store::spread().await;
    let app = store.app(&[]);
    for token in many(&store, &app, 24, "ada").await {
        put(&app, Some(&token), "mug", 1).await;
    }
    let answer = store.aside.run(upstash_rest::Command::read("KEYS").arg("*")).await.unwrap();
    let stored: Vec<String> = answer;
    let mut families = BTreeMap::<&str, BTreeSet<&str>>::new();
    for key in &stored {
        let (family, rest) = key.split_once(":{").expect("a tag");
        families.entry(family).or_default().insert(rest.split_once('}').expect("a tag").0);
    }
    // 24 sessions in 4 shards: in 1 of 250 runs, a shard has none.
    let tags = &families["login"];
    assert!(tags.len() >= 3, "{tags:?}");
    for family in ["recent", "cart", "sessions", "devices"] {
        assert_eq!(&families[family], tags, "{family}");
    }
}

#[tokio::test]
async fn a_login_takes_the_guests_cart_along_within_the_shard() {
    let store = Store::spread().await;
    let app = store.app(&[]);
    for shard in keys(&app).shards() {
        let guest = Token::new_in_shard(shard.number(), keys(&app).shard_count(), app.clock.now()).unwrap();
        // No session has this token: the session that starts gets another token of the same shard.
        let guest_session = put(&app, Some(&guest), "mug", 2).await;
        assert_eq!(keys(&app).shard_of(&guest_session), shard);
        let ada = log_in(&app, Some(&guest_session), "ada").await;
        let again = log_in(&app, Some(&ada), "ada").await;
        assert_eq!(keys(&app).shard_of(&again), shard);
        assert_eq!(lines(&app, &again).await, Some(json!({"mug": 2})));
        assert_eq!(
            (lines(&app, &ada).await, lines(&app, &guest_session).await),
            (None, None),
            "the old sessions have ended"
        );
    }
}

#[tokio::test]
async fn a_user_sees_and_ends_sessions_of_all_shards() {
    let store = Store::spread().await;
    let app = store.app(&[]);
    let tokens = many(&store, &app, 12, "ada").await;
    let bob = log_in(&app, None, "bob").await;
    let shards: BTreeSet<_> = tokens.iter().map(|token| keys(&app).shard_of(token)).collect();
    assert!(shards.len() > 1);
    let (now, config) = (app.clock.now(), &app.config.session);
    let listed = sessions::list_devices(&app.redis, &tokens[5], now, config).await.unwrap();
    let newest_first: Vec<_> = tokens.iter().rev().collect();
    assert_eq!(listed.iter().map(|device| &device.token).collect::<Vec<_>>(), newest_first);
    assert_eq!(sessions::latest_login(&app.redis, &user("ada"), now, config).await.unwrap().as_ref(), tokens.last());

    let ended = sessions::log_out_devices(&app.redis, &tokens[5], &DeviceSelection::Others, now, config)
        .await
        .unwrap()
        .unwrap();
    assert!(!ended.includes_current);
    ended.delete_data(&app.redis, now, config).await.unwrap();
    for token in &tokens {
        let lives = sessions::check(&app.redis, token, now, config).await.unwrap().is_some();
        assert_eq!(lives, *token == tokens[5]);
    }
    assert_eq!(store.raw(&["ZCARD", "sessions:ada"]).await, 1);
    assert_eq!(sessions::log_out_user(&app.redis, &user("ada"), now, config).await, Ok(1));
    assert!(sessions::check(&app.redis, &bob, now, config).await.unwrap().is_some());
    assert_eq!(store.raw(&["HLEN", "login:"]).await, 1);
}

#[tokio::test]
async fn each_shard_keeps_its_share_and_its_youngest() {
    let store = Store::spread().await;
    let app = store.app(&[("SESSION_LIMIT", "20")]);
    let mut expected = Vec::new();
    for shard in keys(&app).shards() {
        for age in (1..=8).rev() {
            let token = Token::new_in_shard(shard.number(), keys(&app).shard_count(), app.clock.now()).unwrap();
            let seen = (app.clock.now() - MINUTE * age).to_string();
            store.raw(&["HSET", "login:", token.as_str(), "ada"]).await;
            store.raw(&["ZADD", "recent:", &seen, token.as_str()]).await;
            if age <= 5 {
                expected.push(token.as_str().to_owned());
            }
        }
    }
    let clean = async || {
        let budget = Budget::new(app.clock.clone(), MINUTE, 1_000);
        sessions::clean(&app.redis, &app.config.session, CleanupProbe::Overflow, &budget).await.unwrap()
    };
    assert_eq!(clean().await.sessions, 12);
    let mut left: Vec<String> = serde_json::from_value(store.raw(&["HKEYS", "login:"]).await).unwrap();
    left.sort();
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(clean().await.sessions, 0);
}

#[tokio::test]
async fn a_login_with_an_idempotency_key_finds_its_session_again() {
    let store = Store::spread().await;
    let app = store.app(&[]);
    let (now, config) = (app.clock.now(), &app.config.session);
    for key in ["a", "b", "c", "d", "e", "f"] {
        let ada = user("ada");
        let request = LoginRequest { user: &ada, old_token: None, label: None, idempotency_key: Some(key) };
        let log_in = async || sessions::log_in(&app.redis, &request, now, config).await.unwrap();
        assert_eq!(log_in().await, log_in().await, "{key}");
    }
    assert_eq!(store.raw(&["HLEN", "login:"]).await, 6);
}

#[tokio::test]
async fn abandoned_carts_of_all_shards_are_one_list() {
    let store = Store::spread().await;
    let redis = &store.redis;
    // At each moment, one cart in every shard: their entries have the same id.
    let mut expected = Vec::new();
    for millis in 1..=5 {
        for shard in redis.keys().shards() {
            let items = json!([format!("item-{millis}-{}", shard.number()), "1"]).to_string();
            let add = upstash_rest::Command::write("XADD").arg(shard.abandoned()).arg(format!("{millis}-0"));
            store.aside.run::<()>(add.args(["user", "", "seen", "1", "items", &items])).await.unwrap();
            expected.push(format!("item-{millis}-{}", shard.number()));
        }
    }
    expected.reverse();
    for limit in [1, 3, 7, 20, 30] {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = abandoned::read_page(redis, before, limit).await.unwrap();
            assert!(page.carts.len() <= limit);
            found.extend(page.carts.iter().map(|cart| cart.lines[0].item.to_string()));
            // As a client sends it back in a URL.
            before = page.next.map(|next| abandoned::AbandonedCursor::parse(&next.to_string()).unwrap());
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found, expected, "{limit} at a time");
    }
}

#[tokio::test]
async fn an_order_leaves_one_cart_even_if_two_sessions_report_it() {
    let store = Store::spread().await;
    let app = store.app(&[]);
    let text = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":2}]}"#;
    let order = Order::parse(text).unwrap();
    let mut tokens = Vec::new();
    for shard in keys(&app).shards() {
        let token = Token::new_in_shard(shard.number(), keys(&app).shard_count(), app.clock.now()).unwrap();
        tokens.push(put(&app, Some(&token), "mug", 5).await);
    }
    for _ in 0..2 {
        for token in &tokens {
            let (now, config) = (app.clock.now(), &app.config.session);
            order.settle(&app.redis, Customer { token: Some(token), user: None }, now, config).await.unwrap();
        }
    }
    let mut left = Vec::new();
    for token in &tokens {
        left.push(lines(&app, token).await.unwrap()["mug"].clone());
    }
    assert_eq!(left, [3, 5, 5, 5]);
    let marker = keys(&app).order(&OrderId::parse("A-1").unwrap());
    let ttl: i64 = store.aside.run(upstash_rest::Command::read("TTL").arg(marker)).await.unwrap();
    assert!(ttl > 0, "it does not stay for ever");
}

#[tokio::test]
async fn a_shop_works_on_a_cluster() {
    let shop = Shop::spread(&[("PAGE_RANK_LIMIT", "10")]).await;
    shop.store.raw(&["ZADD", "viewed:", "-9", "mug"]).await;
    for expected in ["fwd=uri-miss; stored", "hit"] {
        let answer = shop.visit("/products/mug").await;
        assert!(answer.headers()["cache-status"].to_str().unwrap().contains(expected), "{answer:?}");
        shop.settled().await;
    }
    let mut ada = log_in_by_http(&shop, "ada").await;
    let mut guest = Visitor::new(&shop);
    for visitor in [&mut ada, &mut guest] {
        visitor.put("/cart/items/mug", &json!({"quantity": 2})).await;
        assert_eq!(visitor.get("/cart").await.json["quantity"], 2);
        assert_eq!(visitor.post("/views", &json!({"item": "mug"})).await.status, 202);
        shop.settled().await;
        assert_eq!(visitor.get("/recent").await.json["items"], json!(["mug"]));
    }
    let stats = service(&shop, http::Method::GET, "/stats", None).await.json;
    assert_eq!((&stats["sessions"], &stats["online"]), (&json!(2), &json!(2)));
    shop.cron("* * * * *").await;
    assert_eq!(ada.delete("/session").await.status, 204);
    let abandoned = service(&shop, http::Method::GET, "/abandoned", None).await.json;
    assert_eq!((&abandoned["carts"][0]["user"], abandoned["carts"].as_array().map(Vec::len)), (&json!("ada"), Some(1)));
    let failures: Vec<_> = shop.logs().into_iter().filter(|line| !line.starts_with("info")).collect();
    assert_eq!(failures, Vec::<String>::new());
}
