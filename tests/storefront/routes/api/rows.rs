//! `/rows`: a read costs at most one Redis request before the response, and only a scheduled row has a copy.

use http::Method;
use serde_json::{Value, json};

use super::{Answer, service};
use crate::support::{Reply, Shop, eventually, scenarios};

scenarios!(&[("ROWS_URL", "{origin}/rows"), ("ROW_MEMORY", "0")];
    a_scheduled_row_is_shown_with_its_age,
    a_row_is_loaded_when_it_is_scheduled,
    several_rows_are_read_in_one_request,
    an_overdue_row_is_refreshed_after_the_response,
    an_unscheduled_row_is_not_found,
    the_most_overdue_rows_come_first,
    a_row_whose_source_fails_is_unavailable,
    a_scheduled_row_without_a_copy_is_told_apart_from_an_unscheduled_one,
    an_invalid_row_or_schedule_is_refused,
    a_copy_that_is_no_json_object_is_reported_and_loaded_again,
);

mod memory {
    use super::*;

    scenarios!(&[("ROWS_URL", "{origin}/rows"), ("ROW_MEMORY", "3600")];
        a_row_read_a_moment_ago_needs_no_redis,
        a_schedule_is_visible_at_once_in_its_isolate,
        a_refresh_is_visible_at_once_in_its_isolate,
        an_unscheduled_row_is_not_cached_as_missing,
    );

    mod by_default {
        use super::*;

        scenarios!(&[("ROWS_URL", "{origin}/rows")];
            a_copy_in_memory_expires_within_seconds,
        );
    }
}

/// Gives the shop rows, each with `stock` pieces.
fn stock(shop: &Shop, stock: u32) {
    shop.origin.answer_with(move |asked| {
        let ids = asked.path.split_once("ids=").map_or("", |(_, ids)| ids).replace("%2C", ",");
        let rows: Vec<_> = ids
            .split(',')
            .filter(|id| !id.starts_with("none"))
            .map(|id| json!({"id": id, "name": format!("Row {id}"), "stock": stock}))
            .collect();
        Reply::html(json!(rows).to_string())
    });
}

fn row(id: &str, stock: u32) -> Value {
    json!({"id": id, "name": format!("Row {id}"), "stock": stock})
}

async fn schedule(shop: &Shop, row: &str, every: f64) -> Answer {
    service(shop, Method::PUT, &format!("/rows/{row}/schedule"), Some(&json!({"every": every}))).await
}

async fn read(shop: &Shop, path: &str) -> Answer {
    Answer::to(shop.get(&format!("/_edge/v1/rows{path}"))).await
}

async fn a_scheduled_row_is_shown_with_its_age(shop: &Shop) {
    stock(shop, 7);
    assert_eq!(read(shop, "/mug").await.status, 404);
    let scheduled = schedule(shop, "mug", 5.0).await;
    assert_eq!((scheduled.status, &scheduled.json["every"]), (200, &json!(5.0)), "{scheduled:?}");

    let first = read(shop, "/mug").await;

    assert_eq!((first.status, &first.json, first.header("age")), (200, &row("mug", 7), "0"));
    assert_eq!(first.header("cache-control"), "no-cache");
    let before = shop.store.counts().requests;
    let again = shop.get("/_edge/v1/rows/mug").header("if-none-match", first.header("etag"));
    let again = Answer::to(again).await;
    assert_eq!((again.status, &again.json, again.header("etag")), (304, &Value::Null, first.header("etag")));
    assert_eq!(shop.store.counts().requests - before, 1);
    // A copy lives for 60 s: with 48 s left it is 12 s old.
    shop.store.raw(&["PEXPIRE", "inv:mug", "48000"]).await;
    assert_eq!(read(shop, "/mug").await.header("age"), "12");
    let told = service(shop, Method::GET, "/rows/mug/schedule", None).await;
    assert_eq!((told.status, &told.json["every"]), (200, &json!(5.0)), "{told:?}");
    assert_eq!(told.json["next"], scheduled.json["next"]);
    let due = shop.store.raw(&["ZSCORE", "schedule:", "mug"]).await;
    assert_eq!(scheduled.json["next"].as_f64(), due.as_str().unwrap().parse().ok());
}

async fn a_row_is_loaded_when_it_is_scheduled(shop: &Shop) {
    stock(shop, 7);
    schedule(shop, "mug", 5.0).await;
    let asked = shop.origin.count();
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7));
    assert_eq!((shop.blocking_requests().await, shop.origin.count()), (1, asked));
    assert_eq!(schedule(shop, "none", 5.0).await.status, 404);
    assert_eq!(service(shop, Method::GET, "/rows/none/schedule", None).await.status, 404);
}

async fn several_rows_are_read_in_one_request(shop: &Shop) {
    stock(shop, 3);
    for row in ["mug", "cup"] {
        schedule(shop, row, 5.0).await;
        read(shop, &format!("/{row}")).await;
    }
    let before = shop.store.counts().requests;

    let answer = read(shop, "?ids=cup,mug,bowl,cup&_=1").await;

    assert_eq!((answer.status, &answer.json), (200, &json!({"rows": {"cup": row("cup", 3), "mug": row("mug", 3)}})));
    assert_eq!((answer.header("age"), answer.header("cache-control")), ("0", "no-cache"));
    assert_eq!(shop.store.counts().requests - before, 1);
    assert_eq!(read(shop, "?ids=bowl").await.json, json!({"rows": {}}));
    let names: Vec<_> = (0..51).map(|number| number.to_string()).collect();
    assert_eq!(read(shop, &format!("?ids={}", names[..50].join(","))).await.status, 200);
    for query in ["", "?ids=", "?ids=a,,b", "?ids=a:b", "?ids=a&ids=b", &format!("?ids={}", names.join(","))] {
        let answer = read(shop, query).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!("ids")), "{query}");
    }
}

/// Other code may write anything to `inv:`. One such copy must not break the list of all rows.
async fn a_copy_that_is_no_json_object_is_reported_and_loaded_again(shop: &Shop) {
    stock(shop, 7);
    for row in ["mug", "cup"] {
        schedule(shop, row, 3_600.0).await;
    }
    for written in ["", "gone", "7", "null", "[1]", "\"{}\"", r#"{"stock":7"#, r#"{"stock":7}}"#] {
        // A row is loaded at most once a second.
        let due = shop.store.raw(&["ZADD", "schedule:", "1", "mug"]).await;
        assert!(due.is_number());
        shop.store.raw(&["SET", "inv:mug", written]).await;
        let answer = read(shop, "?ids=mug,cup").await;
        assert_eq!(answer.json, json!({"rows": {"mug": row("mug", 7), "cup": row("cup", 7)}}), "{written}");
    }
    shop.store.raw(&["ZADD", "schedule:", "1", "mug"]).await;
    shop.store.raw(&["SET", "inv:mug", "gone"]).await;
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7));
    shop.logged("1 cached row is not a JSON object").await;
    // Without its source, the row has no copy.
    shop.origin.answer(Reply::status(500));
    shop.store.raw(&["SET", "inv:mug", "gone"]).await;
    assert_eq!(read(shop, "?ids=mug,cup").await.json, json!({"rows": {"cup": row("cup", 7)}, "no_copy": ["mug"]}));
    assert_eq!(read(shop, "/mug").await.status, 503);
}

async fn an_overdue_row_is_refreshed_after_the_response(shop: &Shop) {
    stock(shop, 7);
    schedule(shop, "mug", 5.0).await;
    read(shop, "/mug").await;
    stock(shop, 6);
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7));
    shop.store.raw(&["ZINCRBY", "schedule:", "-20", "mug"]).await;

    let old = read(shop, "/mug").await;

    assert_eq!(old.json, row("mug", 7));
    assert_eq!(shop.blocking_requests().await, 1);
    shop.settled().await;
    let new = read(shop, "/mug").await;
    assert_eq!(new.json, row("mug", 6));
    assert_ne!(new.header("etag"), old.header("etag"));
}

async fn a_row_read_a_moment_ago_needs_no_redis(shop: &Shop) {
    stock(shop, 7);
    for row in ["mug", "cup"] {
        schedule(shop, row, 3_600.0).await;
    }
    let first = read(shop, "/mug").await;
    shop.store.raw(&["DEL", "inv:mug"]).await;
    let before = shop.store.counts().requests;

    let again = shop.get("/_edge/v1/rows/mug").header("if-none-match", first.header("etag"));
    let again = Answer::to(again).await;

    assert_eq!((again.status, again.header("etag")), (304, first.header("etag")));
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7));
    assert_eq!(read(shop, "?ids=mug").await.json, json!({"rows": {"mug": row("mug", 7)}}));
    assert_eq!(shop.store.counts().requests - before, 0);
    let both = json!({"rows": {"mug": row("mug", 7), "cup": row("cup", 7)}});
    assert_eq!(read(shop, "?ids=bowl,mug,cup").await.json, both);
    assert_eq!(read(shop, "/cup").await.json, row("cup", 7));
    assert_eq!(shop.store.counts().requests - before, 1, "for the two rows that were not in memory");
}

async fn a_schedule_is_visible_at_once_in_its_isolate(shop: &Shop) {
    stock(shop, 7);
    schedule(shop, "mug", 3_600.0).await;
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7));
    stock(shop, 6);
    schedule(shop, "mug", 3_600.0).await;
    assert_eq!(read(shop, "/mug").await.json, row("mug", 6));
    schedule(shop, "mug", 0.0).await;
    assert_eq!(read(shop, "/mug").await.status, 404);
}

async fn a_refresh_is_visible_at_once_in_its_isolate(shop: &Shop) {
    stock(shop, 7);
    schedule(shop, "mug", 3_600.0).await;
    shop.store.raw(&["ZINCRBY", "schedule:", "-10000", "mug"]).await;
    stock(shop, 6);
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7), "the row is refreshed after the response");
    shop.settled().await;
    assert_eq!(read(shop, "/mug").await.json, row("mug", 6));
}

async fn an_unscheduled_row_is_not_cached_as_missing(shop: &Shop) {
    assert_eq!(read(shop, "/mug").await.status, 404);
    for (key, score) in [("delay:", "60"), ("schedule:", "4000000000")] {
        shop.store.raw(&["ZADD", key, score, "mug"]).await;
    }
    shop.store.raw(&["SET", "inv:mug", &row("mug", 7).to_string()]).await;
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7));
}

async fn a_copy_in_memory_expires_within_seconds(shop: &Shop) {
    stock(shop, 7);
    schedule(shop, "mug", 3_600.0).await;
    assert_eq!(read(shop, "/mug").await.json, row("mug", 7));
    shop.store.raw(&["SET", "inv:mug", &row("mug", 6).to_string(), "KEEPTTL"]).await;
    eventually("the new copy is shown", async || read(shop, "/mug").await.json == row("mug", 6)).await;
}

async fn the_most_overdue_rows_come_first(shop: &Shop) {
    let nothing = service(shop, Method::GET, "/schedule", None).await;
    assert_eq!((nothing.status, &nothing.json), (200, &json!({"scheduled": 0, "rows": []})));
    stock(shop, 7);
    for row in ["mug", "cup", "bowl"] {
        schedule(shop, row, 60.0).await;
    }
    shop.store.raw(&["ZINCRBY", "schedule:", "-120", "cup"]).await;
    // A copy of a row with this period lives for 180 s.
    shop.store.raw(&["PEXPIRE", "inv:cup", "60000"]).await;
    shop.store.raw(&["DEL", "inv:mug"]).await;
    shop.store.raw(&["ZADD", "schedule:", "1700000000", "not/a/row"]).await;

    let answer = service(shop, Method::GET, "/schedule?limit=50", None).await;

    assert_eq!((answer.status, &answer.json["scheduled"]), (200, &json!(4)), "{answer:?}");
    let rows = answer.json["rows"].as_array().expect("rows");
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["cup", "mug", "bowl"]);
    let of = |row: usize, name: &str| rows[row][name].as_f64();
    assert!((59.0..80.0).contains(&of(0, "late").unwrap()), "{answer:?}");
    assert!((120.0..140.0).contains(&of(0, "age").unwrap()), "{answer:?}");
    assert_eq!((of(1, "late"), of(1, "age"), of(1, "every")), (Some(0.0), None, Some(60.0)));
    assert!(of(2, "age").unwrap() < 20.0, "{answer:?}");
    for limit in ["0", "51", "x"] {
        assert_eq!(service(shop, Method::GET, &format!("/schedule?limit={limit}"), None).await.json["field"], "limit");
    }
}

async fn an_unscheduled_row_is_not_found(shop: &Shop) {
    stock(shop, 7);
    for every in [0.0, -1.0] {
        schedule(shop, "mug", 5.0).await;
        assert_eq!(read(shop, "/mug").await.json, row("mug", 7));

        assert_eq!(schedule(shop, "mug", every).await.status, 204);

        let answer = read(shop, "/mug").await;
        assert_eq!((answer.status, &answer.json["detail"]), (404, &json!("no such row")));
        assert_eq!(service(shop, Method::GET, "/rows/mug/schedule", None).await.status, 404);
        assert_eq!(shop.store.raw(&["EXISTS", "inv:mug"]).await, 0);
    }
    schedule(shop, "none", 5.0).await;
    assert_ne!(read(shop, "/none").await.status, 200);
    assert_eq!(read(shop, "/none").await.status, 404, "a row that is missing in the database is unscheduled");
}

async fn a_row_whose_source_fails_is_unavailable(shop: &Shop) {
    shop.origin.answer(Reply::status(500));
    let scheduled = schedule(shop, "mug", 5.0).await;
    let due = shop.store.raw(&["ZSCORE", "schedule:", "mug"]).await;
    assert_eq!(scheduled.json["next"].as_f64(), due.as_str().unwrap().parse().ok(), "it is loaded again after a while");
    let answer = read(shop, "/mug").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "5"), "{answer:?}");
}

async fn a_scheduled_row_without_a_copy_is_told_apart_from_an_unscheduled_one(shop: &Shop) {
    stock(shop, 3);
    schedule(shop, "mug", 60.0).await;
    shop.origin.answer(Reply::status(500));
    schedule(shop, "cup", 60.0).await;
    shop.settled().await;
    let before = shop.store.counts().requests;

    let answer = read(shop, "?ids=bowl,cup,mug").await;

    assert_eq!((answer.status, &answer.json), (200, &json!({"rows": {"mug": row("mug", 3)}, "no_copy": ["cup"]})));
    assert!(shop.store.counts().requests - before <= 2, "the read, and the lease of the failing row");
    assert_eq!(read(shop, "?ids=cup").await.json, json!({"rows": {}, "no_copy": ["cup"]}));
    assert_eq!(read(shop, "?ids=bowl").await.json, json!({"rows": {}}));
    assert_eq!((read(shop, "/cup").await.status, read(shop, "/bowl").await.status), (503, 404));
    stock(shop, 3);
    shop.store.raw(&["ZADD", "schedule:", "1700000000", "cup"]).await;
    assert_eq!(read(shop, "?ids=cup").await.json, json!({"rows": {"cup": row("cup", 3)}}), "the source answers again");
}

async fn an_invalid_row_or_schedule_is_refused(shop: &Shop) {
    stock(shop, 7);
    for path in ["a%3Ab", "%ff", &"a".repeat(65)] {
        assert_eq!(read(shop, &format!("/{path}")).await.json["field"], "row", "{path}");
        assert_eq!(schedule(shop, path, 5.0).await.json["field"], "row", "{path}");
    }
    for every in [json!(null), json!("5"), json!(true), json!(0.01), json!(1e9)] {
        let answer = service(shop, Method::PUT, "/rows/mug/schedule", Some(&json!({"every": every}))).await;
        assert_eq!((answer.status, &answer.json["field"]), (422, &json!("every")), "{every}");
    }
    assert_eq!(shop.store.raw(&["ZCARD", "schedule:"]).await, 0);
}
