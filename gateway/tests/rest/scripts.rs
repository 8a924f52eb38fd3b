//! Scripts with the flag that only Upstash knows.

use crate::support::rest;

const SCRIPT: &str = r"#!lua flags=allow-key-locking\nreturn redis.call('INCR', KEYS[1])";
/// SHA-1 of the script as its client wrote it, flag included.
const SHA: &str = "5c6e36d70d4ec2144321a8f9c663f6c612440510";

#[tokio::test]
async fn a_key_locking_script_runs_and_is_found_by_the_sha_of_its_own_text() {
    let rest = rest().await;
    let by_sha = format!(r#"["EVALSHA","{SHA}",1,"n"]"#);
    assert!(rest.command(&by_sha).await.starts_with(r#"{"error":"NOSCRIPT "#));
    assert_eq!(rest.command(&format!(r#"["EVAL","{SCRIPT}",1,"n"]"#)).await, r#"{"result":1}"#);
    assert_eq!(rest.command(&by_sha).await, r#"{"result":2}"#);
    assert_eq!(rest.command(&by_sha.replace(SHA, &SHA.to_uppercase())).await, r#"{"result":3}"#);
    let exists = format!(r#"["SCRIPT","EXISTS","{SHA}","{}"]"#, "0".repeat(40));
    assert_eq!(rest.command(&exists).await, r#"{"result":[1,0]}"#);
    let batch = format!(r#"[["EVALSHA","{SHA}",1,"n"],["EVALSHA","{SHA}",1,"n"]]"#);
    for (path, expected) in
        [("/pipeline", r#"[{"result":4},{"result":5}]"#), ("/multi-exec", r#"[{"result":6},{"result":7}]"#)]
    {
        rest.golden(path, &[(&batch, 200, expected)]).await;
    }
}

#[tokio::test]
async fn script_load_answers_the_sha_of_the_clients_text() {
    let rest = rest().await;
    let load = format!(r#"["SCRIPT","LOAD","{SCRIPT}"]"#);
    assert_eq!(rest.command(&load).await, format!(r#"{{"result":"{SHA}"}}"#));
    let plain = rest.command(r#"["script","load","return 1"]"#).await;
    assert_eq!(plain, r#"{"result":"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"}"#);
    assert_eq!(rest.command(&format!(r#"["EVALSHA","{SHA}",1,"n"]"#)).await, r#"{"result":1}"#);
}

#[tokio::test]
async fn other_flags_of_a_script_still_hold() {
    let rest = rest().await;
    let body = r##"["EVAL","#!lua flags=no-writes,allow-key-locking\nreturn redis.call('INCR', KEYS[1])",1,"n"]"##;
    let answer = rest.command(body).await;
    assert!(answer.contains("Write commands are not allowed from read-only scripts"), "{answer}");
}
