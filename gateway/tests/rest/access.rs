//! Tokens.

use crate::support::{READ_ONLY_TOKEN, TOKEN, rest};

#[tokio::test]
async fn without_a_right_token_nothing_is_executed() {
    let rest = rest().await;
    let cases: [(&str, &[&str]); 10] = [
        ("/set/k/v", &[]),
        ("/set/k/v", &["Authorization: Bearer wrong"]),
        ("/set/k/v", &["Authorization: Bearer "]),
        ("/set/k/v", &["Authorization: Basic full-token"]),
        ("/set/k/v", &["Authorization: Bearer full-toke"]),
        ("/set/k/v", &["Authorization: full-token"]),
        ("/set/k/v", &["Authorization: Bearerfull-token"]),
        ("/set/k/v?_token=wrong", &[]),
        ("/set/k/v?_token=", &["Authorization: Bearer full-token"]),
        ("/pipeline", &[]),
    ];
    for (target, headers) in cases {
        let answer = rest.send_as_is("POST", target, headers, b"").await.expect("an answer");
        let expected = (401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#);
        assert_eq!((answer.status, answer.text()), expected, "{target} {headers:?}");
    }
    assert_eq!(rest.gateway.counts().commands, 0);
}

#[tokio::test]
async fn the_token_may_stand_in_header_or_query() {
    let rest = rest().await;
    let in_query = format!("/set/k/v?_token={TOKEN}&EX=60");
    let cases = [
        (in_query.as_str(), vec![]),
        ("/ping", vec![format!("Authorization: Bearer {TOKEN}")]),
        ("/ping", vec![format!("authorization: bearer {TOKEN}")]),
    ];
    for (target, headers) in cases {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let answer = rest.send_as_is("GET", target, &headers, b"").await.expect("an answer");
        assert_eq!(answer.status, 200, "{target} {headers:?}");
    }
    assert_eq!(rest.command(r#"["TTL","k"]"#).await, r#"{"result":60}"#);
}

#[tokio::test]
async fn the_read_only_token_reads_and_no_more() {
    let rest = rest().await;
    rest.command(r#"["SET","k","v"]"#).await;
    let allowed = [
        (r#"["GET","k"]"#, r#"{"result":"v"}"#),
        (r#"["zrange","z",0,-1]"#, r#"{"result":[]}"#),
        (r#"["OBJECT","REFCOUNT","k"]"#, r#"{"result":1}"#),
        (r#"["PING"]"#, r#"{"result":"PONG"}"#),
    ];
    let authorization = format!("Authorization: Bearer {READ_ONLY_TOKEN}");
    let read_only = [authorization.as_str()];
    for (body, expected) in allowed {
        let answer = rest.send_as_is("POST", "/", &read_only, body.as_bytes()).await.expect("an answer");
        assert_eq!((answer.status, answer.text()), (200, expected), "{body}");
    }
    let denied = ["set", "del", "eval", "evalsha", "keys", "scan", "flushdb", "script", "getex", "nosuch"];
    for name in denied {
        let answer = rest.send_as_is("POST", &format!("/{name}/k"), &read_only, b"").await.expect("an answer");
        let expected = format!(
            r#"{{"error":"NOPERM this user has no permissions to run the '{name}' command or its subcommand"}}"#
        );
        assert_eq!((answer.status, answer.text()), (400, expected.as_str()));
    }
    let batch = br#"[["GET","k"],["DEL","k"]]"#;
    let pipeline = rest.send_as_is("POST", "/pipeline", &read_only, batch).await.expect("an answer");
    let denial = r#"{"error":"NOPERM this user has no permissions to run the 'del' command or its subcommand"}"#;
    assert_eq!(pipeline.text(), format!(r#"[{{"result":"v"}},{denial}]"#));
    let transaction = rest.send_as_is("POST", "/multi-exec", &read_only, batch).await.expect("an answer");
    assert_eq!((transaction.status, transaction.text()), (400, denial));
    assert_eq!(rest.command(r#"["GET","k"]"#).await, r#"{"result":"v"}"#);
}
