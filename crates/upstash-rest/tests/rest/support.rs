//! One server for all tests, a gateway for each, and transports that watch.

use std::{
    cell::{Cell, RefCell},
    io::{Read as _, Write as _},
    net::TcpStream,
    rc::Rc,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use futures_util::future::LocalBoxFuture;
use upstash_rest::{
    Client, Command, Credentials, Error, ExchangeTerms, FromReply, ReqwestTransport, Transport, TransportError,
};

pub const TOKEN: &str = "token-of-the-tests";
/// Longer than any test: tests of deadlines set their own.
pub const DEADLINE: Duration = Duration::from_secs(20);
pub const LOST: Error = Error::Transport(TransportError::Unreachable);
pub const LATE: Error = Error::Transport(TransportError::Timeout);

static SERVER: LazyLock<Server> =
    LazyLock::new(|| Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}")));

/// An empty database behind a gateway.
pub struct Database {
    /// The client under test.
    pub client: Client,
    /// Watches the client under test.
    pub watch: Rc<Watch>,
    /// Counts requests and makes faults.
    pub gateway: Gateway,
    /// A client of another gateway, which neither counts nor disturbs.
    aside: Client,
    _aside_gateway: Gateway,
}

/// The URL of an empty database of the server.
pub fn unused_database() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}/{}", SERVER.url(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// An empty database whose user may not run some commands.
pub async fn database_without(commands: &[&str]) -> Database {
    let url = unused_database();
    let (host, database) = url.strip_prefix("redis://").and_then(|rest| rest.split_once('/')).unwrap();
    let user = format!("user-{database}");
    let denied = commands.join(" -");
    let mut server = TcpStream::connect(host).unwrap();
    server.write_all(format!("ACL SETUSER {user} on >password ~* +@all -{denied}\r\n").as_bytes()).unwrap();
    let mut answer = [0; 5];
    server.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
    Database::on(&format!("redis://{user}:password@{host}/{database}")).await
}

impl Database {
    pub async fn new() -> Self {
        Self::on(&unused_database()).await
    }

    async fn on(url: &str) -> Self {
        let (gateway, aside_gateway) = (gateway(url).await, gateway(url).await);
        let watch = Rc::new(Watch::new());
        Self {
            client: client(&gateway, watch.clone()),
            watch,
            aside: client(&aside_gateway, Rc::new(transport())),
            gateway,
            _aside_gateway: aside_gateway,
        }
    }

    /// HTTP requests and commands that have reached Redis.
    pub fn counts(&self) -> (u64, u64) {
        let counts = self.gateway.counts();
        (counts.requests, counts.commands)
    }

    /// Runs a command that is neither counted nor disturbed by faults.
    pub async fn aside<T: FromReply>(&self, command: Command) -> T {
        self.aside.run(command).await.expect("the server answers")
    }

    /// The number that [`incr`] counts.
    pub async fn number(&self) -> Option<u64> {
        self.aside(get()).await
    }
}

pub async fn gateway(redis_url: &str) -> Gateway {
    Gateway::start(Options::new(redis_url, TOKEN)).await.unwrap_or_else(|error| panic!("{error}"))
}

pub fn client(gateway: &Gateway, transport: Rc<dyn Transport>) -> Client {
    Client::new(transport, Credentials::new(&gateway.url(), TOKEN).expect("valid credentials"), DEADLINE)
}

/// A transport that uses no proxy of the machine.
pub fn transport() -> ReqwestTransport {
    reqwest::Client::builder().no_proxy().build().expect("a client").into()
}

/// A write that is not repeatable.
pub fn incr() -> Command {
    Command::write("INCR").arg("n")
}

/// A read.
pub fn get() -> Command {
    Command::read("GET").arg("n")
}

/// A command that Redis refuses once `n` is a number.
pub fn wrong() -> Command {
    Command::write("LPUSH").arg("n").arg("x")
}

pub fn refused<T>(code: &str) -> Result<T, Error> {
    Err(Error::Refused { code: code.to_owned() })
}

/// A transport that records requests, counts turns of the event loop, and may have a budget of requests. Its clock
/// stands still until it is started, so that the time in which callers may join a batch never ends on a slow machine.
pub struct Watch {
    inner: ReqwestTransport,
    pub requests: RefCell<Vec<http::Request<Bytes>>>,
    pub turns: Cell<u32>,
    pub budget: Cell<u32>,
    is_ticking: Cell<bool>,
}

impl Watch {
    fn new() -> Self {
        Self {
            inner: transport(),
            requests: RefCell::default(),
            turns: Cell::new(0),
            budget: Cell::new(u32::MAX),
            is_ticking: Cell::new(false),
        }
    }

    pub fn start_clock(&self) {
        self.is_ticking.set(true);
    }
}

impl Transport for Watch {
    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        self.requests.borrow_mut().push(request.clone());
        let Some(left) = self.budget.get().checked_sub(1) else {
            return Box::pin(async { Err(TransportError::NotSent("no requests are left")) });
        };
        self.budget.set(left);
        self.inner.exchange(request, terms)
    }

    fn now(&self) -> Duration {
        if self.is_ticking.get() { self.inner.now() } else { Duration::ZERO }
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        self.inner.sleep(duration)
    }

    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        self.turns.set(self.turns.get() + 1);
        self.inner.turn()
    }
}
