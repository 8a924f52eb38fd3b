//! A primary and two replicas, each behind the gateway of its region.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use edgefront_gateway::{
    Gateway, Options, RegionOptions, StartError,
    server::{Server, ServerOptions},
};
use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    support::{Answer, Rest, TOKEN, send},
    unavailable::tell,
};

/// So long that the replication stands still in a test.
const STOPPED: Duration = Duration::from_hours(1);

/// Real servers, and a gateway for each region.
struct Regions {
    home: Rest,
    far: [Rest; 2],
    primary: Server,
    replicas: [Server; 2],
}

fn server() -> Server {
    Server::start(ServerOptions::default()).expect("a server")
}

async fn region(near: &Server, primary: &Server, sync_wait: Duration) -> Rest {
    let region = RegionOptions { lag: Some(Duration::ZERO), sync_wait, ..RegionOptions::new(primary.url()) };
    let options = Options { region: Some(region), ..Options::new(near.url(), TOKEN) };
    Rest { gateway: Gateway::start(options).await.expect("a gateway") }
}

async fn regions(sync_wait: Duration) -> Regions {
    let (primary, replicas) = (server(), [server(), server()]);
    let home = region(&primary, &primary, sync_wait).await;
    let far = [region(&replicas[0], &primary, sync_wait).await, region(&replicas[1], &primary, sync_wait).await];
    Regions { home, far, primary, replicas }
}

async fn post(rest: &Rest, path: &str, token: Option<&str>, body: &str) -> Answer {
    let header = token.map(|token| format!("upstash-sync-token: {token}"));
    let headers: Vec<_> = header.iter().map(String::as_str).collect();
    rest.send("POST", path, &headers, body.as_bytes()).await
}

fn token(answer: &Answer) -> String {
    answer.header("upstash-sync-token").expect("a sync token").to_owned()
}

async fn get(rest: &Rest, token: Option<&str>) -> String {
    post(rest, "/", token, r#"["GET","k"]"#).await.text().to_owned()
}

/// Waits until both replicas show `value` without a token.
async fn replicated(regions: &Regions, value: &str) {
    for far in &regions.far {
        while get(far, None).await != value {
            tokio::task::yield_now().await;
        }
    }
}

const OLD: &str = r#"{"result":"old"}"#;
const NEW: &str = r#"{"result":"new"}"#;

/// Replicas that hold `old`, and the token of `new`, which has not reached them.
async fn behind(regions: &Regions) -> String {
    post(&regions.home, "/", None, r#"["SET","k","old"]"#).await;
    replicated(regions, OLD).await;
    regions.far.iter().for_each(|far| far.gateway.set_lag(STOPPED));
    token(&post(&regions.far[0], "/", None, r#"["SET","k","new"]"#).await)
}

#[tokio::test]
async fn a_read_is_answered_near_and_shows_the_earlier_state_without_a_token() {
    let regions = regions(STOPPED).await;
    behind(&regions).await;
    assert_eq!(get(&regions.home, None).await, NEW);
    for (far, forwarded) in regions.far.iter().zip([1, 0]) {
        assert_eq!(get(far, None).await, OLD);
        let pipeline = post(far, "/pipeline", None, r#"[["GET","k"],["STRLEN","k"],["PING"]]"#).await;
        assert_eq!(pipeline.text(), r#"[{"result":"old"},{"result":3},{"result":"PONG"}]"#);
        assert_eq!(post(far, "/multi-exec", None, r#"[["GET","k"]]"#).await.text(), r#"[{"result":"old"}]"#);
        let script = r#"["EVAL_RO","return redis.call('GET', KEYS[1])","1","k"]"#;
        assert_eq!(post(far, "/", None, script).await.text(), OLD);
        assert_eq!(far.gateway.forwarded(), forwarded, "only the write");
    }
}

#[tokio::test]
async fn writes_scripts_and_mixed_pipelines_run_on_the_primary() {
    let regions = regions(STOPPED).await;
    behind(&regions).await;
    let other = &regions.far[1];
    let script = r#"["EVAL","return redis.call('GET', KEYS[1])","1","k"]"#;
    assert_eq!(post(other, "/", None, script).await.text(), NEW);
    let mixed = post(other, "/pipeline", None, r#"[["GET","k"],["APPEND","k","er"]]"#).await;
    assert_eq!(mixed.text(), r#"[{"result":"new"},{"result":5}]"#);
    let transaction = post(other, "/multi-exec", None, r#"[["GET","k"],["SET","k","last"]]"#).await;
    assert_eq!(transaction.text(), r#"[{"result":"newer"},{"result":"OK"}]"#);
    assert_eq!((other.gateway.forwarded(), get(&regions.home, None).await.as_str()), (3, r#"{"result":"last"}"#));
    assert_eq!(get(other, None).await, OLD);
}

/// Reads with a token. The replication goes on when the gateway has the request.
async fn get_while_it_catches_up(far: &Rest, token: &str) -> String {
    let before = far.gateway.received();
    let catch_up = async {
        while far.gateway.received() == before {
            tokio::task::yield_now().await;
        }
        far.gateway.set_lag(Duration::ZERO);
    };
    tokio::join!(get(far, Some(token)), catch_up).0
}

#[tokio::test]
async fn a_read_with_a_token_waits_for_the_replica_in_every_region() {
    let regions = regions(STOPPED).await;
    let written = behind(&regions).await;
    for (far, forwarded) in regions.far.iter().zip([1, 0]) {
        assert_eq!(get_while_it_catches_up(far, &written).await, NEW);
        assert_eq!(far.gateway.forwarded(), forwarded, "the replica has answered");
    }
}

#[tokio::test]
async fn reads_that_wait_do_not_flood_the_replica() {
    let sync_wait = Duration::from_secs(1);
    let regions = regions(sync_wait).await;
    let written = behind(&regions).await;
    let [far, _] = &regions.far;
    let direct = Gateway::start(Options::new(regions.replicas[0].url(), TOKEN)).await.expect("a gateway");
    let direct = Rest { gateway: direct };
    let polls = async || {
        let statistics = direct.command(r#"["INFO","commandstats"]"#).await;
        let calls = statistics.split("cmdstat_info:calls=").nth(1).and_then(|rest| rest.split(',').next());
        calls.map_or(0, |calls| calls.parse::<u32>().expect("a number"))
    };
    let before = polls().await;
    for answer in join_all((0..10).map(|_| get(far, Some(&written)))).await {
        assert_eq!(answer, NEW, "from the primary");
    }
    let each = (polls().await - before) / 10;
    assert!(each < 70, "{each} looks at the position in {sync_wait:?}");
}

#[tokio::test]
async fn the_token_of_a_read_is_as_new_as_its_answer() {
    let regions = regions(STOPPED).await;
    behind(&regions).await;
    let seen = post(&regions.home, "/", None, r#"["GET","k"]"#).await;
    let other = &regions.far[1];
    assert_eq!(get_while_it_catches_up(other, &token(&seen)).await, seen.text());
    let far = post(other, "/", None, r#"["GET","k"]"#).await;
    assert_eq!(get(&regions.home, Some(&token(&far))).await, NEW);
}

#[tokio::test]
async fn the_primary_answers_if_the_wait_is_too_long_and_no_token_makes_it_longer() {
    let regions = regions(Duration::from_millis(20)).await;
    let written = behind(&regions).await;
    let other = &regions.far[1];
    assert_eq!((get(other, Some(&written)).await.as_str(), other.gateway.forwarded()), (NEW, 1));
    let (stream, _) = written.split_once(':').expect("stream and offset");
    let forged = format!("{stream}:{}", u64::MAX);
    assert_eq!((get(other, Some(&forged)).await.as_str(), other.gateway.forwarded()), (NEW, 2));
    // The position of another primary says nothing about this one.
    let foreign = format!("{}:1", "0".repeat(40));
    assert_eq!((get(other, Some(&foreign)).await.as_str(), other.gateway.forwarded()), (NEW, 3));
    for invalid in ["1", "AAAx:1,BBB:2", "-"] {
        assert_eq!((get(other, Some(invalid)).await.as_str(), other.gateway.forwarded()), (OLD, 3), "{invalid}");
    }
}

#[tokio::test]
async fn requests_to_the_primary_take_the_latency_and_reads_near_do_not() {
    let regions = regions(STOPPED).await;
    let [far, _] = &regions.far;
    let latency = Duration::from_millis(60);
    far.gateway.set_latency(latency);
    let timed = async |body: &str| {
        let start = std::time::Instant::now();
        post(far, "/", None, body).await;
        start.elapsed()
    };
    assert!(timed(r#"["SET","k","v"]"#).await >= latency);
    far.gateway.set_latency(STOPPED);
    timed(r#"["GET","k"]"#).await;
}

#[tokio::test]
async fn without_the_primary_reads_go_on_and_writes_are_503() {
    let mut regions = regions(STOPPED).await;
    behind(&regions).await;
    regions.primary.stop();
    let [far, _] = &regions.far;
    assert_eq!(get(far, None).await, OLD);
    let write = post(far, "/", None, r#"["SET","k","v"]"#).await;
    assert_eq!((write.status, write.header("retry-after")), (503, Some("1")), "{}", write.text());
}

/// Reads of each form near the first replica. All show what the primary has.
async fn read_new(far: &Rest) {
    let script = r#"["EVAL_RO","return redis.call('GET', KEYS[1])","1","k"]"#;
    for (path, body, answer) in [
        ("/", r#"["GET","k"]"#, NEW),
        ("/", script, NEW),
        ("/pipeline", r#"[["GET","k"],["STRLEN","k"]]"#, r#"[{"result":"new"},{"result":3}]"#),
        ("/multi-exec", r#"[["GET","k"]]"#, r#"[{"result":"new"}]"#),
    ] {
        let read = post(far, path, None, body).await;
        assert_eq!((read.text(), read.status), (answer, 200), "{body}");
        assert!(read.header("upstash-sync-token").is_some());
    }
}

#[tokio::test]
async fn the_primary_answers_reads_if_the_replica_is_down_or_lacks_the_data() {
    let mut regions = regions(STOPPED).await;
    post(&regions.home, "/", None, r#"["SET","k","new"]"#).await;
    replicated(&regions, NEW).await;
    let [far, _] = &regions.far;
    let replica = &mut regions.replicas[0];
    replica.stop();
    read_new(far).await;
    // Empty, and nobody's replica.
    replica.start_again().expect("the server again");
    read_new(far).await;
    // Empty, because it cannot reach its primary.
    assert_eq!(tell(replica, &["REPLICAOF 127.0.0.1 1"]), "+OK");
    read_new(far).await;
    assert_eq!(tell(replica, &["CONFIG SET replica-serve-stale-data no"]), "+OK");
    read_new(far).await;
    assert_eq!(tell(replica, &[&format!("REPLICAOF 127.0.0.1 {}", regions.primary.port())]), "+OK");
    // The replica answers again once it has the data.
    let mut forwarded = 0;
    while far.gateway.forwarded() > forwarded {
        forwarded = far.gateway.forwarded();
        read_new(far).await;
    }
}

#[tokio::test]
async fn a_large_write_reaches_the_primary_if_the_replica_is_down() {
    let mut regions = regions(STOPPED).await;
    let [replica, _] = &mut regions.replicas;
    replica.stop();
    let [far, _] = &regions.far;
    let body = format!(r#"["SET","k","{}"]"#, "v".repeat(40 << 10));
    for path in ["/", "/pipeline", "/multi-exec"] {
        let body = if path == "/" { body.clone() } else { format!("[{body}]") };
        let write = post(far, path, None, &body).await;
        assert_eq!(write.status, 200, "{path} {}", write.text());
    }
    let key = format!(r#"["SET","{}","v"]"#, "k".repeat(40 << 10));
    assert!(post(far, "/", None, &key).await.text().contains("max key size exceeded"));
}

#[tokio::test]
async fn a_replica_that_does_not_answer_delays_reads_for_a_bounded_time() {
    let regions = regions(STOPPED).await;
    post(&regions.home, "/", None, r#"["SET","k","new"]"#).await;
    replicated(&regions, NEW).await;
    let [far, _] = &regions.far;
    // All clients of the replica wait.
    assert_eq!(tell(&regions.replicas[0], &["CLIENT PAUSE 100000 ALL"]), "+OK");
    read_new(far).await;
}

#[tokio::test]
async fn a_primary_that_has_become_a_replica_answers_nothing() {
    let regions = regions(Duration::from_millis(20)).await;
    let written = behind(&regions).await;
    assert_eq!(tell(&regions.primary, &["REPLICAOF 127.0.0.1 1"]), "+OK");
    for rest in [&regions.home, &regions.far[1]] {
        for (token, body) in [(None, r#"["SET","k","v"]"#), (Some(written.as_str()), r#"["GET","k"]"#)] {
            let answer = post(rest, "/", token, body).await;
            assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{}", answer.text());
        }
    }
    assert_eq!(get(&regions.far[0], None).await, OLD, "a replica still answers those who wait for nothing");
}

/// A link to `server`, and a switch. With it, the link breaks when the position in the replication stream is asked for.
async fn link_to(server: &Server) -> (String, Arc<AtomicBool>) {
    let address = server.url().strip_prefix("redis://").expect("an address").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    let breaks = Arc::new(AtomicBool::new(false));
    let switch = breaks.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(&address).await.expect("the server");
            let switch = switch.clone();
            tokio::spawn(async move {
                let ((mut asked, mut answered), (mut answers, mut sent)) = (near.into_split(), far.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut answers, &mut answered).await });
                let mut bytes = [0; 4_096];
                while let Ok(length @ 1..) = asked.read(&mut bytes).await {
                    let read = &bytes[..length];
                    if switch.load(Ordering::SeqCst) && read.windows(11).any(|word| word == b"replication") {
                        return;
                    }
                    sent.write_all(read).await.expect("the server");
                }
            });
        }
    });
    (url, breaks)
}

#[tokio::test]
async fn a_write_whose_position_is_unknown_is_no_success() {
    let (primary, replica) = (server(), server());
    let (url, breaks) = link_to(&primary).await;
    let options = Options { region: Some(RegionOptions::new(&url)), ..Options::new(replica.url(), TOKEN) };
    let far = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    assert_eq!(post(&far, "/", None, r#"["SET","k","old"]"#).await.status, 200);
    breaks.store(true, Ordering::SeqCst);
    let answer = post(&far, "/", None, r#"["SET","k","new"]"#).await;
    assert_eq!((answer.status, answer.header("upstash-sync-token")), (502, None), "{}", answer.text());
    breaks.store(false, Ordering::SeqCst);
    let token = token(&post(&far, "/", None, r#"["INCR","n"]"#).await);
    assert_eq!(get(&far, Some(&token)).await, NEW, "it was executed");
}

#[tokio::test]
async fn a_gateway_that_shuts_down_leaves_its_replica_with_the_primary() {
    let Regions { home, far: [far, _], replicas, primary } = regions(STOPPED).await;
    far.gateway.set_lag(STOPPED);
    post(&home, "/", None, r#"["SET","k","new"]"#).await;
    far.gateway.shutdown(Duration::from_secs(5)).await;
    let direct = Gateway::start(Options::new(replicas[0].url(), TOKEN)).await.expect("a gateway");
    let authorization = format!("Authorization: Bearer {TOKEN}");
    let read = async || send(&direct.url(), "GET", "/get/k", &[&authorization], b"").await.expect("an answer");
    while read().await.text() != NEW {
        tokio::task::yield_now().await;
    }
    drop(primary);
}

#[tokio::test]
async fn the_primary_has_no_latency_and_no_lag() {
    let primary = server();
    let second = Duration::from_secs(1);
    for (latency, lag) in [(second, None), (Duration::ZERO, Some(second))] {
        // Another spelling of the same server.
        let region = RegionOptions { latency, lag, ..RegionOptions::new(format!("{}/0", primary.url())) };
        let options = Options { region: Some(region), ..Options::new(primary.url(), TOKEN) };
        assert!(matches!(Gateway::start(options).await, Err(StartError::NoReplica)));
    }
}

#[tokio::test]
async fn a_region_without_its_primary_does_not_start() {
    let (near, gone) = (server(), server());
    let primary = gone.url();
    drop(gone);
    let options = Options { region: Some(RegionOptions::new(primary)), ..Options::new(near.url(), TOKEN) };
    let Err(StartError::Region(cause)) = Gateway::start(options).await else { panic!("it starts") };
    assert!(!cause.is_empty());
    let cluster = RegionOptions::new("redis://127.0.0.1:1?cluster");
    let options = Options { region: Some(cluster), ..Options::new(near.url(), TOKEN) };
    assert!(matches!(Gateway::start(options).await, Err(StartError::Region(_))));
}
