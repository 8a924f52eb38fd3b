//! `Edge-Cart`: the origin gets the visitor's cart and changes it. So a cart works with plain forms.

use edgefront_gateway::{Fault, FaultScope};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    page_cache::is_hit,
    support::{Reply, Shop, cookie_pairs, scenarios, set_cookie},
};

scenarios! {
    &[];
    the_origin_gets_the_cart_and_the_visitor_waits_for_one_request,
    only_cart_routes_send_the_cart,
    a_visitor_without_a_session_has_an_empty_cart_and_costs_nothing,
    without_redis_the_origin_gets_no_cart,
    no_client_forges_the_cart,
    a_guests_first_form_starts_a_session,
    every_change_of_the_origin_takes_effect_before_the_response,
    a_response_can_log_in_and_change_the_cart,
    a_change_during_a_login_does_not_sign_the_visitor_out,
    a_change_that_redis_refuses_is_a_503,
    a_full_cart_is_a_409_with_the_limit,
    a_write_voids_its_pages_although_its_change_of_the_cart_is_refused,
    an_invalid_change_is_ignored_and_logged,
    a_list_of_operations_is_done_in_one_request,
    a_login_merges_several_lines,
    a_list_with_an_invalid_operation_changes_nothing,
    a_list_that_overfills_the_cart_changes_nothing,
    an_item_may_be_named_by_an_integer,
    a_named_user_is_logged_out_everywhere_and_the_visitor_is_not,
    log_out_everywhere_ends_every_session_of_the_user,
    log_out_everywhere_ends_a_guests_session_too,
}

const FORM: &str = r#"{"op":"add","id":"mug","quantity":2}"#;

/// Sends a form. The origin responds with `change`. Returns status and cookie of the response.
async fn send(shop: &Shop, cookie: &str, change: &str) -> (StatusCode, Option<String>) {
    let reply = Reply::status(303).header("location", "/cart").header("edge-cart", change);
    let caches = ["cdn-cache-control", "cloudflare-cdn-cache-control"];
    shop.origin.answer(caches.into_iter().fold(reply, |reply, name| reply.header(name, "public, max-age=60")));
    let answer = shop.request(Method::POST, "/cart").header("cookie", cookie).send().await.unwrap();
    assert!(!answer.headers().contains_key("edge-cart"));
    let set = answer.headers().get("set-cookie").map(|set| set.to_str().unwrap());
    if set.is_some() {
        assert_eq!(answer.headers()["cache-control"], "private, no-store");
        assert!(caches.iter().all(|name| !answer.headers().contains_key(*name)), "{:?}", answer.headers());
    }
    (answer.status(), set.and_then(|set| Some(set.split_once(';')?.0.to_owned())))
}

/// The cookie of a guest with two mugs in the cart.
async fn guest(shop: &Shop) -> String {
    send(shop, "", FORM).await.1.expect("a session")
}

/// The cart that the origin gets when the visitor requests `path`; null without one.
async fn told(shop: &Shop, cookie: &str, path: &str) -> Value {
    shop.origin.answer(Reply::html("x"));
    shop.get(path).header("cookie", cookie).send().await.unwrap();
    serde_json::from_str(shop.origin.last().header("edge-cart")).unwrap_or_default()
}

async fn the_origin_gets_the_cart_and_the_visitor_waits_for_one_request(shop: &Shop) {
    let cookie = guest(shop).await;
    for path in ["/cart", "/checkout", "/cart?from=mail", "/Cart/"] {
        shop.settled().await;
        assert_eq!(told(shop, &cookie, path).await, json!({"mug": 2}), "{path}");
        assert_eq!(shop.blocking_requests().await, 1, "the session and the cart together");
    }
    shop.settled().await;
    send(shop, &cookie, r#"{"op":"set","id":"a","quantity":3}"#).await;
    assert_eq!(shop.blocking_requests().await, 2, "who asks, and what the origin said");
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"a": 3, "mug": 2}));
}

async fn only_cart_routes_send_the_cart(shop: &Shop) {
    let cookie = guest(shop).await;
    for path in ["/", "/about", "/products/mug", "/cart/mug", "/checkouts"] {
        assert_eq!(told(shop, &cookie, path).await, Value::Null, "{path}");
    }
}

async fn a_visitor_without_a_session_has_an_empty_cart_and_costs_nothing(shop: &Shop) {
    for cookie in ["", "__Host-session=forged.mac"] {
        assert_eq!(told(shop, cookie, "/cart").await, json!({}));
        assert_eq!(shop.blocking_requests().await, 0);
    }
    let cookie = guest(shop).await;
    shop.settled().await;
    shop.store.raw(&["DEL", "login:"]).await;
    assert_eq!(told(shop, &cookie, "/cart").await, json!({}), "the cart of a session that has ended is nobody's");
}

async fn without_redis_the_origin_gets_no_cart(shop: &Shop) {
    let cookie = guest(shop).await;
    shop.store.gateway.set_fault(Some(Fault::Status(500, "{}".to_owned())));
    assert_eq!(told(shop, &cookie, "/cart").await, Value::Null);
    assert!(!shop.origin.last().headers.contains_key("edge-cart"));
}

async fn no_client_forges_the_cart(shop: &Shop) {
    shop.get("/cart").header("edge-cart", r#"{"pan":1}"#).send().await.unwrap();
    assert_eq!(shop.origin.last().header("edge-cart"), "{}");
    shop.get("/about").header("edge-cart", r#"{"pan":1}"#).send().await.unwrap();
    assert!(!shop.origin.last().headers.contains_key("edge-cart"));
}

async fn a_guests_first_form_starts_a_session(shop: &Shop) {
    // Redis knows the script after this call.
    guest(shop).await;
    // The background work voids the page at the form's URL.
    shop.settled().await;
    let (status, cookie) = send(shop, "", FORM).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(shop.blocking_requests().await, 1);
    let cookie = cookie.expect("a session");
    assert!(cookie.starts_with("__Host-session="));
    let (_, second) = send(shop, &cookie, FORM).await;
    assert_eq!(second, None, "the session is there already");
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"mug": 4}));

    let (_, cookie) = send(shop, "", r#"{"op":"clear"}"#).await;
    assert_eq!(cookie, None, "nothing was put into a cart");
}

async fn every_change_of_the_origin_takes_effect_before_the_response(shop: &Shop) {
    let cookie = guest(shop).await;
    for (change, cart) in [
        (r#"{"op":"add","id":"pan","quantity":1}"#, json!({"mug": 2, "pan": 1})),
        (r#"{"op":"set","id":"mug","quantity":5}"#, json!({"mug": 5, "pan": 1})),
        (r#"{"op":"set","id":"mug","quantity":0}"#, json!({"pan": 1})),
        (r#"{"op":"clear"}"#, json!({})),
    ] {
        send(shop, &cookie, change).await;
        assert_eq!(told(shop, &cookie, "/cart").await, cart, "{change}");
    }
}

async fn a_response_can_log_in_and_change_the_cart(shop: &Shop) {
    let guest = guest(shop).await;
    let reply = Reply::status(303).header("location", "/").header("edge-login", "ada").header("edge-cart", FORM);
    shop.origin.answer(reply);
    let answer = shop.request(Method::POST, "/login").header("cookie", &guest).send().await.unwrap();
    let [cookie] = cookie_pairs(answer.headers())[..] else { panic!("one cookie: {answer:?}") };
    assert_eq!(told(shop, cookie, "/cart").await, json!({"mug": 4}), "the guest's two and the new ones");
    assert_eq!(shop.origin.last().header("edge-user"), "ada");
}

/// A second tab sends its form before the browser has the cookie of the login.
async fn a_change_during_a_login_does_not_sign_the_visitor_out(shop: &Shop) {
    let guest = guest(shop).await;
    shop.origin.answer(Reply::status(303).header("location", "/").header("edge-login", "ada"));
    let answer = shop.request(Method::POST, "/login").header("cookie", &guest).send().await.unwrap();
    let cookie = &set_cookie(&answer);
    for change in [FORM, r#"{"op":"set","id":"mug","quantity":0}"#] {
        assert_eq!(send(shop, &guest, change).await, (StatusCode::CONFLICT, None), "{change}");
    }
    assert_eq!(send(shop, cookie, FORM).await, (StatusCode::SEE_OTHER, None));
    assert_eq!(told(shop, cookie, "/cart").await, json!({"mug": 4}));
}

async fn a_change_that_redis_refuses_is_a_503(shop: &Shop) {
    let cookie = guest(shop).await;
    shop.store.gateway.set_fault(Some(Fault::Status(500, "{}".to_owned())));
    assert_eq!(send(shop, &cookie, FORM).await, (StatusCode::SERVICE_UNAVAILABLE, None));
    shop.store.gateway.set_fault(None);
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"mug": 2}));
}

/// A change that a [full cart](full_cart) refuses.
const TOO_MUCH: &str = r#"{"op":"add","id":"pan","quantity":1}"#;

/// The cookie of a guest whose cart is full.
async fn full_cart(shop: &Shop) -> String {
    let cookie = guest(shop).await;
    let token = cookie.strip_prefix("__Host-session=").unwrap().split('.').next().unwrap();
    let lines: Vec<_> = (0..99).flat_map(|number| [format!("item-{number}"), "1".to_owned()]).collect();
    let key = format!("cart:{token}");
    let command: Vec<_> = ["HSET", &key].into_iter().chain(lines.iter().map(String::as_str)).collect();
    shop.store.raw(&command).await;
    cookie
}

async fn a_full_cart_is_a_409_with_the_limit(shop: &Shop) {
    let cookie = full_cart(shop).await;
    shop.origin.answer(Reply::status(303).header("edge-cart", TOO_MUCH));
    let request = shop.request(Method::POST, "/cart").header("cookie", cookie).header("accept", "text/html,*/*");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CONFLICT);
    let page = answer.text().await.unwrap();
    assert!(page.contains("holds 100 different items") && !page.contains("does not answer"), "{page}");
}

// RFC 9111 §4.4
async fn a_write_voids_its_pages_although_its_change_of_the_cart_is_refused(shop: &Shop) {
    let cookie = full_cart(shop).await;
    for (status, is_voided) in [(422, false), (303, true)] {
        shop.origin.answer(Reply::html("page").header("cache-control", "max-age=60"));
        for path in ["/review", "/reviews"] {
            shop.visit(path).await;
            shop.settled().await;
            assert!(is_hit(&shop.visit(path).await), "{path}");
        }
        shop.origin.answer(Reply::status(status).header("location", "/reviews").header("edge-cart", TOO_MUCH));
        let answer = shop.request(Method::POST, "/review").header("cookie", &cookie).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CONFLICT);
        for path in ["/review", "/reviews"] {
            assert_eq!(is_hit(&shop.visit(path).await), !is_voided, "{status} {path}");
        }
    }
}

async fn an_invalid_change_is_ignored_and_logged(shop: &Shop) {
    let cookie = guest(shop).await;
    for change in ["mug", "{}", r#"{"op":"add","id":"a b","quantity":1}"#, r#"{"op":"set","id":"a","quantity":-0.5}"#] {
        assert_eq!(send(shop, &cookie, change).await.0, StatusCode::SEE_OTHER);
    }
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"mug": 2}));
    shop.logged("edge-cart is invalid and was ignored").await;
}

/// The header's value for a list of operations.
fn list(operations: &[Value]) -> String {
    Value::from(operations).to_string()
}

async fn a_list_of_operations_is_done_in_one_request(shop: &Shop) {
    // Redis knows the script after this call.
    let cookie = guest(shop).await;
    let changes = list(&[
        json!({"op": "add", "id": "pan", "quantity": 1}),
        json!({"op": "add", "id": "mug", "quantity": 3}),
        json!({"op": "set", "id": "cup", "quantity": 4}),
        json!({"op": "set", "id": "pan", "quantity": 0}),
    ]);
    shop.settled().await;
    assert_eq!(send(shop, &cookie, &changes).await, (StatusCode::SEE_OTHER, None));
    assert_eq!(shop.blocking_requests().await, 2, "as with one operation: the session, and the cart");
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"cup": 4, "mug": 5}));
    let anew = list(&[json!({"op": "clear"}), json!({"op": "add", "id": "pan", "quantity": 2})]);
    send(shop, &cookie, &anew).await;
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"pan": 2}));

    shop.settled().await;
    let (_, cookie) = send(shop, "", &changes).await;
    assert_eq!(shop.blocking_requests().await, 1);
    assert_eq!(told(shop, &cookie.expect("a session"), "/cart").await, json!({"cup": 4, "mug": 3}));
    let nothing = list(&[json!({"op": "add", "id": "pan", "quantity": 2}), json!({"op": "clear"})]);
    assert_eq!(send(shop, "", &nothing).await.1, None, "an empty cart needs no session");
}

async fn a_login_merges_several_lines(shop: &Shop) {
    let guest = guest(shop).await;
    let lines = ["pan", "cup", "mug"].map(|id| json!({"op": "add", "id": id, "quantity": 1}));
    let reply = Reply::status(303).header("location", "/").header("edge-login", "ada");
    shop.origin.answer(reply.header("edge-cart", list(&lines)));
    let answer = shop.request(Method::POST, "/login").header("cookie", &guest).send().await.unwrap();
    let cookie = &set_cookie(&answer);
    assert_eq!(told(shop, cookie, "/cart").await, json!({"cup": 1, "mug": 3, "pan": 1}));
}

async fn a_list_with_an_invalid_operation_changes_nothing(shop: &Shop) {
    let cookie = guest(shop).await;
    let good = json!({"op": "add", "id": "pan", "quantity": 1});
    for bad in [
        json!({"op": "add", "id": "a b", "quantity": 1}),
        json!({"op": "add", "id": 1.5, "quantity": 1}),
        json!({"op": "add", "id": "cup", "quantity": 0}),
        json!({"op": "steal"}),
        json!(["add", "cup", 1]),
        json!(null),
    ] {
        for changes in [list(&[good.clone(), bad.clone()]), list(&[bad.clone(), good.clone()])] {
            assert_eq!(send(shop, &cookie, &changes).await, (StatusCode::SEE_OTHER, None), "{changes}");
        }
    }
    for changes in [list(&[]), list(&vec![good.clone(); 101]), format!("[{good}{}]", " ".repeat(16 << 10))] {
        assert_eq!(send(shop, &cookie, &changes).await.0, StatusCode::SEE_OTHER);
    }
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"mug": 2}));
    shop.logged("edge-cart is invalid and was ignored: item must be 1 to 64 characters").await;
}

async fn a_list_that_overfills_the_cart_changes_nothing(shop: &Shop) {
    let cookie = guest(shop).await;
    let lines: Vec<_> = (0..100).map(|number| json!({"op": "set", "id": number, "quantity": 1})).collect();
    assert_eq!(send(shop, &cookie, &list(&lines)).await, (StatusCode::CONFLICT, None));
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"mug": 2}));
    assert_eq!(send(shop, &cookie, &list(&lines[1..])).await.0, StatusCode::SEE_OTHER);
    // The first operation makes room for the second one.
    let swap = list(&[json!({"op": "set", "id": "mug", "quantity": 0}), lines[0].clone()]);
    assert_eq!(send(shop, &cookie, &swap).await.0, StatusCode::SEE_OTHER);
    assert_eq!(told(shop, &cookie, "/cart").await.as_object().map(serde_json::Map::len), Some(100));
}

async fn an_item_may_be_named_by_an_integer(shop: &Shop) {
    let (_, cookie) = send(shop, "", r#"{"op":"add","id":42,"quantity":2}"#).await;
    let cookie = cookie.expect("a session");
    send(shop, &cookie, r#"{"op":"add","id":"42","quantity":1}"#).await;
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"42": 3}));
    let order = r#"{"order_id":1001,"items":[{"id":42,"quantity":2}]}"#;
    shop.origin.answer(Reply::html("thank you").header("edge-order", order));
    shop.request(Method::POST, "/pay").header("cookie", &cookie).send().await.unwrap();
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"42": 1}));
    for id in ["42.0", "18446744073709551616", "1e2"] {
        send(shop, &cookie, &format!(r#"{{"op":"add","id":{id},"quantity":1}}"#)).await;
    }
    assert_eq!(told(shop, &cookie, "/cart").await, json!({"42": 1}));
    shop.logged("item must be a string or an integer of at most 64 bits").await;
}

async fn log_out_everywhere_ends_every_session_of_the_user(shop: &Shop) {
    let mut cookies = Vec::new();
    for user in ["ada", "ada", "bob"] {
        shop.origin.answer(Reply::status(303).header("edge-login", user));
        let login = shop.visit("/login").await;
        cookies.push(set_cookie(&login));
    }
    shop.store.load_scripts().await;
    shop.origin.answer(Reply::status(303).header("location", "/").header("edge-logout", "all"));
    let logout = shop.request(Method::POST, "/logout").header("cookie", &cookies[0]).send().await.unwrap();
    assert!(logout.headers()["set-cookie"].to_str().unwrap().starts_with("__Host-session=; Max-Age=0;"));
    assert_eq!(shop.blocking_requests().await, 4);
    for (cookie, user) in cookies.iter().zip(["", "", "bob"]) {
        told(shop, cookie, "/account").await;
        assert_eq!(shop.origin.last().header("edge-user"), user);
    }
}

async fn a_named_user_is_logged_out_everywhere_and_the_visitor_is_not(shop: &Shop) {
    let mut cookies = Vec::new();
    for user in ["ada", "ada", "bob"] {
        shop.origin.answer(Reply::status(303).header("edge-login", user));
        let login = shop.visit("/login").await;
        cookies.push(set_cookie(&login));
    }
    for visitor in [guest(shop).await, String::new()] {
        shop.origin.answer(Reply::status(303).header("location", "/login").header("edge-logout", "user=ada"));
        let answer = shop.request(Method::POST, "/reset").header("cookie", &visitor).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers().get("set-cookie")), (303, None));
        let cart = if visitor.is_empty() { json!({}) } else { json!({"mug": 2}) };
        assert_eq!(told(shop, &visitor, "/cart").await, cart, "the visitor's own session stays");
        for (cookie, user) in cookies.iter().zip(["", "", "bob"]) {
            told(shop, cookie, "/account").await;
            assert_eq!(shop.origin.last().header("edge-user"), user);
        }
    }
    shop.origin.answer(Reply::status(303).header("edge-logout", "user=bob"));
    shop.settled().await;
    // The call and its repetition by the client both fail.
    shop.store.gateway.set_fault_for(Fault::Status(500, "{}".to_owned()), FaultScope::Next(2));
    assert_eq!(shop.request(Method::POST, "/reset").send().await.unwrap().status(), 503);
    shop.settled().await;
    told(shop, &cookies[2], "/account").await;
    assert_eq!(shop.origin.last().header("edge-user"), "", "tried once more after the response");
    shop.origin.answer(Reply::status(303).header("edge-logout", "user=a,b"));
    shop.visit("/reset").await;
    shop.logged("edge-logout").await;
}

async fn log_out_everywhere_ends_a_guests_session_too(shop: &Shop) {
    let cookie = guest(shop).await;
    shop.origin.answer(Reply::status(303).header("edge-logout", "all"));
    shop.request(Method::POST, "/logout").header("cookie", &cookie).send().await.unwrap();
    assert_eq!(told(shop, &cookie, "/cart").await, json!({}));
}
