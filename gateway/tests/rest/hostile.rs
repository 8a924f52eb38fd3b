//! Commands whose replies contain any bytes, any number of levels, or more than fits. Each harms only itself: all
//! requests share one connection to Redis, and it must stay open.

use std::time::Duration;

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use proptest::{collection::vec, prelude::*};
use tokio::{runtime::Runtime, time::timeout};

use crate::support::{READ_ONLY_TOKEN, Rest, TOKEN};

/// Fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A gateway in front of a server of its own, so that the server's connections can be counted.
async fn own_server() -> (Server, Rest) {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let options = Options { read_only_token: Some(READ_ONLY_TOKEN.to_owned()), ..Options::new(server.url(), TOKEN) };
    let gateway = Gateway::start(options).await.expect("a gateway");
    (server, Rest { gateway })
}

/// Connections that the server has accepted.
async fn connections(rest: &Rest) -> String {
    let info = rest.command(r#"["INFO","stats"]"#).await;
    let count = info.split("total_connections_received:").nth(1).and_then(|rest| rest.split("\\r").next());
    count.expect("a count").to_owned()
}

#[tokio::test]
async fn an_error_that_quotes_invalid_utf8_harms_only_its_command() {
    let (_server, rest) = own_server().await;
    let before = connections(&rest).await;
    let unknown = rest.send("GET", "/%ff", &[], b"").await;
    let error = "{\"error\":\"ERR Command is not available: '\u{fffd}'. See https://upstash.com/docs/redis/overall/rediscompatibility for details\"}";
    assert_eq!((unknown.status, unknown.text()), (400, error));

    let read_only = format!("Authorization: Bearer {READ_ONLY_TOKEN}");
    let quoted = rest.send_as_is("GET", "/xpending/%ff/%fe", &[&read_only], b"").await.expect("an answer");
    let error = "{\"error\":\"NOGROUP No such key '\u{fffd}' or consumer group '\u{fffd}'\"}";
    assert_eq!((quoted.status, quoted.text()), (400, error));
    assert_eq!(connections(&rest).await, before, "the shared connection broke");
}

#[tokio::test]
async fn commands_in_flight_survive_the_errors_of_others() {
    let (_server, rest) = own_server().await;
    let read_only = format!("Authorization: Bearer {READ_ONLY_TOKEN}");
    for _ in 0..20 {
        let read_only = [read_only.as_str()];
        let (hostile, other) = tokio::join!(
            rest.send_as_is("GET", "/xpending/%ff/%fe", &read_only, b""),
            rest.send("POST", "/", &[], br#"["INCR","n"]"#),
        );
        assert_eq!((hostile.map(|answer| answer.status), other.status), (Some(400), 200), "{}", other.text());
    }
    assert_eq!(rest.command(r#"["GET","n"]"#).await, r#"{"result":"20"}"#);
}

#[tokio::test]
async fn words_of_http_do_not_close_the_shared_connection() {
    let (_server, rest) = own_server().await;
    let before = connections(&rest).await;
    for name in ["POST", "post", "host:", "Host:", "POST\\u0000/", "host:\\u0000", "quit\\u0000"] {
        let answer = rest.send("POST", "/", &[], format!(r#"["{name}","k"]"#).as_bytes()).await;
        assert_eq!(answer.status, 400, "{name}");
        assert!(answer.text().starts_with("{\"error\":\"ERR Command "), "{}", answer.text());
        let batch = format!(r#"[["INCR","n"],["{name}","k"]]"#);
        assert_eq!(rest.send("POST", "/pipeline", &[], batch.as_bytes()).await.status, 200, "{name}");
        assert_eq!(rest.send("POST", "/multi-exec", &[], batch.as_bytes()).await.status, 400, "{name}");
    }
    assert_eq!(rest.send("GET", "/host:/example.com", &[], b"").await.status, 400);
    assert_eq!(rest.command(r#"["GET","n"]"#).await, r#"{"result":"7"}"#);
    assert_eq!(connections(&rest).await, before, "the shared connection broke");
}

/// The server compares names and options up to the first NUL, so what follows must not hide them from the gateway.
#[tokio::test]
async fn a_nul_does_not_hide_a_forbidden_command() {
    let (_server, rest) = own_server().await;
    let read_only = format!("Authorization: Bearer {READ_ONLY_TOKEN}");
    for path in ["/xread/BLOCK%00/0/STREAMS/s/$", "/xread/count/1/block%00x/0/streams%00/s/$"] {
        let headers = [read_only.as_str()];
        let answer = timeout(PATIENCE, rest.send_as_is("GET", path, &headers, b""))
            .await
            .expect("it blocks")
            .expect("an answer");
        assert!(answer.text().starts_with("{\"error\":\"ERR Command is not available: 'XREAD'"), "{}", answer.text());
    }
    // The server finds a name by a hash of all its bytes, and compares it up to the NUL. Of many, some have the hash of the hidden
    // command.
    let hidden =
        (0..1_000).flat_map(|n| [format!(r#"["MULTI\u0000{n}"]"#), format!(r#"["script","debug\u0000{n}","NO"]"#)]);
    for command in hidden {
        let text = rest.command(&command).await;
        assert!(text.ends_with(r#"is not allowed in REST or it has a special context path"}"#), "{command}: {text}");
    }
    assert_eq!(rest.gateway.counts().commands, 0, "nothing was sent");
}

#[tokio::test]
async fn statuses_and_errors_of_scripts_may_have_any_bytes() {
    let (_server, rest) = own_server().await;
    let before = connections(&rest).await;
    let resp2 = ["Upstash-Response-Format: resp2"];
    let status = br#"["EVAL","return {ok='a\\255\\r\\nb'}",0]"#;
    assert_eq!(rest.send("POST", "/", &[], status).await.text(), "{\"result\":\"a\u{fffd}  b\"}");
    assert_eq!(rest.send("POST", "/", &resp2, status).await.body, b"+a\xff  b\r\n");
    let error = rest.send("POST", "/", &[], br#"["EVAL","return {err='OOPS \\255\\254'}",0]"#).await;
    assert!(error.text().starts_with("{\"error\":\"OOPS \u{fffd}\u{fffd}"), "{}", error.text());
    let both = br#"[["EVAL","return {1,{ok='\\255'},{err='E \\255'}}",0],["PING"]]"#;
    for path in ["/pipeline", "/multi-exec"] {
        let answer = rest.send("POST", path, &[], both).await;
        assert_eq!(answer.text(), "[{\"result\":[1,\"\u{fffd}\",\"E \u{fffd}\"]},{\"result\":\"PONG\"}]", "{path}");
    }
    assert_eq!(connections(&rest).await, before, "the shared connection broke");
}

#[tokio::test]
async fn a_result_with_too_many_levels_is_an_error() {
    let (_server, rest) = own_server().await;
    let before = connections(&rest).await;
    let nested = |levels: usize| {
        format!(r#"["EVAL","local list = {{}} for _ = 2, {levels} do list = {{list}} end return list",0]"#)
    };
    let fits = rest.command(&nested(128)).await;
    assert_eq!(fits, format!(r#"{{"result":{}{}}}"#, "[".repeat(128), "]".repeat(128)));
    for levels in [129, 1_000] {
        let error = r#"{"error":"ERR the result has more than 128 levels"}"#;
        let answer = rest.send("POST", "/", &[], nested(levels).as_bytes()).await;
        assert_eq!((answer.status, answer.text()), (400, error), "{levels}");
        let batch = format!(r#"[{},["PING"]]"#, nested(levels));
        let transaction = rest.send("POST", "/multi-exec", &[], batch.as_bytes()).await;
        assert_eq!(transaction.text(), format!(r#"[{error},{{"result":"PONG"}}]"#), "{levels}");
    }
    assert_eq!(connections(&rest).await, before, "the shared connection broke");
}

#[tokio::test]
async fn a_long_list_is_an_error_and_the_replies_after_it_stay_in_step() {
    let (_server, rest) = own_server().await;
    let script = r#"["EVAL","local list = {} for i = 1, 22 do list[i] = string.rep('x', 1048576) end return list",0]"#;
    let error = format!(
        r#"{{"error":"ERR max request size exceeded. Limit: 10485760 bytes, Actual: {} bytes"}}"#,
        22 * ((1 << 20) + 8)
    );
    let batch = format!(r#"[["ECHO","before"],{script},["ECHO","after"]]"#);
    for path in ["/pipeline", "/multi-exec"] {
        let answer = rest.send("POST", path, &[], batch.as_bytes()).await;
        let expected = format!(r#"[{{"result":"before"}},{error},{{"result":"after"}}]"#);
        assert_eq!(answer.text(), expected, "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// After a command of any bytes, the next one is answered on the same connection.
    #[test]
    fn no_command_ends_the_shared_connection(commands in vec(vec(vec(any::<u8>(), 1..8), 1..4), 1..8)) {
        static SHARED: std::sync::LazyLock<(Runtime, Server, Rest)> = std::sync::LazyLock::new(|| {
            let runtime = Runtime::new().expect("a runtime");
            let (server, rest) = runtime.block_on(own_server());
            (runtime, server, rest)
        });
        let (runtime, _, rest) = &*SHARED;
        runtime.block_on(async {
            let before = connections(rest).await;
            for command in commands {
                let path: String = command.iter().flat_map(|arg| ["/".into(), escaped(arg)]).collect();
                for prefix in ["", "/xpending", "/object/encoding", "/incr", "/set/k"] {
                    let answer = rest.send("GET", &format!("{prefix}{path}"), &[], b"").await;
                    assert!([200, 400].contains(&answer.status), "{answer:?}");
                }
            }
            assert_eq!(connections(rest).await, before);
        });
    }
}

fn escaped(arg: &[u8]) -> std::borrow::Cow<'_, str> {
    percent_encode(arg, NON_ALPHANUMERIC).into()
}
