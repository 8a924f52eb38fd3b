//! What happened, counted: behind the answers, for one command at most, and told by `/traffic`.

/// An isolate writes its first entry, and then none for an hour.
mod cost {
    use futures_util::future::join_all;
    use http::Method;

    use crate::{
        routes::api::service,
        support::{Shop, scenarios},
    };

    scenarios!(&[("TRAFFIC_INTERVAL", "3600")];
        a_visit_costs_one_command_more_at_most_and_nobody_waits_for_it,
        a_hundred_visits_at_once_cost_no_command_more,
        who_watches_is_no_traffic,
    );

    async fn a_visit_costs_one_command_more_at_most_and_nobody_waits_for_it(shop: &Shop) {
        for commands in [1, 0] {
            let before = shop.store.counts().commands;
            assert_eq!(shop.visit("/about?_=1").await.status(), 200);
            assert_eq!(shop.blocking_requests().await, 0);
            shop.settled().await;
            // Without a cookie and a page that could be stored, nothing else is asked of Redis.
            assert_eq!(shop.store.counts().commands - before, commands);
        }
        assert_eq!(shop.store.raw(&["XLEN", "traffic:"]).await, 1);
    }

    async fn a_hundred_visits_at_once_cost_no_command_more(shop: &Shop) {
        shop.visit("/about").await;
        shop.settled().await;
        let before = shop.store.counts().commands;
        let answers = join_all((0..100).map(|_| shop.visit("/about"))).await;
        assert!(answers.iter().all(|answer| answer.status() == 200));
        shop.settled().await;
        assert_eq!(shop.store.counts().commands, before);
    }

    async fn who_watches_is_no_traffic(shop: &Shop) {
        for path in ["/stats", "/jobs", "/traffic", "/ranking", "/schedule", "/cache?url=/"] {
            assert_eq!(service(shop, Method::GET, path, None).await.status, 200, "{path}");
        }
        assert_eq!(shop.visit("/_edge/v1/readyz").await.status(), 200);
        assert_eq!(shop.visit("/_edge/v1/nothing").await.status(), 404);
        shop.settled().await;
        assert_eq!(shop.store.raw(&["XLEN", "traffic:"]).await, 0);
    }
}

/// Entries come every second.
mod told {
    use edgefront_gateway::Fault;
    use http::Method;
    use serde_json::{Value, json};

    use crate::{
        routes::api::{Visitor, service},
        support::{Reply, Shop, eventually, scenarios},
    };

    scenarios!(&[("TRAFFIC_INTERVAL", "1"), ("REDIS_TIMEOUT_MS", "1000")];
        every_answer_is_counted_by_where_it_came_from,
        what_visitors_do_is_counted,
        what_could_not_be_written_is_written_later,
        a_wrong_span_is_told,
    );

    async fn totals(shop: &Shop) -> Value {
        let answer = service(shop, Method::GET, "/traffic", None).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, "private, no-store"), "{answer:?}");
        answer.json["totals"].clone()
    }

    /// Waits for a figure to be as large as said. To ask is enough: it writes what was counted, once that is due.
    async fn counted(shop: &Shop, name: &str, number: u64) -> Value {
        eventually(&format!("{name} is {number}"), async || totals(shop).await[name].as_u64() >= Some(number)).await;
        totals(shop).await
    }

    async fn every_answer_is_counted_by_where_it_came_from(shop: &Shop) {
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

        let totals = counted(shop, "miss", 1).await;

        let names =
            ["stored", "hit", "unpopular", "no_item", "dynamic", "parameters", "method", "header", "api", "failed"];
        for name in names {
            assert_eq!(totals[name], 1, "{name}: {totals}");
        }
        assert_eq!(
            (&totals["stale"], &totals["redis_down"], &totals["redis_failures"]),
            (&json!(0), &json!(0), &json!(0))
        );
        // Pages that were asked of Redis: mug three times, rare, about, cup; each once more if the script had to be sent in full.
        let requests = totals["redis_requests"].as_u64().unwrap();
        assert!((6..=12).contains(&requests), "{totals}");
        assert!(totals["later_commands"].as_u64() >= Some(6), "{totals}");
    }

    async fn what_visitors_do_is_counted(shop: &Shop) {
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

        let totals = counted(shop, "views", 2).await;

        let seen = ["views", "additions", "carts", "orders", "api"].map(|name| totals[name].as_u64().unwrap());
        assert_eq!(seen, [2, 4, 2, 0, 7], "{totals}");
    }

    async fn what_could_not_be_written_is_written_later(shop: &Shop) {
        shop.store.gateway.set_fault(Some(Fault::Refuse));
        assert_eq!(shop.visit("/products/mug").await.status(), 200);
        shop.settled().await;
        shop.store.gateway.set_fault(None);

        let totals = counted(shop, "redis_down", 1).await;

        assert_eq!(totals["redis_down"], 1, "{totals}");
        assert!(totals["redis_failures"].as_u64() >= Some(1), "{totals}");
    }

    async fn a_wrong_span_is_told(shop: &Shop) {
        for minutes in ["0", "61", "-1", "1.5", "soon", ""] {
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
