//! JSON, base64 and RESP2; and that bytes survive them.

use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use proptest::prelude::*;
use tokio::runtime::Runtime;

use crate::support::{Rest, rest};

#[tokio::test]
async fn base64_encodes_every_string_but_the_status_ok() {
    let rest = rest().await;
    let base64 = ["Upstash-Encoding: base64"];
    let cases = [
        (r#"["SET","foo","bar"]"#, r#"{"result":"OK"}"#),
        (r#"["GET","foo"]"#, r#"{"result":"YmFy"}"#),
        (r#"["GET","absent"]"#, r#"{"result":null}"#),
        (r#"["ECHO","OK"]"#, r#"{"result":"T0s="}"#),
        (r#"["TYPE","foo"]"#, r#"{"result":"c3RyaW5n"}"#),
        (r#"["STRLEN","foo"]"#, r#"{"result":3}"#),
        (r#"["EVAL","return {'a',{1,'b',false}}",0]"#, r#"{"result":["YQ==",[1,"Yg==",null]]}"#),
        (r#"["GET"]"#, r#"{"error":"ERR wrong number of arguments for 'get' command"}"#),
    ];
    for (body, expected) in cases {
        let answer = rest.send("POST", "/", &base64, body.as_bytes()).await;
        assert_eq!(answer.text(), expected, "{body}");
    }
    let batch = br#"[["SET","k","v"],["GET","k"]]"#;
    for path in ["/pipeline", "/multi-exec"] {
        let answer = rest.send("POST", path, &base64, batch).await;
        assert_eq!(answer.text(), r#"[{"result":"OK"},{"result":"dg=="}]"#);
    }
}

#[tokio::test]
async fn without_base64_invalid_utf8_is_replaced() {
    let rest = rest().await;
    rest.send("POST", "/set/k", &[], b"a\xffb").await;
    let answer = rest.send("GET", "/get/k", &[], b"").await;
    assert_eq!(answer.text(), "{\"result\":\"a\u{fffd}b\"}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn half_a_character_in_json_is_replaced_and_harms_no_other_command() {
    let rest = rest().await;
    let batch = br#"[["SET","k","a\ud83d"],["SET","pair","\ud83d\ude00"],["MGET","k","pair"]]"#;
    let answer = rest.send("POST", "/pipeline", &[], batch).await;
    let expected = "[{\"result\":\"OK\"},{\"result\":\"OK\"},{\"result\":[\"a\u{fffd}\",\"\u{1f600}\"]}]";
    assert_eq!(answer.text(), expected);
    assert_eq!(rest.send("POST", "/", &[], br#"["SET","k","\ud83d",null]"#).await.status, 400);
}

#[tokio::test]
async fn resp2_answers_the_bytes_of_the_server() {
    let rest = rest().await;
    let resp2 = ["Upstash-Response-Format: resp2"];
    let cases: [(&str, u16, &[u8]); 7] = [
        (r#"["SET","foo","bar"]"#, 200, b"+OK\r\n"),
        (r#"["GET","foo"]"#, 200, b"$3\r\nbar\r\n"),
        (r#"["GET","absent"]"#, 200, b"$-1\r\n"),
        (r#"["STRLEN","foo"]"#, 200, b":3\r\n"),
        (r#"["TYPE","foo"]"#, 200, b"+string\r\n"),
        (r#"["EVAL","return {'a',{1,false}}",0]"#, 200, b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n"),
        (r#"["GET"]"#, 400, b"-ERR wrong number of arguments for 'get' command\r\n"),
    ];
    for (body, status, expected) in cases {
        let answer = rest.send("POST", "/", &resp2, body.as_bytes()).await;
        assert_eq!((answer.status, answer.body.as_slice()), (status, expected), "{body}");
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    }
    let batch = br#"[["GET","foo"],["GET"],["PING"]]"#;
    let pipeline = rest.send("POST", "/pipeline", &resp2, batch).await;
    let expected = b"$3\r\nbar\r\n-ERR wrong number of arguments for 'get' command\r\n+PONG\r\n";
    assert_eq!((pipeline.status, pipeline.body.as_slice()), (200, expected.as_slice()));
    let transaction = rest.send("POST", "/multi-exec", &resp2, br#"[["GET","foo"]]"#).await;
    assert_eq!(transaction.text(), r#"[{"result":"bar"}]"#);
}

#[tokio::test]
async fn unknown_encodings_are_400() {
    let rest = rest().await;
    let cases: [&[&str]; 3] = [
        &["Upstash-Encoding: gzip"],
        &["Upstash-Response-Format: resp3"],
        &["Upstash-Encoding: base64", "Upstash-Response-Format: resp2"],
    ];
    for headers in cases {
        let answer = rest.send("POST", "/", headers, br#"["PING"]"#).await;
        assert_eq!(answer.status, 400, "{headers:?}");
    }
    let both = ["Upstash-Encoding: base64", "Upstash-Response-Format: json"];
    assert_eq!(rest.send("POST", "/", &both, br#"["PING"]"#).await.status, 200);
}

#[tokio::test]
async fn the_sync_token_is_returned_and_accepted_and_never_goes_back() {
    let rest = rest().await;
    let mut last = 0;
    for _ in 0..3 {
        let header = format!("upstash-sync-token: {last}");
        let answer = rest.send("POST", "/", &[&header], br#"["INCR","n"]"#).await;
        let token = answer.header("upstash-sync-token").expect("a sync token");
        let token: u64 = token.parse().expect("a number");
        assert!(token > last);
        last = token;
    }
    let foreign = rest.send("POST", "/", &["upstash-sync-token: AAAx:1,BBB:2"], br#"["GET","n"]"#).await;
    assert_eq!(foreign.text(), r#"{"result":"3"}"#);
}

static SHARED: LazyLock<(Runtime, Rest)> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let rest = runtime.block_on(rest());
    (runtime, rest)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_survive_base64_and_resp2(value in prop::collection::vec(any::<u8>(), 1..300)) {
        let (runtime, rest) = &*SHARED;
        runtime.block_on(async {
            rest.send("POST", "/set/bytes", &[], &value).await;
            let base64 = rest.send("GET", "/get/bytes", &["Upstash-Encoding: base64"], b"").await;
            let expected = format!(r#"{{"result":"{}"}}"#, BASE64_STANDARD.encode(&value));
            assert_eq!(base64.text(), expected);
            let resp2 = rest.send("GET", "/get/bytes", &["Upstash-Response-Format: resp2"], b"").await;
            let expected = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
            assert_eq!(resp2.body, expected);
        });
    }

    #[test]
    fn any_text_survives_json_and_the_path(text in "\\PC{1,40}") {
        let (runtime, rest) = &*SHARED;
        runtime.block_on(async {
            let body = serde_json::to_vec(&["ECHO", &text]).expect("JSON");
            let expected = serde_json::json!({ "result": text }).to_string();
            assert_eq!(rest.send("POST", "/", &[], &body).await.text(), expected);
            let encoded = percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC);
            assert_eq!(rest.send("GET", &format!("/echo/{encoded}"), &[], b"").await.text(), expected);
        });
    }

    #[test]
    fn any_body_is_answered_in_json(body in r#"[\[\]{}",:a-c0-3\\u \-.\x00-\x02\u{80}]{0,24}"#, batch in any::<bool>()) {
        let (runtime, rest) = &*SHARED;
        runtime.block_on(async {
            let path = if batch { "/pipeline" } else { "/" };
            let answer = rest.send("POST", path, &[], body.as_bytes()).await;
            assert!([200, 400].contains(&answer.status), "{body} {answer:?}");
            serde_json::from_slice::<serde_json::Value>(&answer.body).expect("JSON");
        });
    }
}
