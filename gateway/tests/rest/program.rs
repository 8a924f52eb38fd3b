//! The binary, as people start it.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpStream,
};

use edgefront_gateway::Fault;

use crate::support::{TOKEN, fresh_database, program, send};

#[tokio::test]
async fn it_prints_its_address_and_its_server_and_listens_on_loopback() {
    let mut command = program(&["--listen", "127.0.0.1:0"]);
    command.env("REDIS_URL", fresh_database()).env("UPSTASH_REDIS_REST_TOKEN", "secret");
    let mut running = command.stdout(Stdio::piped()).spawn().expect("the program");
    let mut lines = BufReader::new(running.stdout.take().expect("its output")).lines();
    let line = lines.next_line().await.expect("its output").expect("a first line");
    let (url, server) = line.split_once(" in front of ").expect("address and server");
    assert!(server.starts_with("valkey ") || server.starts_with("redis "), "{line}");
    let address = url.strip_prefix("http://").expect("an address");
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    TcpStream::connect(address).await.expect("it listens");
}

#[tokio::test]
async fn it_fails_as_it_is_told_and_its_help_says_how() {
    let mut command = program(&["--listen", "127.0.0.1:0", "--fault", "quota", "--fault-every", "2"]);
    command.env("REDIS_URL", fresh_database()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
    let mut running = command.stdout(Stdio::piped()).spawn().expect("the program");
    let line = BufReader::new(running.stdout.take().expect("its output")).lines().next_line().await;
    let line = line.expect("its output").expect("a first line");
    let url = line.split(' ').next().expect("an address").to_owned();
    for expected in [r#"{"result":"PONG"}"#, r#"{"error":"ERR max requests limit exceeded."#] {
        let answer = send(&url, "GET", "/ping", &[&format!("Authorization: Bearer {TOKEN}")], b"").await;
        let answer = answer.expect("an answer");
        assert!(answer.text().starts_with(expected), "{}", answer.text());
    }
    let help = program(&["--help"]).output().await.expect("the program").stdout;
    let help = String::from_utf8_lossy(&help);
    for (name, does) in Fault::NAMES {
        assert!(help.contains(name) && help.contains(does), "{name}: {help}");
    }
}

#[tokio::test]
async fn the_readme_lists_the_options_of_the_help() {
    let help = program(&["-h"]).output().await.expect("the program").stdout;
    let help = String::from_utf8(help).expect("text");
    let usage = help.lines().find(|line| line.starts_with("Usage:")).expect("a usage line");
    let options: Vec<_> = help.lines().filter_map(|line| table_row(line, usage)).collect();
    let readme = include_str!("../../README.md").replace('`', "");
    let table: Vec<_> = readme.lines().filter(|line| line.starts_with("| --")).collect();
    assert_eq!(table, options, "the table in gateway/README.md is stale");
}

/// The row of the README's table for an option's line `--name <VALUE>  Meaning [env: NAME] [default: VALUE]`.
fn table_row(line: &str, usage: &str) -> Option<String> {
    let (option, rest) = line.trim_start().split_once("  ").filter(|(option, _)| option.starts_with("--"))?;
    let (meaning, notes) = rest.trim().split_once(" [").unwrap_or((rest.trim(), ""));
    let note = |name: &str| notes.split(['[', ']']).find_map(|note| note.strip_prefix(name));
    let variable = note("env: ").map(|name| format!(" ({name})")).unwrap_or_default();
    let default = note("default: ").unwrap_or(if usage.contains(option) { "required" } else { "none" });
    Some(format!("| {}{variable} | {default} | {meaning} |", option.replace(['<', '>'], "")))
}

#[tokio::test]
async fn a_wrong_start_is_one_line_without_secrets() {
    let database = fresh_database().replace("redis://", "redis://:hunter2@");
    let args = ["--redis-url", &database, "--token", "secret", "--listen", "127.0.0.1:0"];
    let output = program(&args).output().await.expect("the program");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(message.starts_with("edgefront-gateway: cannot use Redis at 127.0.0.1:"), "{message}");
    assert!(message.lines().count() == 1 && !message.contains("hunter2"), "{message}");
}

#[tokio::test]
async fn help_and_a_missing_token_do_not_show_the_environment() {
    for args in [["--help"].as_slice(), &[]] {
        let mut command = program(args);
        let output = command.env("REDIS_URL", "redis://:hunter2@host").output().await.expect("the program");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("--token") && !text.contains("hunter2"), "{text}");
    }
}
