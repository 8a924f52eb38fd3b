//! Errors with which the server refuses commands for now: 503 with `Retry-After`, so that a client repeats the request.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpStream},
};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};

use crate::support::{Rest, TOKEN, rest};

/// Tells the server something that the gateway refuses. Returns the first line of the last reply.
pub fn tell(server: &Server, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).expect("a connection");
    let mut replies = BufReader::new(stream.try_clone().expect("its other half"));
    let mut reply = String::new();
    for line in lines {
        reply.clear();
        stream.write_all(format!("{line}\r\n").as_bytes()).expect("room");
        replies.read_line(&mut reply).expect("a reply");
    }
    reply.trim_end().to_owned()
}

async fn behind(server: &Server) -> Rest {
    Rest { gateway: Gateway::start(Options::new(server.url(), TOKEN)).await.expect("a gateway") }
}

/// A single command and a transaction are 503. In a pipeline the error is the command's own, and the status 200: the
/// other commands may have been executed.
async fn is_unavailable(rest: &Rest, code: &str) {
    let single = rest.send("GET", "/get/k", &[], b"").await;
    assert_eq!((single.status, single.header("retry-after")), (503, Some("1")), "{}", single.text());
    assert!(single.text().starts_with(&format!(r#"{{"error":"{code} "#)), "{}", single.text());
    let commands = br#"[["GET","k"]]"#;
    let transaction = rest.send("POST", "/multi-exec", &[], commands).await;
    assert_eq!((transaction.status, transaction.header("retry-after")), (503, Some("1")), "{}", transaction.text());
    let pipeline = rest.send("POST", "/pipeline", &[], commands).await;
    assert_eq!((pipeline.status, pipeline.header("retry-after")), (200, None));
    assert!(pipeline.text().starts_with(&format!(r#"[{{"error":"{code} "#)), "{}", pipeline.text());
}

#[tokio::test]
async fn a_replica_without_its_master_is_503() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let rest = behind(&server).await;
    let lines = ["CONFIG SET replica-serve-stale-data no", "REPLICAOF 127.0.0.1 1"];
    assert_eq!(tell(&server, &lines), "+OK");
    is_unavailable(&rest, "MASTERDOWN").await;
    assert_eq!(tell(&server, &["REPLICAOF NO ONE"]), "+OK");
    assert_eq!(rest.command(r#"["SET","k","v"]"#).await, r#"{"result":"OK"}"#);
}

#[tokio::test]
async fn a_server_of_a_cluster_without_slots_is_503() {
    let server = Server::start(ServerOptions { cluster: true, ..ServerOptions::default() }).expect("a server");
    is_unavailable(&behind(&server).await, "CLUSTERDOWN").await;
}

#[tokio::test]
async fn a_server_that_runs_a_long_script_is_503() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let rest = behind(&server).await;
    assert_eq!(tell(&server, &["CONFIG SET busy-reply-threshold 1"]), "+OK");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).expect("a connection");
    stream.write_all(b"EVAL \"while true do end\" 0\r\n").expect("room");
    // The script has begun when a command is refused.
    while rest.send("GET", "/get/k", &[], b"").await.status == 200 {}
    is_unavailable(&rest, "BUSY").await;
    assert_eq!(rest.command(r#"["SCRIPT","KILL"]"#).await, r#"{"result":"OK"}"#);
}

#[tokio::test]
async fn the_code_decides_about_the_status() {
    let rest = rest().await;
    for (code, status) in [
        ("LOADING", 503),
        ("TRYAGAIN", 503),
        ("MASTERDOWN", 503),
        ("CLUSTERDOWN", 503),
        ("BUSY", 503),
        ("BUSYGROUP", 400),
        ("LOADINGS", 400),
        ("READONLY", 400),
        ("ERR", 400),
    ] {
        let command = format!(r#"["EVAL","return {{err='{code} text'}}",0]"#);
        let answer = rest.send("POST", "/", &[], command.as_bytes()).await;
        let retry_after = (status == 503).then_some("1");
        assert_eq!((answer.status, answer.header("retry-after")), (status, retry_after), "{}", answer.text());
    }
}

/// The server then executes each command by itself, so the answer must not say that nothing was executed.
#[tokio::test]
async fn a_transaction_whose_multi_is_refused_may_have_been_executed() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    assert_eq!(tell(&server, &["ACL SETUSER limited on >secret ~* +@all -multi"]), "+OK");
    let url = format!("redis://limited:secret@127.0.0.1:{}", server.port());
    let rest = Rest { gateway: Gateway::start(Options::new(url, TOKEN)).await.expect("a gateway") };
    let answer = rest.send("POST", "/multi-exec", &[], br#"[["INCR","n"],["INCR","n"]]"#).await;
    assert_eq!(answer.status, 502, "{}", answer.text());
    let begin = r#"{"error":"ERR Redis refused MULTI, the commands may have been executed one by one: NOPERM "#;
    assert!(answer.text().starts_with(begin), "{}", answer.text());
    assert_eq!(rest.command(r#"["GET","n"]"#).await, r#"{"result":"2"}"#);
}
