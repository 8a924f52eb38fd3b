//! Some combinations in workerd, where requests pass the platform's fetch, an isolate and a cron trigger.

use edgefront_gateway::Fault;
use http::Method;
use reqwest::Response;

use super::{OwnServer, connected};
use crate::{
    page_cache::{cache_status, header},
    ranking::{LONG_HALF_LIFE, make_halving_due},
    support::{Shop, Store},
};

async fn put(shop: &Shop, item: &str) -> Response {
    let request = shop.request(Method::PUT, &format!("/_edge/v1/cart/items/{item}"));
    let request = request.header("sec-fetch-site", "same-origin").header("content-type", "application/json");
    request.body(r#"{"quantity":2}"#).send().await.expect("an answer")
}

#[tokio::test]
async fn a_worker_survives_the_faults_that_a_native_server_survives() {
    let mut server = OwnServer::start();
    let store = Store::on(&server.unused_database()).await;
    let variables = [("PAGE_MEMORY", "0"), ("REDIS_TIMEOUT_MS", "20000"), ("RANKING_HALF_LIFE", LONG_HALF_LIFE)];
    let shop = Shop::workerd_on(store, &variables).await;
    // By their names in the gateway; without one, the server itself is away.
    for fault in ["refuse", "lost-reply", "truncated", "quota", ""] {
        let [hit, miss] = ["hit", "miss"].map(|page| format!("{page}-{fault}"));
        shop.store.raw(&["ZADD", "viewed:", "-1000", &hit, "-1000", &miss, "-8", "old"]).await;
        make_halving_due(&shop.store).await;
        assert!(cache_status(&shop.visit(&format!("/products/{hit}")).await).ends_with("stored"), "{fault}");
        shop.settled().await;

        match fault {
            "" => server.0.stop(),
            name => shop.store.gateway.set_fault(Some(name.parse::<Fault>().expect("a fault"))),
        }
        for page in [&hit, &miss] {
            let answer = shop.visit(&format!("/products/{page}")).await;
            assert_eq!(answer.status(), 200, "{fault}");
            assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=redis-down", "{fault}");
        }
        let refused = put(&shop, "mug").await;
        assert_eq!((refused.status().as_u16(), header(&refused, "retry-after").as_str()), (503, "5"), "{fault}");
        shop.cron("*/5 * * * *").await;
        shop.settled().await;
        if fault.is_empty() {
            server.0.start_again().expect("the server again");
        }
        shop.store.gateway.set_fault(None);

        connected(&shop.store).await;
        assert!(cache_status(&shop.visit(&format!("/products/{hit}")).await).contains("; hit"), "{fault}");
        assert_eq!(shop.visit(&format!("/products/{miss}")).await.status(), 200, "{fault}");
        let done = put(&shop, "mug").await;
        assert_eq!(done.status(), 200, "{fault}");
        assert!(header(&done, "set-cookie").starts_with("__Host-session="), "{fault}");
        shop.cron("*/5 * * * *").await;
        assert_eq!(shop.store.raw(&["ZSCORE", "viewed:", "old"]).await, "-4", "{fault}: halved once");
    }
    let log = shop.logs().join("\n");
    assert!(!log.contains("panicked") && !log.contains("Critical"), "{log}");
}
