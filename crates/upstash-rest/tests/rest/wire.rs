//! The bytes of requests, and the token for reading one's own writes.

use std::rc::Rc;

use edgefront_gateway::Fault;
use http::Request;
use upstash_rest::{Command, cmd};

use crate::support::{Database, client, incr, transport, unused_database};

#[tokio::test]
async fn requests_are_as_the_protocol_wants_them() {
    let db = Database::new().await;
    db.client.run(cmd::set("k", "\"ü\n")).await.unwrap();
    db.client.all((cmd::get("k"), cmd::incr("n"))).await.unwrap();
    db.client.transaction((cmd::incr("n"),)).await.unwrap();
    db.client.run::<()>(Command::write("SET").arg("a/b").arg([0xff])).await.unwrap();

    let requests = db.watch.requests.borrow();
    let sent: Vec<_> = requests.iter().map(|request| (request.uri().path(), request.body().as_ref())).collect();
    let expected: [(&str, &[u8]); 4] = [
        ("/pipeline", "[[\"SET\",\"k\",\"\\\"ü\\n\"]]".as_bytes()),
        ("/pipeline", br#"[["GET","k"],["INCR","n"]]"#),
        ("/multi-exec", br#"[["INCR","n"]]"#),
        ("/SET/a%2Fb", b"\xff"),
    ];
    assert_eq!(sent, expected);
    for request in requests.iter() {
        assert_eq!(request.method(), "POST");
        assert_eq!(header(request, "authorization"), Some("Bearer token-of-the-tests"));
        assert_eq!(header(request, "content-type"), Some("application/json"));
        assert_eq!(header(request, "upstash-encoding"), Some("base64"));
    }
}

#[tokio::test]
async fn the_last_sync_token_goes_with_the_next_request() {
    let db = Database::new().await;
    db.client.run::<u64>(incr()).await.unwrap();
    db.client.run::<u64>(incr()).await.unwrap();
    db.client.with_deadline(crate::support::DEADLINE).run::<u64>(incr()).await.unwrap();
    let requests = db.watch.requests.borrow();
    let tokens: Vec<_> = requests.iter().map(|request| header(request, "upstash-sync-token").is_some()).collect();
    assert_eq!(tokens, [false, true, true], "another handle begins with the token of the first");
}

#[tokio::test]
async fn a_client_reads_its_own_writes_from_a_replica_that_lags() {
    let db = Database::new().await;
    db.gateway.set_fault(Some(Fault::StaleReads(unused_database())));
    db.client.run(cmd::set("k", "new")).await.unwrap();
    assert_eq!(db.client.run(cmd::get("k").reply_as::<Option<String>>()).await, Ok(Some("new".to_owned())));
    let other = client(&db.gateway, Rc::new(transport()));
    assert_eq!(other.run(cmd::get("k")).await, Ok(None));
}

#[tokio::test]
async fn another_transport_serves_the_same_handle() {
    let db = Database::new().await;
    let client = db.client.with_deadline(crate::support::DEADLINE).through(Rc::new(transport()));
    assert_eq!(client.run::<u64>(incr()).await, Ok(1));
    assert!(db.watch.requests.borrow().is_empty());
}

fn header<'a, T>(request: &'a Request<T>, name: &str) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}
