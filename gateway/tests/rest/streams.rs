//! SUBSCRIBE, PSUBSCRIBE and MONITOR as server-sent events.

use std::time::Duration;

use edgefront_gateway::{
    Gateway, Options, StreamLimits,
    server::{Server, ServerCluster, ServerOptions},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use crate::{
    frozen::Frozen,
    support::{READ_ONLY_TOKEN, Rest, TOKEN, fresh_database, program, rest, start},
};

/// Fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_mins(1);
const ACCEPT: &str = "Accept: text/event-stream";

/// An open stream.
struct Stream {
    reader: BufReader<TcpStream>,
    head: String,
}

impl Stream {
    async fn open(url: &str, target: &str) -> Self {
        let mut stream = TcpStream::connect(url.replace("http://", "")).await.expect("a connection");
        // The answer to HTTP/1.0 has no chunks, so it can be read by lines.
        let request = format!(
            "POST {target} HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n{ACCEPT}\r\nContent-Length: 2\r\n\r\n[]"
        );
        stream.write_all(request.as_bytes()).await.expect("room");
        let mut stream = Self { reader: BufReader::new(stream), head: String::new() };
        while let Some(line) = stream.line().await.filter(|line| !line.is_empty()) {
            stream.head += &(line.to_ascii_lowercase() + "\n");
        }
        stream
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = timeout(PATIENCE, self.reader.read_until(b'\n', &mut line)).await.expect("a line in time");
        // A reset is an end, too.
        let text = String::from_utf8(line).expect("text");
        (read.unwrap_or(0) > 0).then(|| text.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The lines of the next event, without comments. `None` at the end of the stream.
    async fn event(&mut self) -> Option<String> {
        let mut lines = Vec::new();
        loop {
            match self.line().await?.as_str() {
                "" if lines.is_empty() => {}
                "" => return Some(lines.join("\n")),
                line if line.starts_with(':') => {}
                line => lines.push(line.to_owned()),
            }
        }
    }

    async fn expect(&mut self, events: &[&str]) {
        for expected in events {
            assert_eq!(self.event().await.as_deref(), Some(*expected));
        }
    }

    /// Reads to the end and returns the last event.
    async fn last_event(mut self) -> Option<String> {
        let mut last = None;
        while let Some(event) = self.event().await {
            last = Some(event);
        }
        last
    }
}

async fn gateway(url: String, streams: StreamLimits) -> Rest {
    let options = Options { streams, ..Options::new(url, TOKEN) };
    Rest { gateway: Gateway::start(options).await.expect("a gateway") }
}

impl Rest {
    async fn stream(&self, target: &str) -> Stream {
        Stream::open(&self.gateway.url(), target).await
    }

    /// Waits until a channel has so many subscribers. Redis knows one for each connection that is open to it.
    async fn subscribers(&self, channel: &str, count: usize) {
        let body = format!(r#"["PUBSUB","NUMSUB","{channel}"]"#);
        let expected = format!(r#"{{"result":["{channel}",{count}]}}"#);
        let wait = async { while self.command(&body).await != expected {} };
        timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{channel} never has {count} subscribers"));
    }
}

#[tokio::test]
async fn a_subscriber_gets_the_messages_of_its_channels() {
    let rest = rest().await;
    let mut stream = rest.stream("/subscribe/streams:a/streams:b").await;
    for header in
        ["http/1.0 200 ok", "content-type: text/event-stream", "cache-control: no-cache", "upstash-sync-token: "]
    {
        assert!(stream.head.contains(header), "{}", stream.head);
    }
    stream.expect(&["data: subscribe,streams:a,1", "data: subscribe,streams:b,2"]).await;
    assert_eq!(rest.command(r#"["PUBLISH","streams:a","hello, {\"x\":1}"]"#).await, r#"{"result":1}"#);
    rest.command(r#"["PUBLISH","streams:c","for others"]"#).await;
    rest.command(r#"["PUBLISH","streams:b",""]"#).await;
    stream.expect(&[r#"data: message,streams:a,hello, {"x":1}"#, "data: message,streams:b,"]).await;
}

#[tokio::test]
async fn a_pattern_matches_channels() {
    let rest = rest().await;
    let mut stream = rest.stream("/PSUBSCRIBE/streams:p:*:x").await;
    stream.expect(&["data: psubscribe,streams:p:*:x,1"]).await;
    rest.command(r#"["PUBLISH","streams:p:1:y","no"]"#).await;
    rest.command(r#"["PUBLISH","streams:p:1:x","yes"]"#).await;
    stream.expect(&["data: pmessage,streams:p:*:x,streams:p:1:x,yes"]).await;
}

#[tokio::test]
async fn a_monitor_shows_the_commands_of_its_own_database_only() {
    let (rest, other) = (rest().await, rest().await);
    let mut stream = rest.stream("/monitor").await;
    stream.expect(&[r#"data: "OK""#]).await;
    other.command(r#"["SET","secret","of another database"]"#).await;
    rest.command(r#"["SET","key","line\nbreak \"quoted\""]"#).await;
    let event = stream.event().await.expect("an event");
    assert!(event.starts_with("data: 1") && event.ends_with(r#"] "SET" "key" "line\nbreak \"quoted\"""#), "{event}");
}

#[tokio::test]
async fn a_message_cannot_pretend_to_be_another_event() {
    let rest = rest().await;
    let mut stream = rest.stream("/subscribe/streams:forged").await;
    stream.expect(&["data: subscribe,streams:forged,1"]).await;
    rest.command(r#"["PUBLISH","streams:forged","1\n2\r\n 3\rdata: message,x,y\n\nid: 4"]"#).await;
    // Two spaces: a client removes the first.
    let lines =
        ["data: message,streams:forged,1", "data:2", "data:  3", "data:data: message,x,y", "data:", "data:id: 4"];
    stream.expect(&[&lines.join("\n")]).await;
}

#[tokio::test]
async fn streams_need_their_path_and_header() {
    let rest = rest().await;
    let refusal = |name: &str| {
        format!(r#"{{"error":"ERR Command \"{name}\" is not allowed in REST or it has a special context path"}}"#)
    };
    for (name, target) in [("SUBSCRIBE", "/subscribe/c"), ("PSUBSCRIBE", "/psubscribe/c"), ("MONITOR", "/monitor")] {
        let refused = (400, refusal(name));
        for headers in [&[][..], &["Accept: */*"]] {
            let answer = timeout(PATIENCE, rest.send("POST", target, headers, b"")).await.expect("no stream");
            assert_eq!((answer.status, answer.text().to_owned()), refused, "{target}");
        }
        let command = format!(r#"["{name}","c"]"#);
        let answer = rest.send("POST", "/", &[ACCEPT], command.as_bytes()).await;
        assert_eq!((answer.status, answer.text().to_owned()), refused);
        let batch = format!(r#"[["SET","{name}","1"],{command}]"#);
        let answer = rest.send("POST", "/multi-exec", &[ACCEPT], batch.as_bytes()).await;
        assert_eq!((answer.status, answer.text().to_owned()), refused);
        let answer = rest.send("POST", "/pipeline", &[ACCEPT], batch.as_bytes()).await;
        assert_eq!(answer.text(), format!(r#"[{{"result":"OK"}},{}]"#, refusal(name)));
    }
    let answer = rest.send("POST", "/subscribe", &[ACCEPT], b"").await;
    let expected = r#"{"error":"ERR wrong number of arguments for 'subscribe' command"}"#;
    assert_eq!((answer.status, answer.text()), (400, expected), "the server's own error");
}

#[tokio::test]
async fn the_read_only_token_opens_no_stream() {
    let rest = rest().await;
    let authorization = format!("Authorization: Bearer {READ_ONLY_TOKEN}");
    for (name, target) in [("subscribe", "/subscribe/c"), ("psubscribe", "/psubscribe/*"), ("monitor", "/monitor")] {
        let headers = [authorization.as_str(), ACCEPT];
        let answer = rest.send_as_is("POST", target, &headers, b"");
        let answer = timeout(PATIENCE, answer).await.expect("no stream").expect("an answer");
        let expected = format!(
            r#"{{"error":"NOPERM this user has no permissions to run the '{name}' command or its subcommand"}}"#
        );
        assert_eq!((answer.status, answer.text()), (400, expected.as_str()));
    }
    assert_eq!(rest.gateway.counts().commands, 0);
}

#[tokio::test]
async fn the_connection_to_redis_closes_when_the_client_goes() {
    let rest = rest().await;
    let stream = rest.stream("/subscribe/streams:left").await;
    rest.subscribers("streams:left", 1).await;
    drop(stream);
    rest.subscribers("streams:left", 0).await;
}

#[tokio::test]
async fn the_end_of_redis_is_the_last_event() {
    let mut server = Server::start(ServerOptions::default()).expect("a server");
    let rest = gateway(server.url(), StreamLimits::DEFAULT).await;
    let stream = rest.stream("/subscribe/c").await;
    server.stop();
    assert_eq!(stream.last_event().await.as_deref(), Some("data: error,,ERR the connection to Redis broke"));
    let refused = rest.stream("/subscribe/c").await;
    assert!(refused.head.starts_with("http/1.0 503"), "{}", refused.head);
}

#[tokio::test]
async fn a_frozen_redis_is_noticed() {
    let server = Server::start(ServerOptions::default()).expect("a server");
    let heartbeat = Duration::from_millis(200);
    let streams = StreamLimits { heartbeat, ..StreamLimits::DEFAULT };
    // Long enough for a busy machine before the freeze.
    let options = Options { streams, redis_timeout: Duration::from_secs(2), ..Options::new(server.url(), TOKEN) };
    let rest = Rest { gateway: Gateway::start(options).await.expect("a gateway") };
    let stream = rest.stream("/subscribe/c").await;
    let _frozen = Frozen::freeze(&rest).await;
    assert_eq!(stream.last_event().await.as_deref(), Some("data: error,,ERR Redis does not answer"));
}

#[tokio::test]
async fn a_silent_stream_has_heartbeats() {
    let heartbeat = Duration::from_millis(10);
    let rest = gateway(fresh_database(), StreamLimits { heartbeat, ..StreamLimits::DEFAULT }).await;
    for target in ["/subscribe/streams:silent", "/monitor"] {
        let mut stream = rest.stream(target).await;
        stream.event().await.expect("the confirmation");
        for _ in 0..3 {
            assert_eq!(stream.line().await.as_deref(), Some(": heartbeat"));
            assert_eq!(stream.line().await.as_deref(), Some(""));
        }
    }
}

#[tokio::test]
async fn streams_are_limited_and_a_closed_one_makes_room() {
    let limits = StreamLimits { max_streams: 3, max_streams_per_address: 2, ..StreamLimits::DEFAULT };
    let rest = gateway(fresh_database(), limits).await;
    let streams = [rest.stream("/subscribe/streams:limit").await, rest.stream("/monitor").await];
    let answer = rest.send("POST", "/subscribe/streams:limit", &[ACCEPT], b"").await;
    assert_eq!((answer.status, answer.text()), (503, r#"{"error":"ERR max number of streams reached"}"#));
    assert_eq!(answer.header("retry-after"), Some("1"));
    rest.subscribers("streams:limit", 1).await;
    assert_eq!(rest.command(r#"["PING"]"#).await, r#"{"result":"PONG"}"#, "other requests are not affected");
    drop(streams);
    let room = async { while !rest.stream("/subscribe/streams:limit").await.head.starts_with("http/1.0 200") {} };
    timeout(PATIENCE, room).await.expect("closed streams make room");
}

#[tokio::test]
async fn a_slow_subscriber_is_ended_and_harms_nobody() {
    let rest = gateway(fresh_database(), StreamLimits { max_buffered_bytes: 100_000, ..StreamLimits::DEFAULT }).await;
    let slow = rest.stream("/subscribe/streams:slow").await;
    let mut fast = rest.stream("/subscribe/streams:slow").await;
    fast.event().await.expect("the confirmation");
    let publish = format!(r#"["PUBLISH","streams:slow","{}"]"#, "x".repeat(1_000_000));
    let mut published = 0;
    loop {
        let receivers = rest.command(&publish).await;
        published += 1;
        assert_eq!(fast.event().await.map_or(0, |event| event.len()), 1_000_027, "message {published}");
        if receivers == r#"{"result":1}"# {
            break;
        }
        assert!(published < 100, "100 MB wait for a client that does not read");
    }
    let last = "data: error,,ERR the client reads too slowly. Limit: 100000 bytes";
    assert_eq!(slow.last_event().await.as_deref(), Some(last));
}

#[tokio::test]
async fn a_message_over_the_limit_reaches_a_client_that_reads() {
    let rest = gateway(fresh_database(), StreamLimits { max_buffered_bytes: 10, ..StreamLimits::DEFAULT }).await;
    let mut stream = rest.stream("/subscribe/streams:large").await;
    stream.event().await.expect("the confirmation");
    rest.command(r#"["PUBLISH","streams:large","a message that is larger than the limit"]"#).await;
    stream.expect(&["data: message,streams:large,a message that is larger than the limit"]).await;
}

#[tokio::test]
async fn the_end_of_the_gateway_is_the_last_event() {
    let rest = rest().await;
    let stream = rest.stream("/subscribe/streams:end").await;
    let idle = TcpStream::connect(rest.gateway.url().replace("http://", "")).await.expect("a connection");
    rest.gateway.shutdown(PATIENCE).await;
    assert_eq!(stream.last_event().await.as_deref(), Some("data: error,,ERR the gateway shuts down"));
    idle.readable().await.expect("a closed connection");
}

#[cfg(unix)]
#[tokio::test]
async fn the_program_ends_its_streams_when_it_is_told_to_end() {
    for signal in ["-TERM", "-INT"] {
        let mut command = program(&["--listen", "127.0.0.1:0"]);
        command.env("REDIS_URL", fresh_database()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
        let (mut running, url) = start(command).await;
        let stream = Stream::open(&url, "/subscribe/streams:program").await;
        let pid = running.id().expect("a running program").to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().expect("kill").success());
        assert_eq!(stream.last_event().await.as_deref(), Some("data: error,,ERR the gateway shuts down"));
        let status = timeout(PATIENCE, running.wait()).await.expect("an end").expect("a status");
        assert!(status.success(), "{signal}: {status}");
    }
}

#[tokio::test]
async fn in_a_cluster_one_server_hears_all() {
    let cluster = tokio::task::spawn_blocking(|| ServerCluster::start(3)).await.expect("no panic").expect("a cluster");
    let rest = gateway(cluster.url(), StreamLimits::DEFAULT).await;
    let mut stream = rest.stream("/subscribe/c").await;
    stream.expect(&["data: subscribe,c,1"]).await;
    for port in cluster.ports() {
        cluster.say(port, "PUBLISH c hello").expect("an answer");
        stream.expect(&["data: message,c,hello"]).await;
    }
    let answer = rest.send("POST", "/monitor", &[ACCEPT], b"").await;
    assert!(answer.status == 400 && answer.text().contains("Command is not available: 'MONITOR'"), "{answer:?}");
}
