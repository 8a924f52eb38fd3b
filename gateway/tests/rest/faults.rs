//! Faults: what the client meets, and whether the command was executed.

use std::time::{Duration, Instant};

use edgefront_gateway::Fault;

use crate::support::{Answer, Rest, TOKEN, rest};

async fn increment(rest: &Rest) -> Option<Answer> {
    let authorization = format!("Authorization: Bearer {TOKEN}");
    rest.send_as_is("POST", "/", &[&authorization], br#"["INCR","n"]"#).await
}

async fn increments(rest: &Rest) -> String {
    rest.gateway.set_fault(None);
    rest.command(r#"["GET","n"]"#).await
}

const NONE: &str = r#"{"result":null}"#;
const ONE: &str = r#"{"result":"1"}"#;

#[tokio::test]
async fn refuse_closes_the_connection_and_executes_nothing() {
    let rest = rest().await;
    rest.gateway.set_fault(Some(Fault::Refuse));
    assert!(increment(&rest).await.is_none());
    assert_eq!(increments(&rest).await, NONE);
}

#[tokio::test]
async fn a_lost_reply_closes_the_connection_after_executing() {
    let rest = rest().await;
    rest.gateway.set_fault(Some(Fault::LoseReply));
    assert!(increment(&rest).await.is_none());
    assert_eq!(increments(&rest).await, ONE);
}

#[tokio::test]
async fn status_error_and_garbage_answer_without_executing() {
    let quota = "ERR max requests limit exceeded. Limit: 500000, Usage: 500000";
    let cases = [
        (Fault::Status(503, "busy".to_owned()), 503, "busy".to_owned()),
        (Fault::ErrorBody(quota.to_owned()), 200, format!(r#"{{"error":"{quota}"}}"#)),
        (Fault::Garbage, 200, "<html>Log in to the Wi-Fi</html>".to_owned()),
    ];
    for (fault, status, body) in cases {
        let rest = rest().await;
        rest.gateway.set_fault(Some(fault));
        let answer = increment(&rest).await.expect("an answer");
        assert_eq!((answer.status, answer.text()), (status, body.as_str()));
        assert_eq!(increments(&rest).await, NONE);
    }
}

#[tokio::test]
async fn truncate_executes_and_cuts_the_answer() {
    let rest = rest().await;
    rest.gateway.set_fault(Some(Fault::Truncate));
    let answer = increment(&rest).await.expect("an answer");
    assert_eq!((answer.status, answer.text()), (200, r#"{"resu"#));
    assert_eq!(increments(&rest).await, ONE);
}

#[tokio::test]
async fn slow_waits_before_it_executes() {
    let rest = rest().await;
    let delay = Duration::from_millis(50);
    rest.gateway.set_fault(Some(Fault::Slow(delay)));
    let start = Instant::now();
    assert_eq!(increment(&rest).await.expect("an answer").text(), r#"{"result":1}"#);
    assert!(start.elapsed() >= delay);
}
