//! A server that is frozen (SIGSTOP): the system accepts connections and bytes for it, but nothing answers.

use std::{process::Command, time::Duration};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerCluster, ServerOptions},
};
use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{Rest, TOKEN};

/// The gateway's limit. Long enough for a busy machine before the freeze.
const REDIS_TIMEOUT: Duration = Duration::from_secs(2);
/// Fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_mins(1);

const UNREACHABLE: &str = r#"{"error":"ERR Redis is unreachable, nothing was executed"}"#;
const TIMED_OUT: &str = r#"{"error":"ERR Redis did not reply in time, the command may have been executed"}"#;

async fn own_server() -> (Server, Rest) {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let options = Options { redis_timeout: REDIS_TIMEOUT, ..Options::new(server.url(), TOKEN) };
    let gateway = Gateway::start(options).await.expect("a gateway");
    (server, Rest { gateway })
}

/// A frozen process. It continues on drop.
pub struct Frozen(String);

impl Frozen {
    pub async fn freeze(rest: &Rest) -> Self {
        Self::of_info(&rest.command(r#"["INFO","server"]"#).await)
    }

    /// Freezes the server that answered INFO.
    pub fn of_info(info: &str) -> Self {
        let digits =
            info.split("process_id:").nth(1).and_then(|rest| rest.split(|next: char| !next.is_ascii_digit()).next());
        let pid = digits.expect("a process id");
        signal("-STOP", pid);
        Self(pid.to_owned())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

fn signal(name: &str, pid: &str) {
    assert!(Command::new("kill").args([name, pid]).status().expect("kill").success());
}

#[tokio::test]
async fn a_frozen_server_is_answered_in_time_and_the_answer_is_true() {
    let (_server, rest) = own_server().await;
    let frozen = Frozen::freeze(&rest).await;
    let sent = timeout(PATIENCE, rest.send("POST", "/", &[], br#"["INCR","sent"]"#)).await.expect("an answer");
    assert_eq!((sent.status, sent.text()), (502, TIMED_OUT));
    for path in ["/", "/"] {
        let unsent = rest.send("POST", path, &[], br#"["INCR","unsent"]"#);
        let unsent = timeout(PATIENCE, unsent).await.expect("an answer");
        assert_eq!((unsent.status, unsent.text()), (503, UNREACHABLE));
        assert_eq!(unsent.header("retry-after"), Some("1"));
    }
    drop(frozen);
    // The server reads what it was sent before it was frozen, perhaps after the first commands of the new connection.
    let executed = async { while rest.command(r#"["GET","sent"]"#).await != r#"{"result":"1"}"# {} };
    timeout(PATIENCE, executed).await.expect("the command that may have been executed is executed");
    assert_eq!(rest.command(r#"["GET","unsent"]"#).await, r#"{"result":null}"#);
}

#[tokio::test]
async fn requests_to_a_frozen_server_do_not_wait_for_each_other() {
    let (_server, rest) = own_server().await;
    let _frozen = Frozen::freeze(&rest).await;
    for _ in 0..2 {
        let requests = (0..40).map(|_| rest.send("POST", "/multi-exec", &[], br#"[["INCR","n"]]"#));
        // One after the other would take 80 s.
        let answers = timeout(PATIENCE, join_all(requests)).await.expect("answers");
        for answer in answers {
            assert!([(502, TIMED_OUT), (503, UNREACHABLE)].contains(&(answer.status, answer.text())), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_continues_in_time_answers() {
    let (_server, rest) = own_server().await;
    let frozen = Frozen::freeze(&rest).await;
    let (answer, ()) = tokio::join!(rest.send("GET", "/incr/n", &[], b""), async { drop(frozen) });
    assert_eq!(answer.text(), r#"{"result":1}"#);
}

#[tokio::test]
async fn a_frozen_server_of_a_cluster_leaves_the_others_alone() {
    let cluster = tokio::task::spawn_blocking(|| ServerCluster::start(3)).await.expect("no panic").expect("a cluster");
    let options = Options { redis_timeout: REDIS_TIMEOUT, ..Options::new(cluster.url(), TOKEN) };
    let rest = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    for port in cluster.ports() {
        // The others must not declare it failed: then none of them would answer.
        cluster.say(port, "CONFIG SET cluster-node-timeout 3600000").expect("an answer");
    }
    // `{0}` is on the third server, `{2}` on the second.
    let increment = |tag: &str| format!(r#"["INCR","n:{{{tag}}}"]"#);
    rest.golden("/", &[(&increment("0"), 200, r#"{"result":1}"#), (&increment("2"), 200, r#"{"result":1}"#)]).await;
    let _frozen = Frozen::of_info(&cluster.say(cluster.ports()[2], "INFO server").expect("an answer"));
    for (status, error) in [(502, TIMED_OUT), (503, UNREACHABLE)] {
        let steps = [(increment("0"), status, error), (increment("2"), 200, "")];
        for (body, status, text) in steps {
            let answer = timeout(PATIENCE, rest.send("POST", "/", &[], body.as_bytes())).await.expect("an answer");
            assert_eq!(answer.status, status, "{body} {}", answer.text());
            assert!(answer.text().contains(text), "{body} {}", answer.text());
        }
    }
}

/// A frozen server stands for one whose packets are lost: a connection to it neither opens nor fails.
#[tokio::test]
async fn the_slots_of_a_lost_server_go_to_its_replica() {
    let mut cluster =
        tokio::task::spawn_blocking(|| ServerCluster::start(3)).await.expect("no panic").expect("a cluster");
    // `{3}` is on the first server, which is also the configured one.
    let lost = cluster.ports()[0];
    cluster.add_replica(lost).expect("a replica");
    let options = Options { redis_timeout: REDIS_TIMEOUT, ..Options::new(cluster.url(), TOKEN) };
    let rest = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    let write = br#"["SET","k:{3}","v"]"#;
    assert_eq!(rest.send("POST", "/", &[], write).await.status, 200);
    for port in cluster.ports() {
        cluster.say(port, "CONFIG SET cluster-node-timeout 1000").expect("an answer");
    }
    let _frozen = Frozen::of_info(&cluster.say(lost, "INFO server").expect("an answer"));
    let taken_over = async { while rest.send("POST", "/", &[], write).await.status != 200 {} };
    timeout(PATIENCE, taken_over).await.expect("the replica is found");
    assert_eq!(rest.command(r#"["GET","k:{3}"]"#).await, r#"{"result":"v"}"#);
}

#[tokio::test]
async fn a_stream_opens_although_a_server_of_the_cluster_is_frozen() {
    let cluster = tokio::task::spawn_blocking(|| ServerCluster::start(3)).await.expect("no panic").expect("a cluster");
    let options = Options { redis_timeout: REDIS_TIMEOUT, ..Options::new(cluster.url(), TOKEN) };
    let gateway = Gateway::start(options).await.expect("a gateway");
    for port in cluster.ports() {
        cluster.say(port, "CONFIG SET cluster-node-timeout 3600000").expect("an answer");
    }
    let _frozen = Frozen::of_info(&cluster.say(cluster.ports()[0], "INFO server").expect("an answer"));
    let authorization = format!("Authorization: Bearer {TOKEN}");
    let head =
        format!("GET /subscribe/c HTTP/1.1\r\nHost: gateway\r\nAccept: text/event-stream\r\n{authorization}\r\n\r\n");
    let mut stream = TcpStream::connect(gateway.url().replace("http://", "")).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("room for the head");
    let mut answer = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("an answer").expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
}
