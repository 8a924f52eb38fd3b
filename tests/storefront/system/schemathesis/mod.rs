//! Schemathesis calls every operation of `docs/openapi.json` in workerd: with the examples, at the limits of each
//! value, with random and invalid input, and in sequences of linked calls. No response may be a 5xx, have a status that
//! is not documented, or violate its schema. Without Python 3.11, `cargo xtask test` skips this module.

use std::{env, process::Stdio, time::Duration};

use edgefront::ports::time::Clock;
use http::Method;
use serde_json::json;
use tokio::{process::Command, time};

use crate::{
    routes::api::{Visitor, log_in, service},
    support::{Reply, SERVICE_KEY, Shop, TestClock},
};

/// The variable for a search with new requests, in seconds.
const SECONDS: &str = "EDGEFRONT_SCHEMATHESIS_SECONDS";
/// Without the variable, each run sends the same five examples of each operation.
const FIXED: [&str; 4] = ["--seed", "1", "--max-examples", "5"];
/// On a busy machine the tool starts late and ends late.
const PATIENCE: Duration = Duration::from_mins(10);

#[tokio::test]
async fn no_input_violates_the_contract_in_workerd() {
    let packages = env::var_os("EDGEFRONT_SCHEMATHESIS").expect("EDGEFRONT_SCHEMATHESIS: run `cargo xtask test`");
    // The limit of a quantity is configurable; the document names the limit of its type.
    let variables = [("ROWS_URL", "{origin}/rows"), ("CART_MAX_QUANTITY", "4294967295"), ("REDIS_TIMEOUT_MS", "10000")];
    let shop = Shop::workerd(&variables).await;
    fill(&shop).await;
    let api = format!("{}/_edge/v1", shop.url);
    let seconds = env::var(SECONDS).ok();
    let mut python = Command::new("python3");
    python.args(["-m", "schemathesis.cli", "--config-file", "tests/storefront/system/schemathesis/schemathesis.toml"]);
    python.args(["run", "docs/openapi.json", "--url", &api, "--checks", "all"]);
    match &seconds {
        Some(seconds) => python.args(["--max-time", seconds]),
        None => python.args(FIXED),
    };
    python
        .env("PYTHONPATH", packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("API", &api)
        .env("SERVICE_KEY", SERVICE_KEY);
    let output = python.stdin(Stdio::null()).kill_on_drop(true).output();
    let seconds = seconds.map_or(0, |seconds| seconds.parse().expect("a number of seconds"));
    let output = time::timeout(Duration::from_secs(seconds) + PATIENCE, output)
        .await
        .expect("it ends in time")
        .expect("Python starts");
    let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{printed}\nthe Worker's log:\n{}", shop.logs().join("\n"));
    print!("{printed}");
}

/// Gives the shop the items, the sale and the rows that the document's examples name.
async fn fill(shop: &Shop) {
    let now = TestClock::ticking().now().as_secs();
    let sale = json!({
        "id": "mug", "sale_starts_at": now - 60, "sale_ends_at": now + 3600, "sale_pieces": 1000, "sale_sold": 0,
        "sale_price_cents": 990, "price_cents": 1490,
    });
    let rows = json!([sale, {"id": "pan", "stock": 7}]).to_string();
    shop.origin.answer_with(move |asked| {
        if asked.path.starts_with("/rows") { Reply::html(rows.clone()) } else { Reply::html("<h1>A page</h1>") }
    });
    for row in ["mug", "pan"] {
        let scheduled = service(shop, Method::PUT, &format!("/rows/{row}/schedule"), Some(&json!({"every": 60}))).await;
        assert_eq!(scheduled.status, 200, "{scheduled:?}");
    }
    let mut ada = log_in(shop, "ada").await;
    ada.put("/cart/items/mug", &json!({"quantity": 1})).await;
    let mut guest = Visitor::new(shop);
    guest.put("/cart/items/pan", &json!({"quantity": 1})).await;
    guest.delete("/session").await;
    shop.store.raw(&["ZADD", "viewed:", "-3", "mug", "-2", "pan"]).await;
    let order = json!({"order_id": "A-1", "items": [{"id": "mug", "quantity": 1}, {"id": "pan", "quantity": 1}]});
    assert_eq!(service(shop, Method::POST, "/orders", Some(&order)).await.status, 204);
}
