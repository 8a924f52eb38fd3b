//! The traffic counters, written after the responses with at most one command, and `/traffic`.

/// Roll-ups: entries as minutes, hours and sums.
mod roll_up;

/// The cost of counting: an isolate writes its first entry, and none for the next hour.
mod cost {
    use futures_util::future::join_all;
    use http::Method;

    use crate::{
        routes::api::service,
        support::{Shop, scenarios},
    };

    scenarios!(&[("TRAFFIC_INTERVAL", "3600")];
        counting_a_visit_costs_at_most_one_background_command,
        a_hundred_concurrent_visits_cost_no_further_command,
        probes_and_operators_are_not_traffic,
    );

    async fn counting_a_visit_costs_at_most_one_background_command(shop: &Shop) {
        for commands in [1, 0] {
            let before = shop.store.counts().commands;
            assert_eq!(shop.visit("/about?_=1").await.status(), 200);
            assert_eq!(shop.blocking_requests().await, 0);
            shop.settled().await;
            // Without a cookie and a cacheable page, the visit needs no other command.
            assert_eq!(shop.store.counts().commands - before, commands);
        }
        assert_eq!(shop.store.raw(&["XLEN", "traffic:"]).await, 1);
    }

    async fn a_hundred_concurrent_visits_cost_no_further_command(shop: &Shop) {
        shop.visit("/about").await;
        shop.settled().await;
        let before = shop.store.counts().commands;
        let answers = join_all((0..100).map(|_| shop.visit("/about"))).await;
        assert!(answers.iter().all(|answer| answer.status() == 200));
        shop.settled().await;
        assert_eq!(shop.store.counts().commands, before);
    }

    async fn probes_and_operators_are_not_traffic(shop: &Shop) {
        for path in ["/stats", "/jobs", "/traffic", "/ranking", "/schedule", "/cache?url=/"] {
            assert_eq!(service(shop, Method::GET, path, None).await.status, 200, "{path}");
        }
        assert_eq!(shop.visit("/_edge/v1/readyz").await.status(), 200);
        assert_eq!(shop.visit("/_edge/v1/nothing").await.status(), 404);
        shop.settled().await;
        assert_eq!(shop.store.raw(&["XLEN", "traffic:"]).await, 0);
    }
}

/// The counts: an isolate writes an entry every second.
mod counts {
    use std::time::Duration;

    use edgefront_gateway::Fault;
    use http::Method;
    use serde_json::{Value, json};

    use crate::{
        routes::api::{Visitor, service, with_json},
        support::{Reply, Shop, eventually, scenarios},
    };

    scenarios!(&[("TRAFFIC_INTERVAL", "1"), ("REDIS_TIMEOUT_MS", "1000")];
        every_response_is_counted_by_its_origin,
        actions_of_visitors_are_counted,
        a_cart_is_counted_however_its_first_item_comes,
        counts_of_a_failed_write_are_written_later,
        latencies_are_measured_by_kind,
        errors_are_counted_by_route_and_cause,
        an_invalid_number_of_minutes_is_refused,
    );

    async fn totals(shop: &Shop) -> Value {
        let answer = service(shop, Method::GET, "/traffic", None).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, "private, no-store"), "{answer:?}");
        answer.json["totals"].clone()
    }

    /// Waits until the total of a metric reaches `number`. Each `GET /traffic` writes the counts that are due.
    async fn totals_with(shop: &Shop, name: &str, number: u64) -> Value {
        eventually(&format!("{name} is {number}"), async || totals(shop).await[name].as_u64() >= Some(number)).await;
        totals(shop).await
    }

    async fn every_response_is_counted_by_its_origin(shop: &Shop) {
        shop.store.raw(&["ZADD", "viewed:", "-9", "mug"]).await;
        shop.visit("/products/mug").await;
        shop.settled().await;
        for path in ["/products/mug", "/products/rare", "/about", "/products/mug?_=1", "/products/mug?x=1"] {
            assert_eq!(shop.visit(path).await.status(), 200, "{path}");
        }
        shop.request(Method::POST, "/about").send().await.unwrap();
        shop.get("/products/mug").header("authorization", "Basic eDp5").send().await.unwrap();
        shop.visit("/_edge/v1/cart").await;
        shop.origin.answer(Reply::nothing());
        assert_eq!(shop.visit("/about").await.status(), 502);
        shop.origin.answer(Reply::html("for all").header("cache-control", "private"));
        shop.store.raw(&["ZADD", "viewed:", "-9", "cup"]).await;
        shop.visit("/products/cup").await;
        shop.settled().await;

        let totals = totals_with(shop, "miss", 1).await;

        let names =
            ["stored", "hit", "unpopular", "no_item", "dynamic", "parameters", "method", "header", "api", "failed"];
        for name in names {
            assert_eq!(totals[name], 1, "{name}: {totals}");
        }
        assert_eq!(
            (&totals["stale"], &totals["redis_down"], &totals["redis_failures"]),
            (&json!(0), &json!(0), &json!(0))
        );
        // Page lookups in Redis: mug three times, rare, about, cup; each twice if it had to send the script's source.
        let requests = totals["redis_requests"].as_u64().unwrap();
        assert!((6..=12).contains(&requests), "{totals}");
        assert!(totals["later_commands"].as_u64() >= Some(6), "{totals}");
    }

    async fn actions_of_visitors_are_counted(shop: &Shop) {
        let mut guest = Visitor::new(shop);
        for (item, quantity) in [("mug", 2), ("mug", 1), ("cup", 1)] {
            guest.post("/cart/items", &json!({"id": item, "quantity": quantity})).await;
        }
        guest.put("/cart/items/mug", &json!({"quantity": 7})).await;
        Visitor::new(shop).put("/cart/items/mug", &json!({"quantity": 1})).await;
        assert_eq!(guest.post("/cart/items", &json!({"id": "mug", "quantity": "two"})).await.status, 422);
        shop.visit("/products/mug").await;
        shop.request(Method::HEAD, "/products/mug").send().await.unwrap();
        shop.origin.answer(Reply::status(404));
        shop.visit("/products/made-up").await;
        guest.post("/views", &json!({"item": "mug"})).await;
        shop.settled().await;

        let totals = totals_with(shop, "views", 2).await;

        let counts = ["views", "additions", "carts", "orders", "api"].map(|name| totals[name].as_u64().unwrap());
        assert_eq!(counts, [2, 4, 2, 0, 7], "{totals}");
    }

    async fn a_cart_is_counted_however_its_first_item_comes(shop: &Shop) {
        shop.origin.answer(Reply::html("").header("edge-cart", r#"{"op":"set","id":"mug","quantity":1}"#));
        shop.visit("/add").await;
        let mut guest = Visitor::new(shop);
        guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
        guest.delete("/cart").await;
        guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
        for _ in ["first", "repeated"] {
            let add = guest.request(Method::POST, "/cart/items").header("idempotency-key", "key");
            let add = with_json(add, &json!({"id": "cup", "quantity": 1}));
            assert_eq!(guest.send(add).await.status, 200);
        }
        shop.settled().await;

        let totals = totals_with(shop, "api", 5).await;

        assert_eq!(["additions", "carts"].map(|name| totals[name].as_u64().unwrap()), [4, 3], "{totals}");
    }

    async fn counts_of_a_failed_write_are_written_later(shop: &Shop) {
        shop.store.gateway.set_fault(Some(Fault::Refuse));
        assert_eq!(shop.visit("/products/mug").await.status(), 200);
        shop.settled().await;
        shop.store.gateway.set_fault(None);

        let totals = totals_with(shop, "redis_down", 1).await;

        assert_eq!(totals["redis_down"], 1, "{totals}");
        assert!(totals["redis_failures"].as_u64() >= Some(1), "{totals}");
    }

    async fn latencies_are_measured_by_kind(shop: &Shop) {
        shop.store.raw(&["ZADD", "viewed:", "-9", "mug"]).await;
        shop.origin.answer(Reply::html("slow").after(Duration::from_millis(80)));
        shop.visit("/products/mug").await;
        shop.settled().await;
        for _ in 0..3 {
            shop.visit("/products/mug").await;
        }
        shop.visit("/_edge/v1/cart").await;
        totals_with(shop, "api", 1).await;

        let latency = service(shop, Method::GET, "/traffic", None).await.json["latency"].take();

        let count = |kind: &str| latency[kind]["total"]["count"].as_u64().unwrap();
        assert_eq!(["hit", "render", "api", "origin", "home"].map(count), [3, 1, 1, 1, 0], "{latency}");
        assert!(count("redis") >= 2, "{latency}");
        // The clock counts whole milliseconds, and a bucket is wrong by at most 3.1%.
        for kind in ["render", "origin"] {
            assert!(latency[kind]["total"]["p50"].as_f64() >= Some(0.076), "{kind}: {latency}");
        }
        let (buckets, total) = (&latency["hit"]["count"], &latency["hit"]["total"]);
        assert_eq!(buckets.as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>(), 3);
        assert!(total["p50"].as_f64() <= total["p99"].as_f64() && latency["home"]["total"]["p99"].is_null());
    }

    async fn errors_are_counted_by_route_and_cause(shop: &Shop) {
        let guest = json!({"id": "mug", "quantity": 1, "a-secret-field": 1});
        assert_eq!(Visitor::new(shop).post("/cart/items", &guest).await.status, 422);
        assert_eq!(service(shop, Method::GET, "/rows/none/schedule", None).await.status, 404);
        shop.origin.answer(Reply::status(404));
        for path in ["/about?token=a-secret-value", "/about/ada"] {
            assert_eq!(shop.visit(path).await.status(), 404);
        }
        shop.origin.answer(Reply::nothing());
        assert_eq!(shop.visit("/about").await.status(), 502);
        shop.settled().await;
        totals_with(shop, "failed", 1).await;

        let traffic = service(shop, Method::GET, "/traffic", None).await.json;

        let mut errors: Vec<_> = traffic["errors"].as_array().unwrap().clone();
        assert!(errors.iter_mut().all(|error| error["counts"].take().is_array()));
        errors.sort_by_key(Value::to_string);
        let error = |status: u16, route: &str, cause: &str, total: u64| json!({"status": status, "route": route, "cause": cause, "total": total, "counts": null});
        let expected = [
            error(422, "/_edge/v1/cart/items", "invalid", 1),
            error(404, "/_edge/v1/rows/{row}/schedule", "not-found", 1),
            error(502, "storefront", "origin-down", 1),
            error(404, "storefront", "origin", 2),
        ];
        let mut expected = expected.to_vec();
        expected.sort_by_key(Value::to_string);
        assert_eq!(errors, expected);
        let latest = traffic["latest_errors"].as_array().unwrap();
        assert_eq!(latest.len(), 5);
        let reasons: Vec<_> = latest.iter().map(|error| error["reason"].as_str().unwrap()).collect();
        assert_eq!(reasons[0], "origin: no connection, or it broke");
        let text = shop.store.raw(&["XRANGE", "traffic:", "-", "+"]).await.to_string();
        assert!(!text.contains("secret") && !text.contains("ada"), "{text}");
    }

    async fn an_invalid_number_of_minutes_is_refused(shop: &Shop) {
        for minutes in ["0", "10081", "-1", "1.5", "soon", ""] {
            let answer = service(shop, Method::GET, &format!("/traffic?minutes={minutes}"), None).await;
            assert_eq!((answer.status, &answer.json["field"]), (422, &json!("minutes")), "{minutes}");
        }
        let answer = service(shop, Method::GET, "/traffic?minutes=60", None).await.json;
        assert_eq!(answer["width"], 60);
        let columns = answer["counts"].as_object().unwrap();
        let rows = answer["at"].as_array().unwrap().len();
        assert!((60..=61).contains(&rows) && columns.values().all(|column| column.as_array().unwrap().len() == rows));
    }
}
