//! A failover behind the gateway. The address of Redis then leads to another server, as a DNS name, a load balancer or the
//! slots of a cluster do. Nobody starts the gateway again.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use edgefront_gateway::{
    Gateway, Options, RegionOptions,
    server::{Server, ServerCluster, ServerOptions},
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::{
    frozen::Frozen,
    support::{Rest, TOKEN},
    unavailable::tell,
};

const REDIS_TIMEOUT: Duration = Duration::from_secs(2);
/// A client leaves long before the gateway's own limit, as a Worker with `REDIS_TIMEOUT_MS` does.
const CLIENT_PATIENCE: Duration = Duration::from_millis(300);
/// Fails a test instead of hanging it.
const PATIENCE: Duration = Duration::from_mins(1);
const WRITE: &str = r#"["SET","k","v"]"#;

fn server() -> Server {
    Server::start(ServerOptions::default()).expect("a server")
}

/// An address that leads to a server. New connections go to the server that it leads to at that time.
struct Address {
    url: String,
    port: Arc<AtomicU16>,
}

impl Address {
    async fn of(server: &Server) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("an address"));
        let port = Arc::new(AtomicU16::new(server.port()));
        let current = port.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let server = (Ipv4Addr::LOCALHOST, current.load(Ordering::SeqCst));
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await.expect("the server");
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { url, port }
    }

    fn move_to(&self, server: &Server) {
        self.port.store(server.port(), Ordering::SeqCst);
    }
}

async fn at(url: &str) -> Rest {
    let options = Options { redis_timeout: REDIS_TIMEOUT, ..Options::new(url, TOKEN) };
    Rest { gateway: Gateway::start(options).await.expect("a gateway") }
}

/// Sends a command until it is answered with `expected`, by clients that leave early.
async fn until_answered(rest: &Rest, path: &str, command: &str, expected: &str) {
    until_answered_with(&[], rest, path, (command, expected)).await;
}

/// The same, with headers.
async fn until_answered_with(headers: &[&str], rest: &Rest, path: &str, (command, expected): (&str, &str)) {
    let answered = async {
        loop {
            let answer = timeout(CLIENT_PATIENCE, rest.send("POST", path, headers, command.as_bytes())).await;
            if answer.is_ok_and(|answer| answer.text() == expected) {
                return;
            }
        }
    };
    timeout(PATIENCE, answered).await.expect("the gateway finds the server that answers");
}

#[tokio::test]
async fn a_silent_server_is_left_although_no_client_waits_for_the_limit() {
    let (old, new) = (server(), server());
    let address = Address::of(&old).await;
    let rest = at(&address.url).await;
    let _frozen = Frozen::freeze(&rest).await;
    address.move_to(&new);
    until_answered(&rest, "/", WRITE, r#"{"result":"OK"}"#).await;
}

#[tokio::test]
async fn a_server_that_has_become_a_replica_is_left_at_its_first_refusal() {
    let (old, new) = (server(), server());
    for (path, command, expected) in [
        ("/", WRITE.to_owned(), r#"{"result":"OK"}"#),
        ("/", r#"["EVAL","return redis.call('INCR', KEYS[1])","1","n"]"#.to_owned(), r#"{"result":1}"#),
        ("/pipeline", format!("[{WRITE}]"), r#"[{"result":"OK"}]"#),
        ("/multi-exec", format!("[{WRITE}]"), r#"[{"result":"OK"}]"#),
    ] {
        assert_eq!(tell(&old, &["REPLICAOF NO ONE"]), "+OK");
        let address = Address::of(&old).await;
        let rest = at(&address.url).await;
        assert_eq!(rest.command(r#"["PING"]"#).await, r#"{"result":"PONG"}"#);
        assert_eq!(tell(&old, &[&format!("REPLICAOF 127.0.0.1 {}", new.port())]), "+OK");
        address.move_to(&new);
        let refused = rest.send("POST", path, &[], command.as_bytes()).await;
        assert!(refused.text().contains(r#""error":"READONLY "#), "{}", refused.text());
        let answer = rest.send("POST", path, &[], command.as_bytes()).await;
        assert_eq!((answer.status, answer.text()), (200, expected), "{path}");
    }
}

/// Freezes the owner of a slot, gives the slot to another server, and sends a command for it.
async fn take_over(path: &str, command: &str, expected: &str) {
    let cluster = tokio::task::spawn_blocking(|| ServerCluster::start(3)).await.expect("no panic").expect("a cluster");
    // Longer than the test, so that only the new owner of the slot can answer.
    let options = Options { redis_timeout: PATIENCE * 2, ..Options::new(cluster.url(), TOKEN) };
    let rest = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    let ports = cluster.ports();
    let say = |server: usize, command: &str| cluster.say(ports[server], command).expect("an answer");
    for server in 0..3 {
        // The others must not declare it failed: then none of them would answer.
        say(server, "CONFIG SET cluster-node-timeout 3600000");
    }
    until_answered(&rest, path, command, expected).await;
    // `foo` is on the third server.
    let _frozen = Frozen::of_info(&say(2, "INFO server"));
    let taker = say(0, "CLUSTER MYID");
    let taker = taker.lines().nth(1).expect("an id");
    for server in [1, 0] {
        assert!(say(server, &format!("CLUSTER SETSLOT 12182 NODE {taker}")).starts_with("+OK"));
    }
    // The others believe the newest claim.
    assert!(say(0, "CLUSTER BUMPEPOCH").starts_with("+BUMPED"));
    until_answered(&rest, path, command, expected).await;
}

#[tokio::test]
async fn slots_that_another_server_has_taken_over_are_found_although_no_client_waits_for_the_limit() {
    take_over("/", r#"["SET","foo","v"]"#, r#"{"result":"OK"}"#).await;
    take_over("/multi-exec", r#"[["SET","foo","v"]]"#, r#"[{"result":"OK"}]"#).await;
}

#[tokio::test]
async fn the_primary_answers_clients_that_leave_before_a_silent_replica_answers() {
    let (primary, replica) = (server(), server());
    let region = RegionOptions { lag: Some(Duration::ZERO), ..RegionOptions::new(primary.url()) };
    let options = Options { region: Some(region), redis_timeout: PATIENCE * 2, ..Options::new(replica.url(), TOKEN) };
    let rest = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    let written = rest.send("POST", "/", &[], WRITE.as_bytes()).await;
    let token = format!("upstash-sync-token: {}", written.header("upstash-sync-token").expect("a sync token"));
    let read = (r#"["GET","k"]"#, r#"{"result":"v"}"#);
    until_answered_with(&[&token], &rest, "/", read).await;
    assert_eq!(tell(&replica, &["CLIENT PAUSE 3600000 ALL"]), "+OK");
    until_answered_with(&[&token], &rest, "/", read).await;
    until_answered_with(&[], &rest, "/", read).await;
}

#[tokio::test]
async fn a_replica_that_takes_over_answers_for_the_writes_that_it_has_received() {
    let (mut primary, replica) = (server(), server());
    let region = RegionOptions { lag: Some(Duration::ZERO), ..RegionOptions::new(primary.url()) };
    let options = Options { region: Some(region), ..Options::new(replica.url(), TOKEN) };
    let rest = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    let token = async |command: &str| {
        let answer = rest.send("POST", "/", &[], command.as_bytes()).await;
        format!("upstash-sync-token: {}", answer.header("upstash-sync-token").expect("a sync token"))
    };
    let read = async |token: &str| rest.send("POST", "/", &[token], br#"["GET","k"]"#).await;
    let received = token(WRITE).await;
    assert_eq!(read(&received).await.text(), r#"{"result":"v"}"#);
    rest.gateway.set_lag(Duration::from_hours(1));
    let lost = token(r#"["SET","k","lost"]"#).await;
    primary.stop();
    assert_eq!(tell(&replica, &["REPLICAOF NO ONE"]), "+OK");
    let answer = read(&received).await;
    assert_eq!((answer.status, answer.text()), (200, r#"{"result":"v"}"#), "the configured primary is down");
    let answer = read(&lost).await;
    assert_eq!(answer.status, 503, "an earlier state: {}", answer.text());
}

#[tokio::test]
async fn a_primary_that_has_become_a_replica_is_left_although_nobody_writes() {
    let (old, new, replica) = (server(), server(), server());
    assert_eq!(tell(&new, &["SET k v"]), "+OK");
    let address = Address::of(&old).await;
    let options = Options { region: Some(RegionOptions::new(&address.url)), ..Options::new(replica.url(), TOKEN) };
    let rest = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    // The near server follows nobody, so the primary answers.
    assert_eq!(rest.command(r#"["GET","k"]"#).await, r#"{"result":null}"#);
    assert_eq!(tell(&old, &[&format!("REPLICAOF 127.0.0.1 {}", new.port())]), "+OK");
    address.move_to(&new);
    let refused = rest.send("GET", "/get/k", &[], b"").await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert_eq!(rest.command(r#"["GET","k"]"#).await, r#"{"result":"v"}"#);
}
