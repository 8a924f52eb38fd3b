//! In front of a cluster of three real servers. `foo` is in slot 12182, on the third; `{0}` too, `{2}` on the second,
//! `{3}` on the first.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use edgefront_gateway::{Gateway, Options, server::ServerCluster};
use tokio::net::TcpListener;

use crate::support::{Rest, TOKEN};

async fn rest() -> (ServerCluster, Rest) {
    let cluster = tokio::task::spawn_blocking(|| ServerCluster::start(3)).await.expect("no panic").expect("a cluster");
    let gateway = Gateway::start(Options::new(cluster.url(), TOKEN)).await.expect("a gateway");
    (cluster, Rest { gateway })
}

/// A server's answer to what is said past the gateway, without the line breaks around it.
fn say(cluster: &ServerCluster, server: usize, command: &str) -> String {
    let answer = cluster.say(cluster.ports()[server], command).expect("an answer");
    answer.trim_end_matches("+OK\r\n").trim().to_owned()
}

fn id(cluster: &ServerCluster, server: usize) -> String {
    say(cluster, server, "CLUSTER MYID").lines().nth(1).expect("an id").to_owned()
}

#[tokio::test]
async fn a_cluster_answers_as_one_server() {
    let (cluster, rest) = rest().await;
    let sets: Vec<_> = (0..90).map(|number| format!(r#"["SET","key-{number}","{number}"]"#)).collect();
    let gets: Vec<_> = (0..90).rev().map(|number| format!(r#"["GET","key-{number}"]"#)).collect();
    let results: Vec<_> = (0..90).rev().map(|number| format!(r#"{{"result":"{number}"}}"#)).collect();
    rest.send("POST", "/pipeline", &[], format!("[{}]", sets.join(",")).as_bytes()).await;
    let answer = rest.send("POST", "/pipeline", &[], format!("[{}]", gets.join(",")).as_bytes()).await;
    assert_eq!(answer.text(), format!("[{}]", results.join(",")), "each in its place");

    let held: Vec<usize> = (0..3)
        .map(|server| say(&cluster, server, "DBSIZE").trim_start_matches(':').parse().expect("a number"))
        .collect();
    assert!(held.iter().all(|count| *count > 10), "each server has some: {held:?}");
    assert_eq!(rest.command(r#"["DBSIZE"]"#).await, r#"{"result":90}"#);
    assert_eq!(rest.command(r#"["KEYS","key-8?"]"#).await.matches("key-8").count(), 10);
    rest.golden(
        "/",
        &[
            (r#"["MGET","{key}a","{key}b"]"#, 200, r#"{"result":[null,null]}"#),
            (r#"["FLUSHALL"]"#, 200, r#"{"result":"OK"}"#),
            (r#"["DBSIZE"]"#, 200, r#"{"result":0}"#),
        ],
    )
    .await;
    assert!(rest.command(r#"["MGET","a","b"]"#).await.contains("CROSSSLOT"));
    assert!(rest.command(r#"["SCAN","0"]"#).await.contains("not available"), "a cursor is one server's");
}

#[tokio::test]
async fn a_transaction_and_a_script_have_one_slot_each() {
    let (_cluster, rest) = rest().await;
    rest.golden("/multi-exec", &[
        (r#"[["SET","a:{0}","1"],["INCR","a:{0}"]]"#, 200, r#"[{"result":"OK"},{"result":2}]"#),
        (r#"[["SET","a:{2}","1"],["NO"],["PING"]]"#, 400, r#"{"error":"ERR Command is not available: 'NO'. See https://upstash.com/docs/redis/overall/rediscompatibility for details"}"#),
        (r#"[["SET","a:{2}","1"],["SET","a:{3}","1"]]"#, 400, r#"{"error":"CROSSSLOT Keys in request don't hash to the same slot"}"#),
    ])
    .await;
    assert_eq!(rest.command(r#"["EXISTS","a:{2}"]"#).await, r#"{"result":0}"#, "nothing of it was done");
    let loaded = rest.command(r#"["SCRIPT","LOAD","return KEYS[1]"]"#).await;
    let sha = loaded.split('"').nth(3).expect("a hash").to_owned();
    for tag in 0..4 {
        let call = format!(r#"["EVALSHA","{sha}","1","a:{{{tag}}}"]"#);
        assert_eq!(rest.command(&call).await, format!(r#"{{"result":"a:{{{tag}}}"}}"#), "it is on every server");
    }
    let library =
        r##"["FUNCTION","LOAD","#!lua name=l\nredis.register_function('f', function(keys) return keys[1] end)"]"##;
    assert_eq!(rest.command(library).await, r#"{"result":"l"}"#);
    for tag in 0..4 {
        let call = format!(r#"["FCALL","f","1","a:{{{tag}}}"]"#);
        assert_eq!(rest.command(&call).await, format!(r#"{{"result":"a:{{{tag}}}"}}"#), "it is on every server");
    }
    assert_eq!(rest.command(r#"["FUNCTION","DELETE","l"]"#).await, r#"{"result":"OK"}"#);
    let exists = format!(r#"["SCRIPT","EXISTS","{sha}","0123456789012345678901234567890123456789"]"#);
    assert_eq!(rest.command(&exists).await, r#"{"result":[1,0]}"#);
}

#[tokio::test]
async fn a_slot_that_moves_is_followed() {
    let (cluster, rest) = rest().await;
    rest.command(r#"["SET","old:{foo}","1"]"#).await;
    let (source, target) = (2, 0);

    // On its way: what is not there any more, or not yet, is where it goes.
    say(&cluster, target, &format!("CLUSTER SETSLOT 12182 IMPORTING {}", id(&cluster, source)));
    say(&cluster, source, &format!("CLUSTER SETSLOT 12182 MIGRATING {}", id(&cluster, target)));
    let batch = r#"[["INCR","new:{foo}"],["GET","old:{foo}"],["INCR","new:{foo}"],["SET","x:{2}","2"]]"#;
    let answer = rest.send("POST", "/pipeline", &[], batch.as_bytes()).await;
    assert_eq!(answer.text(), r#"[{"result":1},{"result":"1"},{"result":2},{"result":"OK"}]"#, "each once, in order");
    assert_eq!(
        say(&cluster, source, "EXISTS new:{foo}").lines().next().map(|line| line.starts_with("-ASK")),
        Some(true)
    );

    // There.
    let migrate = format!(r"MIGRATE 127.0.0.1 {} old:{{foo}} 0 1000", cluster.ports()[target]);
    say(&cluster, source, &migrate);
    for server in [target, source, 1] {
        say(&cluster, server, &format!("CLUSTER SETSLOT 12182 NODE {}", id(&cluster, target)));
    }
    assert!(say(&cluster, source, "GET old:{foo}").starts_with("-MOVED"));
    let batch = r#"[["INCR","new:{foo}"],["INCR","old:{foo}"]]"#;
    let answer = rest.send("POST", "/pipeline", &[], batch.as_bytes()).await;
    assert_eq!(answer.text(), r#"[{"result":3},{"result":2}]"#);
    let answer = rest.send("POST", "/multi-exec", &[], batch.as_bytes()).await;
    assert_eq!(answer.text(), r#"[{"result":4},{"result":3}]"#);

    // The slots that the source keeps are two ranges. A new gateway asks it once.
    assert_eq!(rest.command(r#"["SET","a","1"]"#).await, r#"{"result":"OK"}"#);
    assert_eq!(say(&cluster, source, "EXISTS a"), ":1");
    let gateway = Gateway::start(Options::new(cluster.url(), TOKEN)).await.expect("a gateway");
    assert_eq!(Rest { gateway }.command(r#"["KEYS","a"]"#).await, r#"{"result":["a"]}"#);
}

#[tokio::test]
async fn commands_for_a_server_without_slots_keep_their_order_and_share_a_connection() {
    let (mut cluster, rest) = rest().await;
    let source = 2;
    let known = cluster.ports()[source];
    let port = cluster.add_server(known).expect("a server");
    let target = 3;
    // Fails until the servers know each other.
    let importing = format!("CLUSTER SETSLOT 12182 IMPORTING {}", id(&cluster, source));
    cluster.until(port, &importing, "+OK\r\n+OK").expect("it imports");
    let migrating = format!("CLUSTER SETSLOT 12182 MIGRATING {}", id(&cluster, target));
    cluster.until(known, &migrating, "+OK\r\n+OK").expect("it migrates");
    let connections = || {
        let info = say(&cluster, target, "INFO stats");
        let count = info.split("total_connections_received:").nth(1).and_then(|rest| rest.lines().next());
        count.and_then(|count| count.parse::<u32>().ok()).expect("a count")
    };
    let before = connections();

    let pushes: Vec<_> = (0..50).map(|number| format!(r#"["RPUSH","new:{{foo}}","{number}"]"#)).collect();
    let batch = format!("[{}]", pushes.join(","));
    let lengths: Vec<_> = (1..=50).map(|length| format!(r#"{{"result":{length}}}"#)).collect();
    let answer = rest.send("POST", "/pipeline", &[], batch.as_bytes()).await;
    assert_eq!(answer.text(), format!("[{}]", lengths.join(",")));
    let transaction = r#"[["RPUSH","new:{foo}","50"],["LLEN","new:{foo}"]]"#;
    let answer = rest.send("POST", "/multi-exec", &[], transaction.as_bytes()).await;
    assert_eq!(answer.text(), r#"[{"result":51},{"result":51}]"#);
    assert_eq!(connections(), before + 2, "the gateway's and that of the count");
}

#[tokio::test]
async fn a_script_does_not_choose_the_server_and_runs_once() {
    let (cluster, rest) = rest().await;
    let stranger = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let stranger_port = stranger.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicBool::new(false));
    let is_asked = asked.clone();
    tokio::spawn(async move {
        while stranger.accept().await.is_ok() {
            is_asked.store(true, Ordering::SeqCst);
        }
    });
    let mut runs = 0;
    for error in [
        format!("MOVED 12182 127.0.0.1:{stranger_port}"),
        format!("ASK 12182 127.0.0.1:{stranger_port}"),
        format!("MOVED 0 127.0.0.1:{}", cluster.ports()[0]),
        "TRYAGAIN of a script".to_owned(),
        "CLUSTERDOWN of a script".to_owned(),
    ] {
        let script =
            format!(r#"["EVAL","redis.call('INCR', KEYS[1]) return redis.error_reply('{error}')","1","n:{{foo}}"]"#);
        let expected = format!(r#"{{"error":"{error}"}}"#);
        assert_eq!(rest.command(&script).await, expected);
        let pipeline = rest.send("POST", "/pipeline", &[], format!("[{script}]").as_bytes()).await;
        assert_eq!(pipeline.text(), format!("[{expected}]"));
        let transaction = rest.send("POST", "/multi-exec", &[], format!("[{script}]").as_bytes()).await;
        assert_eq!(transaction.text(), format!("[{expected}]"));
        runs += 3;
        assert_eq!(rest.command(r#"["GET","n:{foo}"]"#).await, format!(r#"{{"result":"{runs}"}}"#), "{error}");
    }
    let without_key = format!(r#"["EVAL","return redis.error_reply('MOVED 0 127.0.0.1:{stranger_port}')","0"]"#);
    assert!(rest.command(&without_key).await.contains("MOVED"));
    assert!(!asked.load(Ordering::SeqCst), "the gateway has connected to a stranger");
}

#[tokio::test]
async fn a_server_that_is_gone_takes_its_slots_along_and_no_others() {
    let (mut cluster, rest) = rest().await;
    cluster.stop(2);
    assert_eq!(rest.send("POST", "/", &[], br#"["GET","foo"]"#).await.status, 503);
    assert_eq!(rest.command(r#"["SET","x:{2}","1"]"#).await, r#"{"result":"OK"}"#);
    let mixed = rest.send("POST", "/pipeline", &[], br#"[["INCR","x:{2}"],["GET","foo"]]"#).await;
    assert_eq!(mixed.status, 502, "a part may have been executed, and was");
    assert_eq!(rest.command(r#"["GET","x:{2}"]"#).await, r#"{"result":"2"}"#);
}

#[tokio::test]
async fn a_cluster_has_one_database_and_must_be_one() {
    let start =
        async |url: String| Gateway::start(Options::new(url, TOKEN)).await.err().expect("no gateway").to_string();
    assert!(start("redis://127.0.0.1:1/3?cluster".to_owned()).await.contains("database 0 only"));
    let single = crate::support::fresh_database().rsplit_once('/').expect("a URL").0.to_owned() + "?cluster";
    assert!(start(single).await.contains("no cluster"));
}
