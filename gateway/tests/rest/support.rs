//! A server for all tests, a gateway for each, and requests as bytes.

use std::{
    fmt::Write as _,
    process::Stdio,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

pub const TOKEN: &str = "full-token";
pub const READ_ONLY_TOKEN: &str = "read-only-token";

static SERVER: LazyLock<Server> =
    LazyLock::new(|| Server::start(ServerOptions::default()).expect("a server for the tests"));
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A gateway in front of an empty database.
pub struct Rest {
    pub gateway: Gateway,
}

/// An answer, its header names in lower case.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a text body")
    }
}

pub fn fresh_database() -> String {
    format!("{}/{}", SERVER.url(), DATABASES.fetch_add(1, Ordering::Relaxed))
}

pub async fn rest() -> Rest {
    let options =
        Options { read_only_token: Some(READ_ONLY_TOKEN.to_owned()), ..Options::new(fresh_database(), TOKEN) };
    Rest { gateway: Gateway::start(options).await.expect("a gateway") }
}

impl Rest {
    /// Sends a request with the full token.
    pub async fn send(&self, method: &str, target: &str, headers: &[&str], body: &[u8]) -> Answer {
        let authorization = format!("Authorization: Bearer {TOKEN}");
        let mut with_token = vec![authorization.as_str()];
        with_token.extend(headers);
        self.send_as_is(method, target, &with_token, body).await.expect("an answer")
    }

    /// Sends a request with these headers only; `None` when the connection closes without an answer.
    pub async fn send_as_is(&self, method: &str, target: &str, headers: &[&str], body: &[u8]) -> Option<Answer> {
        send(&self.gateway.url(), method, target, headers, body).await
    }

    /// The body of the answer to `POST /`.
    pub async fn command(&self, json: &str) -> String {
        self.send("POST", "/", &[], json.as_bytes()).await.text().to_owned()
    }

    /// Sends each body to `path`, in order, and compares status and body of the answers.
    pub async fn golden(&self, path: &str, cases: &[(&str, u16, &str)]) {
        for (body, status, expected) in cases {
            let answer = self.send("POST", path, &[], body.as_bytes()).await;
            assert_eq!((answer.status, answer.text()), (*status, *expected), "{path} {body}");
        }
    }
}

/// The program with these arguments and no environment.
pub fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_edgefront-gateway"));
    command.args(args).env_clear().kill_on_drop(true);
    command
}

/// Starts the program. Returns it and its URL, when it listens.
pub async fn start(mut command: Command) -> (Child, String) {
    let mut running = command.stdout(Stdio::piped()).spawn().expect("the program");
    let mut lines = BufReader::new(running.stdout.take().expect("its output")).lines();
    let line = lines.next_line().await.expect("its output").expect("a first line");
    let url = line.split(' ').next().expect("an address").to_owned();
    (running, url)
}

/// Sends a request to the gateway at `url`; `None` when the connection closes without an answer.
pub async fn send(url: &str, method: &str, target: &str, headers: &[&str], body: &[u8]) -> Option<Answer> {
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n");
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    write!(head, "Content-Length: {}\r\n\r\n", body.len()).expect("a string");
    let mut stream = TcpStream::connect(url.replace("http://", "")).await.expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("room for the head");
    // A refused request may be answered, and its connection closed, before its body is sent.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    (!answer.is_empty()).then(|| parse(&answer))
}

fn parse(answer: &[u8]) -> Answer {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = std::str::from_utf8(&answer[..end]).expect("a text head");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
    let headers = lines.filter_map(|line| line.split_once(": "));
    Answer {
        status: status.parse().expect("a number"),
        headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(),
        body: answer[end + 4..].to_vec(),
    }
}
