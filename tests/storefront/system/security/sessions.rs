//! V7 Session management, as a browser sees it. The decisions of each part are tested in `api/session.rs`, `sessions/`
//! and `src/sessions/keyring.rs`.

use std::collections::HashSet;

use edgefront::{config::Config, ports::time::Timestamp, schema::token::Token, sessions::Keyring};
use http::Method;
use serde_json::json;

use crate::{
    routes::api::{Visitor, log_in, service},
    support::{ORIGIN_KEY, Reply, SESSION_KEYS, Shop, scenarios, set_cookie, token_of},
};

scenarios! {
    &[];
    a_token_that_was_planted_is_worth_nothing_after_the_login,
    a_session_ends_at_its_absolute_and_at_its_idle_time,
    a_stolen_cookie_is_dead_after_logout_everywhere,
    a_dump_of_redis_logs_nobody_in,
}

/// The cookie of `token`, signed with `keys`.
fn signed(keys: &str, token: &Token) -> String {
    let variables =
        [("SESSION_KEYS", keys), ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1"), ("UPSTASH_REDIS_REST_TOKEN", "x")];
    let find = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    Keyring::new(&Config::from_lookup(find).unwrap().session).pair(token).unwrap()
}

async fn is_somebody(shop: &Shop, cookie: &str) -> bool {
    let session = Visitor::with_cookie(shop, cookie).get("/session").await.json;
    session["user"] != json!(null) || session["guest"] == json!(true)
}

/// V7.2.3: 128 bits of each token are random. Each bit is 1 about as often as 0 (4,000 tokens: 6 σ are 190).
#[test]
fn every_random_bit_of_a_token_is_drawn() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    const TOKENS: usize = 4_000;
    let tokens: HashSet<_> = (0..TOKENS)
        .map(|_| Token::new(Timestamp::from_millis(1_795_000_000_000)).unwrap().as_str().to_owned())
        .collect();
    assert_eq!(tokens.len(), TOKENS);
    let bytes: Vec<_> = tokens.iter().map(|token| URL_SAFE_NO_PAD.decode(token).unwrap()).collect();
    let thrown = bytes[0].len() * 8 - 40;
    assert_eq!(thrown, 128);
    for bit in 40..40 + thrown {
        let ones = bytes.iter().filter(|bytes| bytes[bit / 8] >> (bit % 8) & 1 == 1).count();
        assert!(ones.abs_diff(TOKENS / 2) < 190, "bit {bit}: {ones}");
    }
}

/// V7.2.4: fixation. The attacker has a guest's session, plants its cookie, and the victim logs in with it.
async fn a_token_that_was_planted_is_worth_nothing_after_the_login(shop: &Shop) {
    let mut attacker = Visitor::new(shop);
    attacker.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let planted = attacker.cookie.clone().unwrap();
    shop.origin.answer(Reply::status(303).header("edge-login", "ada"));
    for cookie in [planted.clone(), "__Host-session=AAAAAAAAAAAAAAAAAAAAAAAAAAAA.AAAA".to_owned()] {
        let login = shop.request(Method::POST, "/login").header("cookie", &cookie).send().await.unwrap();
        let given = set_cookie(&login);
        assert_ne!(token_of(&given), token_of(&cookie));
        assert!(is_somebody(shop, &given).await && !is_somebody(shop, &cookie).await);
    }
}

/// V7.3.1, V7.3.2
async fn a_session_ends_at_its_absolute_and_at_its_idle_time(shop: &Shop) {
    let days = |days: u64| {
        let millis = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        Timestamp::from_millis(u64::try_from(millis).unwrap() - days * 86_400_000)
    };
    for (began, seen, lives) in [(89, 0, true), (91, 0, false), (89, 29, true), (89, 31, false)] {
        let token = Token::new(days(began)).unwrap();
        shop.store.raw(&["HSET", "login:", token.as_str(), "ada"]).await;
        shop.store.raw(&["ZADD", "recent:", &days(seen).to_string(), token.as_str()]).await;
        assert_eq!(is_somebody(shop, &signed(SESSION_KEYS, &token)).await, lives, "{began} days old, seen {seen} ago");
    }
}

/// V7.4.1, V7.5.2: no request in flight revives the session.
async fn a_stolen_cookie_is_dead_after_logout_everywhere(shop: &Shop) {
    let (mut phone, stolen) = (log_in(shop, "ada").await, log_in(shop, "ada").await.cookie.unwrap());
    assert!(is_somebody(shop, &stolen).await);
    assert_eq!(phone.delete("/sessions?except=current").await.status, 204);
    for (method, path) in [(Method::GET, "/recent"), (Method::GET, "/cart"), (Method::DELETE, "/cart")] {
        let thief = Visitor::with_cookie(shop, &stolen);
        thief.request(method, path).send().await.unwrap();
    }
    shop.get("/products/mug").header("cookie", &stolen).send().await.unwrap();
    shop.settled().await;
    assert!(!is_somebody(shop, &stolen).await);
    assert_eq!(shop.origin.last().header("edge-user"), "");
    assert!(is_somebody(shop, &phone.cookie.unwrap()).await);
    assert_eq!(shop.store.raw(&["HLEN", "login:"]).await, 1);
}

/// V7.2.1: a stored token is no cookie, neither alone nor signed with another secret of the shop.
async fn a_dump_of_redis_logs_nobody_in(shop: &Shop) {
    let answer = service(shop, Method::POST, "/sessions", Some(&json!({"user": "ada"}))).await;
    let stored = Token::parse(answer.json["token"].as_str().unwrap()).unwrap();
    assert!(is_somebody(shop, &signed(SESSION_KEYS, &stored)).await);
    let before = shop.store.counts().requests;
    let forged = [
        format!("__Host-session={}", stored.as_str()),
        format!("__Host-session={}.{}", stored.as_str(), stored.as_str()),
        signed(&format!("{ORIGIN_KEY}{ORIGIN_KEY}"), &stored),
        signed(&SESSION_KEYS.to_uppercase(), &stored),
    ];
    for cookie in &forged {
        assert!(!is_somebody(shop, cookie).await, "{cookie}");
    }
    assert_eq!(shop.store.counts().requests, before, "a forged cookie costs Redis nothing");
}

/// V13.3.4
#[tokio::test]
async fn a_session_key_rotates_without_logging_anybody_out_and_a_dropped_one_signs_nothing() {
    const NEW: &str = "a-new-session-key-of-the-tests-0123456789";
    let rotated = format!("{NEW},{SESSION_KEYS}");
    for (keys, new, old) in [(rotated.as_str(), true, true), (NEW, true, false), (SESSION_KEYS, false, true)] {
        let shop = Shop::native(&[("SESSION_KEYS", keys)]).await;
        let cookie = log_in(&shop, "ada").await.cookie.unwrap();
        let own = Token::parse(token_of(&cookie)).unwrap();
        assert_eq!(is_somebody(&shop, &signed(NEW, &own)).await, new, "{keys}");
        assert_eq!(is_somebody(&shop, &signed(SESSION_KEYS, &own)).await, old, "{keys}");
        assert_eq!(cookie, signed(keys, &own), "the first signs");
    }
}
