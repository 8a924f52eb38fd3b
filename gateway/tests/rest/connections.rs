//! Slow, silent and too many clients. The gateway closes their connections, also before authentication.

use std::{net::SocketAddr, time::Duration};

use edgefront_gateway::{ConnectionLimits, Gateway, Options};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{Rest, TOKEN, fresh_database};

/// Fails the test instead of hanging it.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longer than any test.
const NEVER: Duration = Duration::from_hours(1);
const SHORT: Duration = Duration::from_millis(200);

const NO_LIMITS: ConnectionLimits = ConnectionLimits {
    head_timeout: NEVER,
    body_timeout: NEVER,
    max_connections: 1_000,
    max_connections_per_address: 1_000,
};

async fn limited(limits: ConnectionLimits) -> Rest {
    let options = Options { limits, ..Options::new(fresh_database(), TOKEN) };
    Rest { gateway: Gateway::start(options).await.expect("a gateway") }
}

fn address(rest: &Rest) -> SocketAddr {
    rest.gateway.url().replace("http://", "").parse().expect("an address")
}

/// Connects and sends the begin of something.
async fn begin(rest: &Rest, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address(rest)).await.expect("a connection");
    stream.write_all(bytes.as_bytes()).await.expect("room");
    stream
}

/// All that the gateway sends until it closes the connection. A reset is an end too.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut received)).await.expect("the gateway keeps the connection");
    String::from_utf8(received).expect("text")
}

#[tokio::test]
async fn silent_clients_without_a_token_are_closed() {
    let rest = limited(ConnectionLimits { head_timeout: SHORT, ..NO_LIMITS }).await;
    for bytes in ["", "P", "POST / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nHost: x\r\nX-Header: unfini"] {
        assert_eq!(until_closed(&mut begin(&rest, bytes).await).await, "", "{bytes:?}");
    }
}

#[tokio::test]
async fn a_head_in_small_parts_gets_no_more_time() {
    let rest = limited(ConnectionLimits { head_timeout: SHORT, ..NO_LIMITS }).await;
    let mut stream = begin(&rest, "GET /ping HTTP/1.1\r\nX-Long: ").await;
    let (mut reader, mut writer) = stream.split();
    let mut received = Vec::new();
    let drip = async {
        while writer.write_all(b"x").await.is_ok() {
            // The pace of the client: as fast as possible, the head would soon be too long.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let closed = reader.read_to_end(&mut received);
    tokio::select! {
        () = drip => {}
        _ = timeout(PATIENCE, closed) => {}
    }
    assert_eq!(received, b"", "a head without an end has an answer");
    assert!(timeout(PATIENCE, stream.read_u8()).await.expect("the gateway keeps the connection").is_err());
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_answer() {
    let rest = limited(ConnectionLimits { head_timeout: SHORT, ..NO_LIMITS }).await;
    let request = format!("GET /ping HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    let answer = until_closed(&mut begin(&rest, &request).await).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"result":"PONG"}"#), "{answer}");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_408() {
    let rest = limited(ConnectionLimits { body_timeout: SHORT, ..NO_LIMITS }).await;
    let head = format!("POST /set/k HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n");
    for body in ["Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"] {
        let answer = until_closed(&mut begin(&rest, &format!("{head}{body}")).await).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(answer.ends_with(r#"{"error":"ERR the request body did not arrive in time"}"#), "{answer}");
    }
    assert_eq!(rest.command(r#"["EXISTS","k"]"#).await, r#"{"result":0}"#);
}

#[tokio::test]
async fn without_a_token_the_gateway_does_not_wait_for_the_body() {
    let rest = limited(NO_LIMITS).await;
    for body in ["Content-Length: 10\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"] {
        let answer = until_closed(&mut begin(&rest, &format!("POST / HTTP/1.1\r\nHost: x\r\n{body}")).await).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_makes_room() {
    let rest = limited(ConnectionLimits { body_timeout: SHORT, max_connections: 1, ..NO_LIMITS }).await;
    let large = r#"["EVAL","return string.rep('x', 10000000)",0]"#;
    let body = format!("[{}]", [large; 6].join(","));
    let head = format!("POST /pipeline HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n");
    // 60 MB do not fit into the buffers of the system.
    let _unread = begin(&rest, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())).await;
    let next = async { while rest.send("GET", "/ping", &[], b"").await.status == 503 {} };
    timeout(PATIENCE, next).await.expect("the gateway keeps the connection");
}

/// Opens a connection from another address of this machine.
#[cfg(target_os = "linux")]
async fn from(host: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind((host, 0).into()).expect("Linux has all of 127.0.0.0/8");
    socket.connect(to).await.expect("a connection")
}

/// The status of a request on this connection; `None` if it is closed without an answer.
#[cfg(target_os = "linux")]
async fn ping(mut stream: TcpStream) -> Option<String> {
    let request =
        format!("GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    // A refused connection may be closed already.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the gateway keeps the connection");
    String::from_utf8_lossy(&answer).split(' ').nth(1).map(str::to_owned)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn stalled_connections_of_one_address_leave_room_for_others() {
    let limits = ConnectionLimits { max_connections: 6, max_connections_per_address: 4, ..NO_LIMITS };
    let rest = limited(limits).await;
    let to = address(&rest);
    let stalled = futures_util::future::join_all((0..4).map(|_| from([127, 0, 0, 1], to))).await;
    let refused = until_closed(&mut from([127, 0, 0, 1], to).await).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("\r\nRetry-After: 1\r\n"), "{refused}");
    assert_eq!(ping(from([127, 0, 0, 2], to).await).await.as_deref(), Some("200"));

    let _others = futures_util::future::join_all((0..2).map(|_| from([127, 0, 0, 2], to))).await;
    assert!(until_closed(&mut from([127, 0, 0, 3], to).await).await.starts_with("HTTP/1.1 503"));
    drop(stalled);
    let room = async { while ping(from([127, 0, 0, 3], to).await).await.as_deref() != Some("200") {} };
    timeout(PATIENCE, room).await.expect("closed connections make room");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn with_few_open_files_stalled_connections_do_not_lock_others_out() {
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", "ulimit -n 200; exec \"$0\" --listen 127.0.0.1:0", env!("CARGO_BIN_EXE_edgefront-gateway")]);
    command.env("REDIS_URL", fresh_database()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN).kill_on_drop(true);
    let (_running, url) = crate::support::start(command).await;
    let to: SocketAddr = url.replace("http://", "").parse().expect("an address");
    let _stalled = futures_util::future::join_all((0..260).map(|_| from([127, 0, 0, 1], to))).await;
    assert_eq!(ping(from([127, 0, 0, 2], to).await).await.as_deref(), Some("200"));
}
