//! Errors of the request as a whole.

use std::rc::Rc;

use edgefront_gateway::Fault;
use upstash_rest::{Client, Credentials, Error, Reply, cmd};

use crate::support::{DEADLINE, Database, LOST, get, incr, transport};

#[tokio::test]
async fn a_response_outside_the_protocol_is_an_error_of_its_own() {
    let db = Database::new().await;
    let quota = "ERR max requests limit exceeded. Limit: 500000, Usage: 500000. See upstash docs.";
    for (fault, error) in [
        (Fault::Garbage, Error::NotRest { status: 200 }),
        (Fault::Truncate, Error::NotRest { status: 200 }),
        (Fault::Status(503, "<html>upstream</html>".to_owned()), Error::NotRest { status: 503 }),
        (Fault::ErrorBody(quota.to_owned()), Error::Quota),
        (Fault::quota(), Error::Quota),
        (Fault::Status(429, "{}".to_owned()), Error::Quota),
        (Fault::Status(401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#.to_owned()), Error::Unauthorized),
        (Fault::Refuse, LOST),
    ] {
        db.gateway.set_fault(Some(fault.clone()));
        assert_eq!(db.client.run::<Reply>(incr()).await, Err(error.clone()), "{fault:?}");
        assert_eq!(db.client.all::<Reply>(&[incr(), get()]).await, Err(error.clone()), "{fault:?}");
        assert_eq!(db.client.transaction::<Reply>(&[incr(), get()]).await, Err(error), "{fault:?}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_unauthorized() {
    let db = Database::new().await;
    let credentials = Credentials::new(&db.gateway.url(), "another-token").unwrap();
    let client = Client::new(Rc::new(transport()), credentials, DEADLINE);
    assert_eq!(client.run(cmd::ping()).await, Err(Error::Unauthorized));
    assert_eq!(db.counts(), (0, 0));
}

#[tokio::test]
async fn a_response_over_the_limit_is_no_response() {
    let db = Database::new().await;
    let page = cmd::set("page", "x".repeat(9 << 20));
    db.client.run(page).await.unwrap();
    let read = |times| vec![cmd::get("page"); times];
    assert_eq!(db.client.all(read(1)).await.unwrap().len(), 1);
    // 9 MiB are 12 MiB of base64, and a response may have 32 MiB.
    assert_eq!(db.client.all(read(3)).await, Err(LOST));
}

#[tokio::test]
async fn no_message_shows_a_key_or_a_value() {
    let db = Database::new().await;
    db.client.run(cmd::set("SECRET-KEY", "SECRET-VALUE")).await.unwrap();
    for error in [
        db.client.run(cmd::incr("SECRET-KEY")).await.unwrap_err(),
        db.client.run(cmd::expire("SECRET-KEY", DEADLINE).arg("SECRET-OPTION")).await.unwrap_err(),
        db.client.run(cmd::get("SECRET-KEY").reply_as::<u64>()).await.unwrap_err(),
    ] {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("SECRET"), "{shown}");
    }
}
