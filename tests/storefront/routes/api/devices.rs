//! `/sessions` of the visitor, and `/users/{user}/sessions` of the service.

use http::Method;
use serde_json::{Value, json};

use super::{Answer, Visitor, log_in, service, with_json};
use crate::support::{Reply, SERVICE_KEY, Shop, eventually, scenarios};

scenarios!(&[("SESSION_IDLE", "600")];
    a_user_sees_where_they_are_logged_in,
    a_login_of_the_origin_names_the_browser,
    a_guest_sees_one_session_and_an_anonymous_visitor_none,
    one_device_is_logged_out_by_another,
    a_device_can_log_itself_out,
    a_device_that_has_logged_out_is_not_found,
    a_visitor_cannot_log_out_another_users_device,
    all_other_devices_are_logged_out,
    all_devices_are_logged_out,
    the_service_logs_a_user_out_everywhere,
    a_device_call_costs_two_redis_requests_before_the_response,
    an_invalid_device_is_refused,
);

const FIREFOX: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0";

async fn log_in_from<'a>(shop: &'a Shop, user: &str, device: &str) -> Visitor<'a> {
    let answer = service(shop, Method::POST, "/sessions", Some(&json!({"user": user, "device": device}))).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    Visitor::with_cookie(shop, answer.cookie().expect("a cookie"))
}

async fn sessions(visitor: &mut Visitor<'_>) -> Vec<Value> {
    let answer = visitor.get("/sessions").await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, "private, no-store"));
    answer.json["sessions"].as_array().expect("a list").clone()
}

async fn labels(visitor: &mut Visitor<'_>) -> Vec<Value> {
    sessions(visitor).await.iter().map(|session| session["device"].clone()).collect()
}

async fn id_of(visitor: &mut Visitor<'_>, device: &str) -> String {
    let sessions = sessions(visitor).await;
    let session = sessions.iter().find(|session| session["device"] == device).expect("the device");
    session["id"].as_str().expect("an id").to_owned()
}

async fn is_logged_in(visitor: &Visitor<'_>) -> bool {
    let cookie = visitor.cookie.clone().expect("a cookie");
    !Visitor::with_cookie(visitor.shop, cookie).get("/session").await.json["user"].is_null()
}

/// Asserts that nothing is left of these sessions but their abandoned carts.
async fn assert_cleaned_up(shop: &Shop, tokens: &[String]) {
    shop.settled().await;
    for token in tokens {
        assert_eq!(shop.store.raw(&["EXISTS", &format!("cart:{token}"), &format!("viewed:{token}")]).await, 0);
        assert_eq!(shop.store.raw(&["HEXISTS", "login:", token]).await, 0);
        assert_eq!(shop.store.raw(&["ZSCORE", "recent:", token]).await, Value::Null);
        assert_eq!(shop.store.raw(&["ZSCORE", "sessions:ada", token]).await, Value::Null);
        assert_eq!(shop.store.raw(&["HEXISTS", "devices:ada", token]).await, 0);
    }
}

async fn a_user_sees_where_they_are_logged_in(shop: &Shop) {
    let mut phone = log_in_from(shop, "ada", "The phone").await;
    let mut till = log_in(shop, "ada").await;
    log_in(shop, "bob").await;
    let mut gone = log_in_from(shop, "ada", "The library").await;
    gone.delete("/session").await;
    let expired = log_in_from(shop, "ada", "The old one").await;
    shop.store.raw(&["ZADD", "recent:", "1", &expired.token()]).await;

    let seen = sessions(&mut phone).await;

    let described: Vec<_> = seen.iter().map(|session| (&session["current"], &session["device"])).collect();
    assert_eq!(described, [(&json!(false), &json!(null)), (&json!(true), &json!("The phone"))], "newest first");
    for session in &seen {
        assert!(session["seen"].as_f64().unwrap() + 1.0 > session["began"].as_f64().unwrap(), "{session}");
        let text = session.to_string();
        assert!(!text.contains(&phone.token()) && !text.contains(&till.token()));
    }
    // Without a label from the login, only the current browser is named, by its User-Agent.
    let request = till.request(Method::GET, "/sessions").header("user-agent", FIREFOX);
    let seen = till.send(request).await.json;
    assert_eq!(
        (&seen["sessions"][0]["device"], &seen["sessions"][0]["current"]),
        (&json!("Firefox on Windows"), &json!(true))
    );
}

async fn a_login_of_the_origin_names_the_browser(shop: &Shop) {
    shop.origin.answer(Reply::status(303).header("location", "/").header("edge-login", "ada"));
    let login = Answer::to(shop.request(Method::POST, "/login").header("user-agent", FIREFOX)).await;
    let mut ada = Visitor::with_cookie(shop, login.cookie().expect("a cookie"));
    let seen = sessions(&mut ada).await;
    assert_eq!((seen.len(), &seen[0]["device"]), (1, &json!("Firefox on Windows")));
    // The list expires with the longest session.
    let ttl = shop.store.raw(&["TTL", "devices:ada"]).await.as_u64().unwrap();
    assert_eq!(ttl.div_ceil(24 * 3_600), 400, "days");
}

async fn a_guest_sees_one_session_and_an_anonymous_visitor_none(shop: &Shop) {
    let mut guest = Visitor::new(shop);
    assert_eq!(sessions(&mut guest).await, [json!(null); 0]);
    assert_eq!(guest.delete("/sessions").await.status, 204);
    assert_eq!(guest.delete("/sessions/0123456789abcdef").await.status, 404);
    guest.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let own = sessions(&mut guest).await;
    assert_eq!((own.len(), &own[0]["current"]), (1, &json!(true)));

    assert_eq!(guest.delete("/sessions?except=current").await.status, 204);
    assert_eq!(sessions(&mut guest).await.len(), 1);
    let path = format!("/sessions/{}", own[0]["id"].as_str().unwrap());
    assert_eq!(guest.delete(&path).await.status, 204);

    assert_eq!(guest.cookie, None);
    assert_eq!(shop.store.raw(&["HLEN", "login:"]).await, 0);
    assert_eq!(shop.store.raw(&["KEYS", "cart:*"]).await, json!([]));
}

async fn one_device_is_logged_out_by_another(shop: &Shop) {
    let mut phone = log_in_from(shop, "ada", "The phone").await;
    let mut laptop = log_in_from(shop, "ada", "The laptop").await;
    laptop.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let path = format!("/sessions/{}", id_of(&mut phone, "The laptop").await);

    let answer = phone.delete(&path).await;

    assert_eq!((answer.status, answer.header("set-cookie")), (204, ""));
    assert!(!is_logged_in(&laptop).await && is_logged_in(&phone).await);
    assert_cleaned_up(shop, &[laptop.token()]).await;
    let abandoned = shop.store.raw(&["XRANGE", "abandoned:", "-", "+"]).await;
    assert_eq!((&abandoned[0][1][1], &abandoned[0][1][5]), (&json!("ada"), &json!(r#"["mug","2"]"#)));
    assert_eq!(labels(&mut phone).await, ["The phone"]);
    assert_eq!(phone.delete(&path).await.status, 404);
}

async fn a_device_can_log_itself_out(shop: &Shop) {
    let mut phone = log_in_from(shop, "ada", "The phone").await;
    let other = log_in(shop, "ada").await;
    let own = phone.token();
    let path = format!("/sessions/{}", id_of(&mut phone, "The phone").await);
    assert_eq!(phone.delete(&path).await.status, 204);
    assert_eq!(phone.cookie, None);
    assert!(is_logged_in(&other).await);
    assert_cleaned_up(shop, &[own]).await;
}

async fn a_device_that_has_logged_out_is_not_found(shop: &Shop) {
    let mut phone = log_in_from(shop, "ada", "The phone").await;
    let mut library = log_in_from(shop, "ada", "The library").await;
    let path = format!("/sessions/{}", id_of(&mut phone, "The library").await);
    library.delete("/session").await;
    assert_eq!(phone.delete(&path).await.status, 404);
}

async fn a_visitor_cannot_log_out_another_users_device(shop: &Shop) {
    let mut ada = log_in_from(shop, "ada", "The phone").await;
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 2})).await;
    let path = format!("/sessions/{}", id_of(&mut ada, "The phone").await);
    let mut bob = log_in(shop, "bob").await;
    for other in [&mut bob, &mut guest] {
        assert_eq!(other.delete(&path).await.status, 404);
    }
    let foreign = shop.request(Method::DELETE, &format!("/_edge/v1{path}")).header("origin", "https://evil.example");
    let foreign = foreign.header("cookie", ada.cookie.clone().unwrap()).send().await.unwrap();
    assert_eq!(foreign.status(), 403);
    assert!(is_logged_in(&ada).await);
}

async fn all_other_devices_are_logged_out(shop: &Shop) {
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(log_in(shop, "ada").await);
    }
    let mut phone = log_in_from(shop, "ada", "The phone").await;
    let bob = log_in(shop, "bob").await;

    let answer = phone.delete("/sessions?except=current").await;

    assert_eq!((answer.status, answer.header("set-cookie")), (204, ""));
    assert!(is_logged_in(&phone).await && is_logged_in(&bob).await);
    for other in &others {
        assert!(!is_logged_in(other).await);
    }
    assert_cleaned_up(shop, &others.iter().map(Visitor::token).collect::<Vec<_>>()).await;
    assert_eq!(labels(&mut phone).await, ["The phone"]);
}

async fn all_devices_are_logged_out(shop: &Shop) {
    let (other, mut phone) = (log_in(shop, "ada").await, log_in(shop, "ada").await);
    let tokens = [other.token(), phone.token()];
    let bob = log_in(shop, "bob").await;
    assert_eq!(phone.delete("/sessions").await.status, 204);
    assert_eq!(phone.cookie, None);
    assert!(!is_logged_in(&other).await && is_logged_in(&bob).await);
    assert_cleaned_up(shop, &tokens).await;
    assert_eq!(shop.store.raw(&["EXISTS", "sessions:ada", "devices:ada"]).await, 0);
}

async fn the_service_logs_a_user_out_everywhere(shop: &Shop) {
    let (one, other, bob) = (log_in(shop, "ada").await, log_in(shop, "ada").await, log_in(shop, "bob").await);
    let tokens = [one.token(), other.token()];
    let answer = service(shop, Method::DELETE, "/users/ada/sessions", None).await;
    assert_eq!((answer.status, &answer.json), (200, &json!({"ended": 2})));
    assert!(!is_logged_in(&one).await && !is_logged_in(&other).await && is_logged_in(&bob).await);
    assert_cleaned_up(shop, &tokens).await;
    assert_eq!(service(shop, Method::DELETE, "/users/ada/sessions", None).await.json, json!({"ended": 0}));
    assert_eq!(service(shop, Method::DELETE, "/users/a%20b/sessions", None).await.json["field"], "user");
    let visitor = shop.request(Method::DELETE, "/_edge/v1/users/bob/sessions").header("sec-fetch-site", "same-origin");
    assert_eq!(visitor.send().await.unwrap().status(), 401);
}

async fn a_device_call_costs_two_redis_requests_before_the_response(shop: &Shop) {
    // From here on, the server knows the scripts.
    let mut warm = log_in(shop, "ada").await;
    warm.get("/sessions").await;
    warm.delete("/sessions").await;
    shop.settled().await;
    let mut ada = log_in_from(shop, "ada", "The phone").await;
    log_in_from(shop, "ada", "The laptop").await;
    log_in(shop, "ada").await;
    let laptop = format!("/sessions/{}", id_of(&mut ada, "The laptop").await);
    assert_eq!(shop.blocking_requests().await, 2);
    for path in [&*laptop, "/sessions?except=current", "/sessions"] {
        assert_eq!(ada.delete(path).await.status, 204, "{path}");
        assert_eq!(shop.blocking_requests().await, 2, "{path}");
        shop.settled().await;
    }
    log_in(shop, "ada").await;
    service(shop, Method::DELETE, "/users/ada/sessions", None).await;
    assert_eq!(shop.blocking_requests().await, 2);
    Visitor::new(shop).get("/sessions").await;
    assert_eq!(shop.blocking_requests().await, 0);
}

async fn an_invalid_device_is_refused(shop: &Shop) {
    let mut ada = log_in(shop, "ada").await;
    for id in ["x", "0123456789abcdef", "0123456789ABCDEF", "all", "others", "own"] {
        assert_eq!(ada.delete(&format!("/sessions/{id}")).await.status, 404, "{id}");
    }
    for except in ["", "all", "current&except=current"] {
        let answer = ada.delete(&format!("/sessions?except={except}")).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!("except")), "{except}");
    }
    for device in [json!(""), json!(7), json!("a\nb"), json!("a".repeat(65))] {
        let request = shop.request(Method::POST, "/_edge/v1/sessions").bearer_auth(SERVICE_KEY);
        let request = with_json(request, &json!({"user": "ada", "device": device}));
        let answer = Answer::to(request).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!("device")), "{device}");
    }
    assert!(is_logged_in(&ada).await);
}

/// A logout removes the login before the response, and cleans up the session after it.
#[tokio::test]
async fn the_cron_cleans_up_after_an_interrupted_logout() {
    let shop = Shop::native(&[("SESSION_IDLE", "60")]).await;
    let mut phone = log_in(&shop, "ada").await;
    let mut laptop = log_in(&shop, "ada").await;
    laptop.put("/cart/items/mug", &json!({"quantity": 2})).await;
    // As after an isolate that is evicted right after its response.
    let gone = laptop.token();
    shop.store.raw(&["HDEL", "login:", &gone]).await;
    assert_eq!(labels(&mut phone).await.len(), 1);
    shop.store.raw(&["ZADD", "recent:", "1", &gone]).await;

    service(&shop, Method::POST, "/jobs/clean-sessions", None).await;

    eventually("the session is cleaned up", async || shop.store.raw(&["KEYS", "cart:*"]).await == json!([])).await;
    assert_eq!(shop.store.raw(&["XLEN", "abandoned:"]).await, 1);
    assert!(is_logged_in(&phone).await);
}
