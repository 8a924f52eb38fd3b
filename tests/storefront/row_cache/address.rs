//! `ROWS_URL`: the addresses that get the key, and the responses that are valid.

use serde_json::{Value, json};

use super::refreshed;
use crate::support::{ORIGIN_KEY, Reply, Stock, Store, TestOrigin};

/// A shop at `{origin}/rows` with one row that is due.
async fn stock(variables: &[(&str, &str)]) -> Stock {
    let stock = Stock::on(Store::new().await, variables);
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    stock
}

#[tokio::test]
async fn the_address_of_the_origin_gets_the_key() {
    let stock = stock(&[("ORIGIN_URL", "{origin}/shop")]).await;
    assert_eq!(stock.refresh().await, refreshed(1));
    let asked = stock.origin.last();
    assert_eq!((asked.path.as_str(), asked.header("edge-key")), ("/rows?ids=mug", ORIGIN_KEY));
    assert_eq!(asked.headers.get_all("edge-key").iter().count(), 1);
}

#[tokio::test]
async fn no_other_address_gets_the_key() {
    let elsewhere = TestOrigin::start();
    let port = elsewhere.url().rsplit(':').next().unwrap().to_owned();
    for origin in
        [elsewhere.url(), format!("http://localhost:{port}"), "https://shop.example".to_owned(), String::new()]
    {
        let stock = stock(&[("ORIGIN_URL", &origin)]).await;
        assert_eq!(stock.refresh().await, refreshed(1), "{origin}");
        assert!(!stock.origin.last().headers.contains_key("edge-key"), "{origin}");
    }
}

#[tokio::test]
async fn the_key_does_not_follow_a_redirect() {
    let stock = stock(&[("ORIGIN_URL", "{origin}")]).await;
    let elsewhere = TestOrigin::start();
    for status in [301, 302, 303, 307, 308] {
        stock.origin.answer(Reply::status(status).header("location", format!("{}/rows", elsewhere.url())));
        stock.store.raw(&["ZADD", "schedule:", "1", "mug"]).await;
        let report = stock.refresh().await;
        assert_eq!(report.failed, 1, "{status}");
        assert_eq!(report.cause.unwrap().to_string(), format!("ROWS_URL answered with status {status}"));
    }
    assert_eq!((elsewhere.count(), stock.origin.count()), (0, 5));
}

#[tokio::test]
async fn an_id_may_be_an_integer() {
    let stock = stock(&[]).await;
    stock.origin.answer(Reply::html(r#"[{"id": 42, "quantity": 3}, {"id": -7, "quantity": 4}]"#));
    for id in ["42", "-7"] {
        stock.schedule(id, 60.0).await;
    }
    stock.refresh().await;
    assert_eq!(stock.copied("42").await, 3);
    assert_eq!(stock.copied("-7").await, 4);
    let copy: Value = serde_json::from_slice(&stock.read("42").await.unwrap().json).unwrap();
    assert_eq!(copy, json!({"id": 42, "quantity": 3}), "the row is shown as it came");
}

/// A row under another name would look deleted, and edgefront would unschedule it.
#[tokio::test]
async fn an_id_that_is_no_id_is_an_error_of_the_source() {
    for id in ["1.5", "1.0", "18446744073709551616", "1e3", "null", "true", "[]"] {
        let stock = stock(&[]).await;
        stock.origin.answer(Reply::html(format!(r#"[{{"id": "mug", "quantity": 1}}, {{"id": {id}}}]"#)));
        let report = stock.refresh().await;
        assert_eq!((report.failed, report.removed), (1, 0), "{id}");
        let cause = report.cause.unwrap().to_string();
        let rule = "id must be a string or an integer of at most 64 bits";
        assert_eq!(cause, format!("the source of rows sent a row without a valid id: {rule}"));
    }
}
