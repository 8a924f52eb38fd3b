//! The log: one line of JSON for each failed request and each cron run, without personal data.

use std::time::Duration;

use edgefront_gateway::Fault;
use http::Method;
use serde_json::{Value, json};

use crate::{
    ranking::make_halving_due,
    routes::api::{Visitor, log_in, with_json},
    support::{ORIGIN_KEY, Reply, SERVICE_KEY, SESSION_KEYS, Shop, scenarios},
};

scenarios!(&[("REDIS_TIMEOUT_MS", "1000"), ("RANKING_HALF_LIFE", crate::ranking::LONG_HALF_LIFE)];
    a_failed_request_is_one_line,
    a_cron_run_is_one_line,
    no_log_line_contains_a_token_a_user_or_a_secret,
);

/// All lines of `event` so far. A Worker's log may lag behind its responses, so this runs a job and waits for that
/// line.
async fn lines(shop: &Shop, event: &str) -> Vec<Value> {
    shop.settled().await;
    shop.request(Method::POST, "/_edge/v1/jobs/rescale").bearer_auth(SERVICE_KEY).send().await.unwrap();
    shop.logged(r#""event":"job""#).await;
    let parse = |line: String| -> Value {
        let line = line.split_once(": ").map(|(_, line)| line.to_owned()).unwrap_or(line);
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
    };
    shop.logs().into_iter().map(parse).filter(|line| line["event"] == event).collect()
}

async fn a_failed_request_is_one_line(shop: &Shop) {
    shop.store.gateway.set_fault(Some(Fault::Status(401, r#"{"error":"WRONGPASS no"}"#.to_owned())));
    shop.visit("/_edge/v1/items/mug/stats").await;
    shop.store.gateway.set_fault(None);
    // Errors of the caller are not logged.
    shop.visit("/_edge/v1/nothing").await;
    shop.visit("/_edge/v1/rows/nothing").await;
    shop.origin.answer(Reply::status(500));
    shop.request(Method::POST, "/account/ada?mail=ada@example.org").body("").send().await.unwrap();
    shop.origin.answer(Reply::nothing());
    shop.visit("/products/mug?_").await;

    let mut lines = lines(shop, "request").await;

    for line in &mut lines {
        assert!(line["ms"].take().is_u64(), "{line}");
    }
    let line = |method: &str, route: &str, status: u16, cause: &str, cache: Value| {
        json!({
            "level": "error", "event": "request",
            "method": method, "route": route, "status": status, "cause": cause, "ms": null, "cache": cache,
        })
    };
    let refused = "redis: the token was refused: look at UPSTASH_REDIS_REST_TOKEN";
    let expected = [
        line("GET", "/_edge/v1/items/{item}/stats", 503, refused, Value::Null),
        line(
            "POST",
            "storefront",
            500,
            "the origin answered with this status",
            json!("edgefront; fwd=method; detail=method"),
        ),
        line(
            "GET",
            "storefront",
            502,
            "origin: no connection, or it broke",
            json!("edgefront; fwd=bypass; detail=dynamic"),
        ),
    ];
    assert_eq!(lines, expected);
}

async fn a_cron_run_is_one_line(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    make_halving_due(&shop.store).await;
    shop.cron("*/5 * * * *").await;
    shop.cron("* * * * *").await;
    shop.store.gateway.set_fault(Some(Fault::ErrorBody("ERR max requests limit exceeded".to_owned())));
    shop.cron("*/5 * * * *").await;
    shop.store.gateway.set_fault(None);

    let mut lines = lines(shop, "cron").await;

    for line in &mut lines {
        assert!(line["seconds"].take().is_f64(), "{line}");
    }
    let line = |level: &str, cron: &str, jobs: Value| json!({"level": level, "event": "cron", "cron": cron, "seconds": null, "jobs": jobs});
    assert_eq!(lines.len(), 3, "{lines:?}");
    let idle = json!({"minutes": 0, "hours": 0});
    let rescaled = json!({"rescale": {"halvings": 1, "trimmed": 0, "forgotten": 0}, "roll-up": idle});
    assert_eq!(lines[0], line("info", "*/5 * * * *", rescaled));
    let jobs: Vec<_> = lines[1]["jobs"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((lines[1]["cron"].as_str(), jobs), (Some("* * * * *"), vec!["clean-sessions", "refresh-rows"]));
    let failed = json!({"rescale": {"error": "redis: over the quota or the rate limit"}, "roll-up": idle});
    assert_eq!(lines[2], line("error", "*/5 * * * *", failed));
}

async fn no_log_line_contains_a_token_a_user_or_a_secret(shop: &Shop) {
    const USER: &str = "ada@example.org";
    let ada = log_in(shop, USER).await;
    let cookie = ada.cookie.clone().unwrap();
    let token = cookie.split(['=', '.']).nth(1).unwrap().to_owned();
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let guest = guest.cookie.unwrap();
    let quoting = format!("ERR no such user '{USER}' with {token}");
    for fault in [
        Fault::Refuse,
        Fault::Status(400, json!({"error": quoting}).to_string()),
        Fault::ErrorBody(quoting.clone()),
        Fault::Status(500, quoting.clone()),
        Fault::Garbage,
        Fault::Truncate,
        Fault::LoseReply,
        Fault::Slow(Duration::from_mins(1)),
    ] {
        shop.store.gateway.set_fault(Some(fault));
        for cookie in [&cookie, &guest] {
            for (method, path) in [
                (Method::GET, "/_edge/v1/cart"),
                (Method::POST, "/_edge/v1/cart/items"),
                (Method::DELETE, "/_edge/v1/sessions"),
                (Method::GET, "/products/mug"),
                (Method::GET, "/cart"),
            ] {
                let request =
                    shop.request(method, path).header("cookie", cookie).header("sec-fetch-site", "same-origin");
                with_json(request, &json!({"id": "mug", "quantity": 1})).send().await.unwrap();
            }
        }
        let orders = shop.request(Method::POST, "/_edge/v1/orders").bearer_auth(SERVICE_KEY);
        let order = json!({"order_id": "1", "user": USER, "items": [{"id": "mug", "quantity": 1}]});
        with_json(orders, &order).send().await.unwrap();
    }
    shop.store.gateway.set_fault(None);
    // Invalid headers of the origin are not quoted.
    for header in ["edge-login", "edge-cart", "edge-order"] {
        shop.origin.answer(Reply::html("").header(header, format!("{{\"{USER}\" \"{token}\"")));
        shop.get(&format!("/login?mail={USER}&token={token}")).header("cookie", &cookie).send().await.unwrap();
    }
    shop.origin.answer(Reply::nothing());
    shop.get(&format!("/{token}/{USER}?_")).header("cookie", &cookie).send().await.unwrap();

    let failed = lines(shop, "request").await;

    assert!(failed.len() > 20, "{failed:?}");
    let log = shop.logs().join("\n");
    let secrets =
        [USER, "ada%40", &token, &cookie, &guest, SESSION_KEYS, SERVICE_KEY, ORIGIN_KEY, "token-of-the-tests"];
    for secret in secrets {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
