//! Faults: what the client meets, and whether the command was executed.

use std::time::{Duration, Instant};

use edgefront_gateway::{Fault, FaultScope};

use crate::support::{Answer, Rest, TOKEN, fresh_database, rest};

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

#[tokio::test]
async fn half_a_pipeline_fails_and_a_transaction_and_a_single_command_do_not() {
    let rest = rest().await;
    rest.gateway.set_fault(Some(Fault::HalfPipeline));
    let commands = br#"[["INCR","n"],["INCR","n"],["INCR","n"]]"#;
    let failed = r#"{"error":"ERR not executed because of an injected fault"}"#;
    let answer = rest.send("POST", "/pipeline", &[], commands).await;
    assert_eq!((answer.status, answer.text()), (200, &*format!(r#"[{{"result":1}},{failed},{{"result":2}}]"#)));
    let answer = rest.send("POST", "/multi-exec", &[], commands).await;
    assert_eq!(answer.text(), r#"[{"result":3},{"result":4},{"result":5}]"#);
    assert_eq!(rest.command(r#"["INCR","n"]"#).await, r#"{"result":6}"#);
}

#[tokio::test]
async fn stale_reads_come_from_a_replica_until_the_client_shows_a_newer_token() {
    let rest = rest().await;
    let replica = fresh_database();
    let (_, number) = replica.rsplit_once('/').expect("a database number");
    rest.command(r#"["SET","k","old"]"#).await;
    rest.command(&format!(r#"["COPY","k","k","DB","{number}"]"#)).await;
    let before = rest.send("GET", "/get/k", &[], b"").await;
    let token =
        |answer: &Answer| format!("upstash-sync-token: {}", answer.header("upstash-sync-token").expect("a token"));
    rest.gateway.set_fault(Some(Fault::StaleReads(replica.clone())));
    let written = rest.send("POST", "/", &[], br#"["SET","k","new"]"#).await;
    for (seen, value) in [(None, "old"), (Some(token(&before)), "old"), (Some(token(&written)), "new")] {
        let seen: Vec<_> = seen.iter().map(String::as_str).collect();
        let answer = rest.send("GET", "/get/k", &seen, b"").await;
        assert_eq!(answer.text(), format!(r#"{{"result":"{value}"}}"#), "{seen:?}");
    }
    let script = br#"["EVAL","return redis.call('GET', KEYS[1])","1","k"]"#;
    assert_eq!(rest.send("POST", "/", &[], script).await.text(), r#"{"result":"new"}"#, "a script is no read");
}

#[tokio::test]
async fn a_fault_may_meet_the_next_requests_or_one_in_some() {
    for (when, met) in [
        (FaultScope::Always, [true, true, true, true]),
        (FaultScope::Next(2), [true, true, false, false]),
        (FaultScope::Every(2), [false, true, false, true]),
    ] {
        let rest = rest().await;
        rest.gateway.set_fault_for(Fault::Refuse, when);
        for (number, met) in met.into_iter().enumerate() {
            assert_eq!(increment(&rest).await.is_none(), met, "{when:?}, request {number}");
        }
        let executed = met.into_iter().filter(|met| !met).count() as u64;
        assert_eq!((rest.gateway.received(), rest.gateway.counts().requests), (4, executed));
    }
}

#[tokio::test]
async fn a_request_over_the_budget_of_commands_executes_nothing() {
    let rest = rest().await;
    rest.gateway.set_command_budget(Some(4));
    let commands = br#"[["INCR","n"],["INCR","n"],["INCR","n"]]"#;
    let statuses =
        [rest.send("POST", "/pipeline", &[], commands).await, rest.send("POST", "/pipeline", &[], commands).await];
    assert_eq!(statuses.map(|answer| answer.status), [200, 429]);
    assert_eq!(increment(&rest).await.expect("an answer").text(), r#"{"result":4}"#);
    assert_eq!(increment(&rest).await.expect("an answer").text(), r#"{"error":"ERR too many requests"}"#);
    rest.gateway.set_command_budget(None);
    assert_eq!(increment(&rest).await.expect("an answer").text(), r#"{"result":5}"#);
}

#[test]
fn every_name_of_a_fault_is_one() {
    for (name, _) in Fault::NAMES {
        let name = name.replace("SECONDS", "0.5").replace("REDIS_URL", "redis://127.0.0.1:6380");
        assert!(name.parse::<Fault>().is_ok(), "{name}");
    }
    assert_eq!("slow=0.5".parse(), Ok(Fault::Slow(Duration::from_millis(500))));
    for wrong in ["", "404", "refuse=1", "slow", "slow=soon", "slow=-1", "stale="] {
        assert!(wrong.parse::<Fault>().is_err(), "{wrong}");
    }
}
