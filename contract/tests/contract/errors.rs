//! Origins that the command cannot examine. Each error names the cause and the remedy, and the exit status is 1.

use std::net::{Ipv4Addr, TcpListener};

use super::support::{Fault, KEY, Origin, contract};

fn fails(arguments: &[&str], key: &str, expected: &[&str]) {
    let run = contract(arguments, key);
    assert_eq!((run.code, run.output.as_str()), (Some(1), ""), "{arguments:?}: {}", run.errors);
    for part in expected {
        assert!(run.errors.contains(part), "{part}: {}", run.errors);
    }
}

#[test]
fn an_unreachable_origin_is_named() {
    // Bound, so that no other process gets the port, and closed before the command connects.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    fails(&[&url], KEY, &[&format!("{url} does not answer"), "check the address"]);
}

#[test]
fn a_wrong_key_ends_the_run() {
    let origin = Origin::start(Fault::None);
    fails(&[&origin.url], "another key of the origin", &["answers 403", "check the key"]);
    fails(&[&origin.url], "short", &["the key is not valid", "at least 16"]);
}

#[test]
fn the_key_may_come_from_a_file() {
    let origin = Origin::start(Fault::None);
    let file = std::env::temp_dir().join(format!("edgefront-contract-{}", std::process::id()));
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let run = contract(&[&origin.url, "--key-file", file.to_str().unwrap()], "");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(run.code, Some(0), "{}", run.errors);
    fails(&[&origin.url], "", &["there is no key", "--key-file"]);
    fails(&[&origin.url, "--key-file", file.to_str().unwrap()], "", &["edgefront-contract-"]);
}

#[test]
fn edgefront_itself_is_not_examined() {
    let origin = Origin::start(Fault::IsEdgefront);
    fails(&[&origin.url], KEY, &["is edgefront itself", "ORIGIN_URL"]);
}

#[test]
fn a_wrong_command_line_is_explained() {
    for (arguments, expected) in [
        (&["shop.example"][..], "http://127.0.0.1:8000"),
        (&["http://127.0.0.1:1", "--login", "login"], "one slash"),
        (&["http://127.0.0.1:1", "--login", "/login"], "--login-form"),
        (&["http://127.0.0.1:1", "--user", "a b"], "visible ASCII"),
        (&["http://127.0.0.1:1", "--key", KEY], "unexpected argument"),
    ] {
        fails(arguments, KEY, &[expected]);
    }
}

#[test]
fn no_report_shows_a_secret() {
    let origin = Origin::start(Fault::KeyPrefix);
    let run = origin.check(&[]);
    assert!(!run.output.contains(KEY) && !run.output.contains("secret-password"), "{}", run.output);
}
