//! V2.3 Business logic, V2.4 anti-automation: one visitor, however often they ask, does not make an item popular.

use http::Method;
use serde_json::json;

use crate::{
    routes::api::{Visitor, log_in, with_json},
    support::{Shop, scenarios},
};

scenarios! {
    &[];
    one_network_counts_once_whatever_it_does,
    a_guests_session_does_not_make_a_view_count_twice,
    a_dead_session_counts_as_none,
    users_of_one_network_count_each,
    crawlers_and_prefetches_count_nothing,
}

const NETWORK: &str = "2001:db8::1";
const NEIGHBOUR: &str = "2001:db8::ffff:1";
const OTHER: &str = "2001:db8:0:1::1";

async fn views(shop: &Shop, item: &str) -> String {
    shop.settled().await;
    shop.store.raw(&["ZSCORE", "viewed:", item]).await.as_str().unwrap_or("0").trim_start_matches('-').to_owned()
}

fn from(shop: &Shop, network: &str, path: &str) -> reqwest::RequestBuilder {
    shop.get(path).header("cf-connecting-ip", network)
}

fn report(shop: &Shop, network: &str, key: &str) -> reqwest::RequestBuilder {
    let report = Visitor::new(shop).request(Method::POST, "/views").header("cf-connecting-ip", network);
    with_json(report.header("idempotency-key", key), &json!({"item": "mug"}))
}

/// V2.4.1
async fn one_network_counts_once_whatever_it_does(shop: &Shop) {
    for _ in 0..5 {
        from(shop, NETWORK, "/products/mug").send().await.unwrap();
        from(shop, NEIGHBOUR, "/?item=mug&x=1").send().await.unwrap();
        let forged = from(shop, NETWORK, "/products/mug").header("cookie", "__Host-session=forged.mac");
        forged.header("x-forwarded-for", "203.0.113.9").send().await.unwrap();
        shop.settled().await;
    }
    report(shop, NETWORK, "a-new-key").send().await.unwrap();
    assert_eq!(views(shop, "mug").await, "1");
    from(shop, OTHER, "/products/mug").send().await.unwrap();
    assert_eq!(views(shop, "mug").await, "2");
    from(shop, NETWORK, "/products/cup").send().await.unwrap();
    assert_eq!(views(shop, "cup").await, "1", "another item is another view");
}

/// V2.4.1: a session costs one cart write.
async fn a_guests_session_does_not_make_a_view_count_twice(shop: &Shop) {
    for _ in 0..5 {
        let mut guest = Visitor::new(shop);
        guest.put("/cart/items/cup", &json!({"quantity": 1})).await;
        let page = from(shop, NETWORK, "/products/mug").header("cookie", guest.cookie.clone().unwrap());
        assert_eq!(page.send().await.unwrap().status(), 200);
        shop.settled().await;
        assert_eq!(guest.get("/recent").await.json, json!({"items": ["mug"]}), "it is theirs nevertheless");
    }
    assert_eq!(views(shop, "mug").await, "1");
}

/// V7.4.1, V2.4.1
async fn a_dead_session_counts_as_none(shop: &Shop) {
    for _ in 0..5 {
        let mut user = log_in(shop, "ada").await;
        let cookie = user.cookie.clone().unwrap();
        assert_eq!(user.delete("/session").await.status, 204);
        from(shop, NETWORK, "/products/mug").header("cookie", cookie).send().await.unwrap();
        shop.settled().await;
    }
    assert_eq!(views(shop, "mug").await, "1");
}

async fn users_of_one_network_count_each(shop: &Shop) {
    for user in ["ada", "bob"] {
        let cookie = log_in(shop, user).await.cookie.unwrap();
        for _ in 0..3 {
            from(shop, NETWORK, "/products/mug").header("cookie", cookie.clone()).send().await.unwrap();
        }
    }
    assert_eq!(views(shop, "mug").await, "2");
}

/// V2.4.1
async fn crawlers_and_prefetches_count_nothing(shop: &Shop) {
    for (number, (name, value)) in [
        ("user-agent", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"),
        ("sec-purpose", "prefetch;prerender"),
        ("purpose", "prefetch"),
    ]
    .into_iter()
    .enumerate()
    {
        let network = format!("203.0.113.{number}");
        let answer = from(shop, &network, "/products/mug").header(name, value).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(report(shop, &network, "key").header(name, value).send().await.unwrap().status(), 202);
        let cookie = log_in(shop, "ada").await.cookie.unwrap();
        from(shop, &network, "/products/mug").header("cookie", cookie).header(name, value).send().await.unwrap();
    }
    assert_eq!(views(shop, "mug").await, "0");
}

/// V2.4.1: if one isolate does not know a network's view, the platform's rate limit still does.
#[tokio::test]
async fn isolates_in_workerd_count_together() {
    // Every isolate forgets at once.
    let shop = Shop::limited(&[("VIEW_WINDOW", "0")]).await;
    for _ in 0..10 {
        from(&shop, NETWORK, "/products/mug").send().await.unwrap();
        shop.settled().await;
    }
    let counted: u32 = views(&shop, "mug").await.parse().unwrap();
    assert!((1..=2).contains(&counted), "{counted}, and two only where a minute ended meanwhile");
}
