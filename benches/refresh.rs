//! Measures how late rows are refreshed, and how many requests a cron run takes: `cargo bench --bench refresh`. It
//! takes a minute.
//!
//! 10,000 rows with a period of 5 s are due at even intervals. Their address responds after 20 ms. One cron run, as the
//! platform calls it, works with a real Valkey behind the gateway. The lateness of a refresh is the time since the
//! row's previous query, minus the period.

use std::{
    collections::HashMap,
    fs,
    io::{Read, Write},
    net::TcpStream,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use edgefront::{
    App,
    config::Config,
    jobs::{self, EVERY_MINUTE},
    ports::{fetch::Response, html::LolHtml, time::Clock},
};
use edgefront_gateway::server::{Server, ServerOptions};
use futures_util::FutureExt;
use serde_json::json;
use tokio::task::LocalSet;

mod parts;
#[path = "../tests/storefront/support/server.rs"]
mod server;

use self::parts::{SystemClock, TOKEN, fetch, runtime, serve_gateway};

const ROWS: u32 = 10_000;
const EVERY: Duration = Duration::from_secs(5);
const SOURCE_LATENCY: Duration = Duration::from_millis(20);

/// The times of each row's queries, and the number of all queries.
#[derive(Default)]
struct QueryLog {
    times: HashMap<String, Vec<Instant>>,
    queries: u64,
}

fn main() {
    let redis = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let gateway = serve_gateway(&redis);
    let log = Arc::<Mutex<QueryLog>>::default();
    let rows = serve_rows(log.clone());
    schedule(&redis);
    let app = app(&gateway.url(), &rows.url());
    let (before, cpu) = (gateway.counts().requests, cpu());
    LocalSet::new().block_on(&runtime(), jobs::run_cron(&app, EVERY_MINUTE, app.clock.now()));
    let cpu = self::cpu().zip(cpu).map(|(after, before)| after - before);

    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let refreshes: usize = log.times.values().map(Vec::len).sum();
    let mut lateness: Vec<_> = log
        .times
        .values()
        .flat_map(|times| times.windows(2).map(|pair| (pair[1] - pair[0]).saturating_sub(EVERY)))
        .collect();
    lateness.sort();
    let percentile = |percent: usize| lateness[(lateness.len() - 1) * percent / 100];
    println!(
        "{refreshes} refreshes of {} rows; lateness: p50 {:?}, p99 {:?}, maximum {:?}",
        log.times.len(),
        percentile(50),
        percentile(99),
        percentile(100)
    );
    println!("{} requests to Redis, {} to the row source", gateway.counts().requests - before, log.queries);
    if let Some(seconds) = cpu {
        println!("{seconds:.2} s of CPU in the native Worker code");
    }
}

fn serve_rows(log: Arc<Mutex<QueryLog>>) -> server::HttpServer {
    server::HttpServer::start(move || {
        Rc::new(move |request| {
            let now = Instant::now();
            let ids = request.uri().query().and_then(|query| query.strip_prefix("ids=")).expect("ids").to_owned();
            let rows: Vec<_> = ids
                .split(',')
                .map(|id| json!({"id": id, "stock": 7, "price_cents": 1_990, "sale_ends_at": 1_800_000_000}))
                .collect();
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.queries += 1;
            for id in ids.split(',') {
                log.times.entry(id.to_owned()).or_default().push(now);
            }
            async move {
                tokio::time::sleep(SOURCE_LATENCY).await;
                Some(Response::new(json!(rows).to_string().into()))
            }
            .boxed_local()
        })
    })
}

/// Schedules the rows to be due one after the other within one period.
fn schedule(redis: &Server) {
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).expect("the server");
    let now = SystemClock.now();
    for number in 0..ROWS {
        let due = now + EVERY * number / ROWS;
        write!(stream, "ZADD delay: {} row-{number}\r\nZADD schedule: {due} row-{number}\r\n", EVERY.as_secs())
            .expect("the server reads");
    }
    write!(stream, "QUIT\r\n").expect("the server reads");
    stream.read_to_end(&mut Vec::new()).expect("the server answers");
}

fn app(redis: &str, rows: &str) -> App {
    let rows = format!("{rows}/rows");
    let config = Config::from_lookup(|name| {
        let value = match name {
            "UPSTASH_REDIS_REST_URL" => redis,
            "UPSTASH_REDIS_REST_TOKEN" => TOKEN,
            "SESSION_KEYS" => "the-session-key-of-the-bench-0123456789",
            "ORIGIN_URL" | "ROWS_URL" => &rows,
            "SUBREQUESTS" => "10000",
            _ => return None,
        };
        Some(value.to_owned())
    });
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    App::new(config, Rc::new(fetch::NativeFetch::new()), Rc::new(SystemClock), Rc::new(LolHtml), None)
}

/// The CPU seconds of this thread; None if the system does not report them.
fn cpu() -> Option<f64> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = stat.split(' ').next()?.parse().ok()?;
    Some(nanos / 1e9)
}
