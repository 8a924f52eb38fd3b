//! The command, as an operator runs it: with a real server behind the gateway.

use std::process::{Command, Output};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};

const TOKEN: &str = "token-of-the-tests";

fn run(arguments: &[&str], url: Option<&str>, token: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgefront-carry-over"));
    command.args(arguments).env_remove("UPSTASH_REDIS_REST_URL").env("UPSTASH_REDIS_REST_TOKEN", token);
    command
        .envs(url.map(|url| ("UPSTASH_REDIS_REST_URL", url)))
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .expect("a program")
}

/// Standard output of a run that succeeds.
fn succeed(arguments: &[&str], url: &str) -> String {
    let output = run(arguments, Some(url), TOKEN);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Standard error of a run that fails.
fn fail(output: Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_moves_the_keys_and_says_when_nothing_is_left() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let gateway = Gateway::start(Options::new(server.url(), TOKEN)).await.expect("a gateway");
    let url = gateway.url();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let post = async |body: &str| {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let answer = client.post(&url).bearer_auth(TOKEN).body(body.to_owned()).send().await.expect("an answer");
        answer.text().await.expect("text")
    };
    post(r#"["ZADD","viewed:","-9","mug"]"#).await;
    assert!(succeed(&["tags"], &url).contains("ok   1 keys moved; about 1 of 1 looked at"));
    assert_eq!(post(r#"["KEYS","*"]"#).await, r#"{"result":["viewed:{pages}"]}"#);
    assert!(succeed(&["tags"], &url).contains("Nothing was left."));
    for command in [
        r#"["SET","rescaled:{pages}","1795000000"]"#,
        r#"["ZADD","viewed:","-1","mug"]"#,
        r#"["SET","rescaled:","1795000060"]"#,
    ] {
        post(command).await;
    }
    succeed(&["tags", "--ranking-half-life", "30"], &url);
    assert_eq!(post(r#"["ZSCORE","viewed:{pages}","mug"]"#).await, r#"{"result":"-3.25"}"#, "a quarter of 9, and 1");
    post(r#"["DEL","rescaled:{pages}"]"#).await;
    // Back again, as after a change of mind.
    assert!(succeed(&["book"], &url).contains("Run this again"));
    assert_eq!(post(r#"["KEYS","*"]"#).await, r#"{"result":["viewed:"]}"#);

    assert!(fail(run(&["tags"], Some(&url), "wrong")).contains("use the token of the database"));
    let closed = fail(run(&["tags"], Some("http://127.0.0.1:1"), TOKEN));
    assert!(closed.contains("run the command again"), "{closed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_delays_the_move_and_does_not_stop_it() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let _ = rustls::crypto::ring::default_provider().install_default();
    let unlimited = Gateway::start(Options::new(server.url(), TOKEN)).await.expect("a gateway");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let fill = r#"["EVAL","for i = 1, 12000 do redis.call('SET', 'cache:' .. i, '') end","0"]"#;
    let filled = client.post(unlimited.url()).bearer_auth(TOKEN).body(fill).send().await.expect("an answer");
    assert!(filled.status().is_success());
    // Each run begins anew, so runs that stop at the limit would never reach the last keys.
    let options = Options { max_commands_per_second: Some(4), ..Options::new(server.url(), TOKEN) };
    let gateway = Gateway::start(options).await.expect("a gateway");
    assert!(succeed(&["tags"], &gateway.url()).contains("ok   12000 keys moved"));
}

#[test]
fn a_missing_or_wrong_argument_is_named() {
    assert!(fail(run(&["tags"], None, TOKEN)).contains("--url <URL>"));
    assert!(fail(run(&[], Some("http://127.0.0.1:1"), TOKEN)).contains("<NAMES>"));
    let zero = ["tags", "--insights-half-life", "0"];
    assert!(fail(run(&zero, Some("http://127.0.0.1:1"), TOKEN)).contains("--insights-half-life"));
    assert!(fail(run(&["tags"], Some("name.upstash.io"), TOKEN)).contains("must begin with https://"));
}
