//! Holes that only the session at the edge fills.

use http::Method;
use serde_json::json;

use super::{open, visit};
use crate::{
    page_cache::header,
    routes::api::log_in,
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[("HOLES", "/products/* .user <- user; /products/* .count <- cart"), ("COOKIES_HOLES", "sid")];
    a_change_by_the_visitor_shows_on_the_next_page,
    a_message_of_the_shop_shows_on_the_next_page,
    the_id_of_a_user_is_text_in_its_hole,
}

async fn the_id_of_a_user_is_text_in_its_hole(shop: &Shop) {
    open(shop).await;
    let user = log_in(shop, "<b>ada&amp;co</b>").await;
    let body = visit(shop, &user.cookie.unwrap()).await.text().await.unwrap();
    assert!(body.contains("<p class=user>&lt;b>ada&amp;amp;co&lt;/b></p>"), "{body}");
}

async fn a_message_of_the_shop_shows_on_the_next_page(shop: &Shop) {
    open(shop).await;
    shop.origin.answer(Reply::status(302).header("location", "/products/mug").header("cache-control", "private"));
    for method in [Method::GET, Method::POST] {
        for (cookies, has_message) in [("sid=ada", true), ("", false)] {
            let request = shop.request(method.clone(), "/checkout");
            let request = if cookies.is_empty() { request } else { request.header("cookie", cookies) };
            let answer = request.send().await.unwrap();
            let is_changed = header(&answer, "set-cookie").starts_with("__Host-session-changed=1; ");
            assert_eq!(is_changed, has_message, "{method} {cookies}");
        }
    }
    shop.origin.answer(Reply::html("message"));
    let page = visit(shop, "sid=ada; __Host-session-changed=1").await;
    assert_eq!(page.text().await.unwrap(), "message");
}

async fn a_change_by_the_visitor_shows_on_the_next_page(shop: &Shop) {
    open(shop).await;
    let mut ada = log_in(shop, "ada").await;
    let session = ada.cookie.clone().unwrap();
    for quantity in 1..4 {
        let answer = ada.put("/cart/items/mug", &json!({"quantity": quantity})).await;
        let changed = answer.cookie().unwrap();
        assert_eq!(changed, "__Host-session-changed=1");
        let expected = format!("<p class=user>ada</p><i class=count>{quantity}</i>");
        let body = visit(shop, &format!("{session}; {changed}")).await.text().await.unwrap();
        assert!(body.contains(&expected), "{body}");
        // For two seconds, further pages of this isolate need no Redis. A slow machine may miss some of them.
        let mut needs_redis = Vec::new();
        while needs_redis.len() < 10 && !needs_redis.contains(&false) {
            let before = shop.store.gateway.counts().requests;
            let body = visit(shop, &session).await.text().await.unwrap();
            assert!(body.contains(&expected), "{body}");
            needs_redis.push(shop.store.gateway.counts().requests > before);
        }
        assert!(needs_redis.contains(&false));
        ada.cookie = Some(session.clone());
    }
}
