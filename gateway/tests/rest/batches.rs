//! Pipelines and transactions.

use edgefront_gateway::{Counts, LogEntry, RequestKind};
use tokio::task::JoinSet;

use crate::support::rest;

#[tokio::test]
async fn a_pipeline_answers_each_command_in_order_errors_included() {
    let rest = rest().await;
    let cases = [
        (
            r#"[["SET","k","valuex"],["SETEX","t",13,"z"],["INCR","k"],["ZADD","s",11,"a",22,"b"],["GET","no"]]"#,
            200,
            r#"[{"result":"OK"},{"result":"OK"},{"error":"ERR value is not an integer or out of range"},{"result":2},{"result":null}]"#,
        ),
        (r#"[["GET","k"]]"#, 200, r#"[{"result":"valuex"}]"#),
        (
            r#"[["GET"],["SELECT","1"],["PING"]]"#,
            200,
            r#"[{"error":"ERR wrong number of arguments for 'get' command"},{"error":"ERR Command \"SELECT\" is not allowed in REST or it has a special context path"},{"result":"PONG"}]"#,
        ),
    ];
    rest.golden("/pipeline", &cases).await;
    assert_eq!(rest.gateway.counts(), Counts { requests: 3, commands: 5 + 1 + 2 });
}

#[tokio::test]
async fn a_malformed_batch_is_400_and_executes_nothing() {
    let rest = rest().await;
    for path in ["/pipeline", "/multi-exec"] {
        let cases = [
            ("", 400, r#"{"error":"EOF"}"#),
            ("[]", 400, r#"{"error":"ERR empty command"}"#),
            ("[[]]", 400, r#"{"error":"ERR empty command"}"#),
            (r#"["SET","k","v"]"#, 400, r#"{"error":"expected JSON array"}"#),
            (r#"{"a":[]}"#, 400, r#"{"error":"expected JSON array"}"#),
            (r#"[["SET","k","v"],["SET","k",null]]"#, 400, r#"{"error":"ERR null args are not supported"}"#),
        ];
        rest.golden(path, &cases).await;
    }
    assert_eq!(rest.gateway.counts(), Counts::default());
}

#[tokio::test]
async fn a_transaction_answers_each_command_and_goes_on_after_an_error() {
    let rest = rest().await;
    let cases = [(
        r#"[["SET","k","valuex"],["INCR","k"],["RPUSH","l","a","b"],["LRANGE","l",0,-1]]"#,
        200,
        r#"[{"result":"OK"},{"error":"ERR value is not an integer or out of range"},{"result":2},{"result":["a","b"]}]"#,
    )];
    rest.golden("/multi-exec", &cases).await;
}

#[tokio::test]
async fn a_discarded_transaction_is_one_error_and_leaves_nothing() {
    let rest = rest().await;
    let cases = [
        (r#"[["SET","k","v"],["GET"]]"#, 400, r#"{"error":"ERR wrong number of arguments for 'get' command"}"#),
        (
            r#"[["SET","k","v"],["WATCH","k"]]"#,
            400,
            r#"{"error":"ERR Command \"WATCH\" is not allowed in REST or it has a special context path"}"#,
        ),
    ];
    rest.golden("/multi-exec", &cases).await;
    assert_eq!(rest.command(r#"["EXISTS","k"]"#).await, r#"{"result":0}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_on_the_shared_connection_do_not_mix() {
    let rest = std::sync::Arc::new(rest().await);
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        let rest = std::sync::Arc::clone(&rest);
        clients.spawn(async move {
            for _ in 0..25 {
                // Both counters move in one step, so a transaction always sees them equal.
                let body = br#"[["INCR","a"],["GET","b"],["INCR","b"]]"#;
                let answer = rest.send("POST", "/multi-exec", &[], body).await;
                let items: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
                let a = items[0]["result"].as_u64().expect("a number");
                let before = items[1]["result"].as_str().unwrap_or("0");
                assert_eq!(before, (a - 1).to_string());
                assert_eq!(items[2]["result"], a);
                rest.send("POST", "/", &[], br#"["INCR","c"]"#).await;
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("a client that saw no mixture");
    }
    assert_eq!(rest.command(r#"["MGET","a","b","c"]"#).await, r#"{"result":["200","200","200"]}"#);
}

#[tokio::test]
async fn counts_and_log_tell_what_reached_redis_by_name_only() {
    let rest = rest().await;
    rest.command(r#"["set","secret-key","secret-value"]"#).await;
    rest.command(r#"["SELECT","1"]"#).await;
    rest.command(r#"["SET","k",null]"#).await;
    rest.command(r#"["what is this?"]"#).await;
    rest.golden("/multi-exec", &[(r#"[["INCR","a"],["incr","a"]]"#, 200, r#"[{"result":1},{"result":2}]"#)]).await;
    assert_eq!(rest.gateway.counts(), Counts { requests: 3, commands: 4 });
    let entry =
        |kind, commands: &[&str]| LogEntry { kind, commands: commands.iter().map(ToString::to_string).collect() };
    let expected = [
        entry(RequestKind::Single, &["SET"]),
        entry(RequestKind::Single, &["?"]),
        entry(RequestKind::Transaction, &["INCR", "INCR"]),
    ];
    assert_eq!(rest.gateway.log(), expected);
}
