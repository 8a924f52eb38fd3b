//! `/abandoned`: carts that ended with their session.

use http::Method;
use serde_json::{Value, json};

use super::{Answer, Visitor, log_in, service};
use crate::support::{Shop, scenarios};

scenarios!(&[];
    ended_carts_are_listed_newest_first,
    the_list_is_paginated,
    entries_of_other_programs_are_skipped,
    an_invalid_page_is_refused,
);

async fn abandoned(shop: &Shop, query: &str) -> Answer {
    service(shop, Method::GET, &format!("/abandoned{query}"), None).await
}

async fn ended_carts_are_listed_newest_first(shop: &Shop) {
    assert_eq!(abandoned(shop, "").await.json, json!({"carts": [], "next": null}));
    let (mut ada, mut guest) = (log_in(shop, "ada").await, Visitor::new(shop));
    ada.put("/cart/items/mug", &json!({"quantity": 2})).await;
    ada.put("/cart/items/cup", &json!({"quantity": 1})).await;
    guest.put("/cart/items/pan", &json!({"quantity": 1})).await;
    log_in(shop, "bob").await.delete("/session").await;
    for visitor in [&mut ada, &mut guest] {
        visitor.delete("/session").await;
    }

    let answer = abandoned(shop, "").await;

    assert_eq!((answer.status, answer.header("cache-control")), (200, "private, no-store"));
    let carts = answer.json["carts"].as_array().unwrap();
    let described: Vec<_> = carts.iter().map(|cart| (&cart["user"], &cart["items"])).collect();
    let adas = json!([{"id": "cup", "quantity": 1}, {"id": "mug", "quantity": 2}]);
    assert_eq!(described, [(&Value::Null, &json!([{"id": "pan", "quantity": 1}])), (&json!("ada"), &adas)]);
    for cart in carts {
        let (seen, ended) = (cart["seen"].as_f64().unwrap(), cart["ended"].as_f64().unwrap());
        assert!(seen > 1.7e9 && (ended - seen).abs() < 60.0, "{cart}");
    }
    assert_eq!((&answer.json["next"], shop.blocking_requests().await), (&Value::Null, 1));
}

async fn the_list_is_paginated(shop: &Shop) {
    for number in 1..=5 {
        let (id, items) = (format!("{number}-0"), format!(r#"["item-{number}","1"]"#));
        shop.store.raw(&["XADD", "abandoned:", &id, "user", "", "seen", "1", "items", &items]).await;
    }
    let mut pages = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = abandoned(shop, &query).await.json;
        pages.push(page["carts"].as_array().unwrap().iter().map(|cart| cart["id"].clone()).collect::<Vec<_>>());
        let Some(next) = page["next"].as_str() else { break };
        query = format!("?limit=2&before={next}");
    }
    assert_eq!(pages, [vec!["5-0", "4-0"], vec!["3-0", "2-0"], vec!["1-0"]]);
    assert_eq!(abandoned(shop, "?limit=5").await.json["next"], Value::Null, "the last page has no next one");
}

async fn entries_of_other_programs_are_skipped(shop: &Shop) {
    let cart = r#"["mug","2"]"#;
    for fields in [&["items", cart][..], &["items", "no JSON"], &["user", "ada"], &["items", "[]"]] {
        let command: Vec<_> = ["XADD", "abandoned:", "*"].iter().chain(fields).copied().collect();
        shop.store.raw(&command).await;
    }
    let page = abandoned(shop, "?limit=3").await.json;
    assert_eq!(page["carts"], json!([]));
    let next = page["next"].as_str().expect("another page");
    let page = abandoned(shop, &format!("?before={next}")).await.json;
    assert_eq!((page["carts"].as_array().unwrap().len(), &page["carts"][0]["seen"]), (1, &Value::Null));
}

async fn an_invalid_page_is_refused(shop: &Shop) {
    for (query, field) in [
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?limit=x", "limit"),
        ("?before=", "before"),
        ("?before=1", "before"),
        ("?before=(1-1", "before"),
        ("?before=0-0", "before"),
        ("?before=1-1&before=1-1", "before"),
    ] {
        let answer = abandoned(shop, query).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!(field)), "{query}");
    }
    let visitor = Visitor::new(shop).get("/abandoned").await;
    assert_eq!(visitor.status, 401);
}
