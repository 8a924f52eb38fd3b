//! Sizes: a command, a result, a key, a pipeline, a body.

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};

use crate::support::{Rest, TOKEN, fresh_database, program, rest, send, start};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn a_command_of_ten_mebibytes_fits_and_more_is_413() {
    let rest = rest().await;
    let overhead = "SETk".len();
    let fits = rest.send("POST", "/set/k", &[], &vec![b'x'; 10 * MIB - overhead]).await;
    assert_eq!(fits.text(), r#"{"result":"OK"}"#);
    let too_large = rest.send("POST", "/set/k", &[], &vec![b'x'; 10 * MIB - overhead + 1]).await;
    let error = r#"{"error":"ERR max request size exceeded. Limit: 10485760 bytes, Actual: 10485761 bytes"}"#;
    assert_eq!((too_large.status, too_large.text()), (413, error));

    let body = format!(r#"[["SET","big","{}"],["PING"]]"#, "x".repeat(10 * MIB));
    let pipeline = rest.send("POST", "/pipeline", &[], body.as_bytes()).await;
    let error = r#"{"error":"ERR max request size exceeded. Limit: 10485760 bytes, Actual: 10485766 bytes"}"#;
    assert_eq!((pipeline.status, pipeline.text()), (200, format!(r#"[{error},{{"result":"PONG"}}]"#).as_str()));
    let transaction = rest.send("POST", "/multi-exec", &[], body.as_bytes()).await;
    assert_eq!((transaction.status, transaction.text()), (413, error));
    assert_eq!(rest.command(r#"["EXISTS","big"]"#).await, r#"{"result":0}"#);
}

#[tokio::test]
async fn a_body_of_more_than_64_mebibytes_is_413() {
    let rest = rest().await;
    let answer = rest.send("POST", "/pipeline", &[], &vec![b' '; 64 * MIB + 1]).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_result_of_more_than_ten_mebibytes_is_an_error() {
    let rest = rest().await;
    let script = |bytes: usize| format!(r#"["EVAL","return string.rep('x', {bytes})",0]"#);
    let fits = rest.send("POST", "/", &[], script(10 * MIB).as_bytes()).await;
    assert_eq!(fits.status, 200);
    let too_large = rest.send("POST", "/", &[], script(10 * MIB + 1).as_bytes()).await;
    let error = r#"{"error":"ERR max request size exceeded. Limit: 10485760 bytes, Actual: 10485761 bytes"}"#;
    assert_eq!((too_large.status, too_large.text()), (400, error));
    let batch = format!(r#"[{},["PING"]]"#, script(10 * MIB + 1));
    let pipeline = rest.send("POST", "/pipeline", &[], batch.as_bytes()).await;
    assert_eq!((pipeline.status, pipeline.text()), (200, format!(r#"[{error},{{"result":"PONG"}}]"#).as_str()));
}

#[tokio::test]
async fn the_results_of_a_request_have_at_most_64_mebibytes() {
    let rest = rest().await;
    rest.send("POST", "/set/k", &[], &vec![b'x'; 8 * MIB]).await;
    let body = format!(r#"[{},["STRLEN","k"]]"#, [r#"["GET","k"]"#; 9].join(","));
    let error = "x\r\n-ERR max size of all results of a request exceeded. Limit: 67108864 bytes\r\n:8388608\r\n";
    // The second request starts from zero.
    for _ in 0..2 {
        let answer = rest.send("POST", "/pipeline", &["Upstash-Response-Format: resp2"], body.as_bytes()).await;
        assert!(answer.text().ends_with(error), "{} bytes", answer.body.len());
        assert!(answer.body.len() > 64 * MIB);
    }
}

#[tokio::test]
async fn a_key_of_32_kibibytes_fits_and_more_is_an_error() {
    let rest = rest().await;
    let key = |bytes: usize| "k".repeat(bytes);
    let (fits, too_long) = (key(32 << 10), key((32 << 10) + 1));
    let error = r#"{"error":"ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes"}"#;
    let cases = [
        (format!(r#"["SET","{fits}","v"]"#), 200, r#"{"result":"OK"}"#),
        (format!(r#"["SET","{too_long}","v"]"#), 400, error),
        (format!(r#"["DEL","k","{too_long}"]"#), 400, error),
        (format!(r#"["EVAL","return 1",2,"a","{too_long}"]"#), 400, error),
        (format!(r#"["EVAL","return 1",1,"a","{too_long}"]"#), 200, r#"{"result":1}"#),
        (format!(r#"["SET","k","{too_long}"]"#), 200, r#"{"result":"OK"}"#),
    ];
    for (body, status, expected) in cases {
        let answer = rest.send("POST", "/", &[], body.as_bytes()).await;
        assert_eq!((answer.status, answer.text()), (status, expected), "{} bytes", body.len());
    }
}

#[tokio::test]
async fn each_command_of_a_pipeline_is_checked_for_long_keys() {
    let rest = rest().await;
    let long = "k".repeat((32 << 10) + 1);
    let body = format!(r#"[["SET","k","{long}"],["GET","{long}"],["STRLEN","k"],["DEL","a","{long}"],["DEL","k"]]"#);
    let answer = rest.send("POST", "/pipeline", &[], body.as_bytes()).await;
    let error = r#"{"error":"ERR max key size exceeded. Limit: 32768 bytes, Actual: 32769 bytes"}"#;
    let expected = format!(r#"[{{"result":"OK"}},{error},{{"result":32769}},{error},{{"result":1}}]"#);
    assert_eq!(answer.text(), expected);
}

#[tokio::test]
async fn the_server_is_not_asked_for_the_keys_of_a_script() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let gateway = Gateway::start(Options::new(server.url(), TOKEN)).await.expect("a gateway");
    let rest = Rest { gateway };
    let long = "v".repeat((32 << 10) + 1);
    let script = format!(r#"["EVAL","return redis.call('SET', KEYS[1], ARGV[1])","1","k","{long}"]"#);
    assert_eq!(rest.command(&script).await, r#"{"result":"OK"}"#);
    assert!(!rest.command(r#"["INFO","commandstats"]"#).await.contains("command|getkeys"));
    rest.command(&format!(r#"["SET","k","{long}"]"#)).await;
    assert!(rest.command(r#"["INFO","commandstats"]"#).await.contains("command|getkeys"));
}

#[tokio::test]
async fn a_thousand_commands_fit_into_a_pipeline_and_more_are_400() {
    let rest = rest().await;
    let pipeline = |count: usize| format!("[{}]", vec![r#"["INCR","n"]"#; count].join(","));
    let fits = rest.send("POST", "/pipeline", &[], pipeline(1000).as_bytes()).await;
    assert!(fits.text().ends_with(r#"{"result":1000}]"#));
    let too_many = rest.send("POST", "/pipeline", &[], pipeline(1001).as_bytes()).await;
    let error = r#"{"error":"ERR max commands in a request exceeded. Limit: 1000, Actual: 1001"}"#;
    assert_eq!((too_many.status, too_many.text()), (400, error));
}

const TOO_MANY: &str = r#"{"error":"ERR max arguments in a request exceeded. Limit: 1048576"}"#;

#[tokio::test]
async fn a_request_has_at_most_a_million_arguments() {
    let rest = rest().await;
    let command = |arguments: usize| format!(r#"["EXISTS"{}]"#, r#","""#.repeat(arguments - 1));
    let fits = rest.send("POST", "/", &[], command(1 << 20).as_bytes()).await;
    assert_eq!(fits.text(), r#"{"result":0}"#);
    let too_many = rest.send("POST", "/", &[], command((1 << 20) + 1).as_bytes()).await;
    assert_eq!((too_many.status, too_many.text()), (400, TOO_MANY));
    let batch = format!("[{}]", vec![command(1 << 10); 1 << 10].join(","));
    for path in ["/pipeline", "/multi-exec"] {
        // A thousand commands are read; only then they are too many.
        let answer = rest.send("POST", path, &[], batch.as_bytes()).await;
        assert!(answer.text().contains("max commands"), "{path}");
        let batch = format!("[{},{}]", command(1 << 19), command((1 << 19) + 1));
        let answer = rest.send("POST", path, &[], batch.as_bytes()).await;
        assert_eq!((answer.status, answer.text()), (400, TOO_MANY), "{path}");
    }
}

/// The peak of the program's memory, from Linux. The largest body is 64 MiB, and exists twice when it has arrived.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_largest_bodies_take_a_bounded_multiple_of_their_size() {
    let mut command = program(&["--listen", "127.0.0.1:0"]);
    command.env("REDIS_URL", fresh_database()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
    let (running, url) = start(command).await;
    let authorization = format!("Authorization: Bearer {TOKEN}");
    let list = |item: &str, count: usize| format!(r#"["DEL"{}]"#, item.repeat(count));
    let bodies = [
        ("/", list(r#","""#, 20_000_000)),
        ("/", list(",1e300", 10_000_000)),
        ("/", list(",{}", 20_000_000)),
        ("/pipeline", format!("[[\"DEL\"]{}]", ",[]".repeat(20_000_000))),
        ("/pipeline", format!("[{}]", vec![list(",1e300", 20_000); 500].join(","))),
    ];
    for (path, body) in bodies {
        let answer = send(&url, "POST", path, &[&authorization], body.as_bytes()).await.expect("an answer");
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id().expect("a process"))).expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kibibytes: usize = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kibibytes / 1024 < 400, "{} MiB", kibibytes / 1024);
}
