//! How late rows are refreshed, and what a run of the cron spends: `cargo bench --bench refresh`. It takes a minute.
//!
//! 10,000 rows with a period of 5 s, due evenly, behind an address that answers after 20 ms: one run of the cron, as the platform calls it,
//! with a real Valkey behind the gateway. A row is late by what lies between two of its queries beyond its period.

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
    ports::{fetch::Response, time::Clock},
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
const ANSWERS_AFTER: Duration = Duration::from_millis(20);

/// When each row was asked for, and how many queries there were.
#[derive(Default)]
struct Asked {
    rows: HashMap<String, Vec<Instant>>,
    queries: u64,
}

fn main() {
    let redis = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let gateway = serve_gateway(&redis);
    let asked = Arc::<Mutex<Asked>>::default();
    let rows = serve_rows(asked.clone());
    schedule(&redis);
    let app = app(&gateway.url(), &rows.url());
    let (before, cpu) = (gateway.counts().requests, cpu());
    LocalSet::new().block_on(&runtime(), jobs::run_cron(&app, EVERY_MINUTE, app.clock.now()));
    let cpu = self::cpu().zip(cpu).map(|(after, before)| after - before);

    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let turns: usize = asked.rows.values().map(Vec::len).sum();
    let mut late: Vec<_> = asked
        .rows
        .values()
        .flat_map(|times| times.windows(2).map(|pair| (pair[1] - pair[0]).saturating_sub(EVERY)))
        .collect();
    late.sort();
    let part = |percent: usize| late[(late.len() - 1) * percent / 100];
    println!(
        "{turns} refreshes of {} rows; late: p50 {:?}, p99 {:?}, at most {:?}",
        asked.rows.len(),
        part(50),
        part(99),
        part(100)
    );
    println!("{} requests to Redis, {} to the rows", gateway.counts().requests - before, asked.queries);
    if let Some(seconds) = cpu {
        println!("{seconds:.2} s of CPU on the side of the Worker, natively");
    }
}

fn serve_rows(asked: Arc<Mutex<Asked>>) -> server::HttpServer {
    server::HttpServer::start(move || {
        Rc::new(move |request| {
            let now = Instant::now();
            let ids = request.uri().query().and_then(|query| query.strip_prefix("ids=")).expect("ids").to_owned();
            let rows: Vec<_> = ids
                .split(',')
                .map(|id| json!({"id": id, "stock": 7, "price_cents": 1_990, "sale_ends_at": 1_800_000_000}))
                .collect();
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.queries += 1;
            for id in ids.split(',') {
                asked.rows.entry(id.to_owned()).or_default().push(now);
            }
            async move {
                tokio::time::sleep(ANSWERS_AFTER).await;
                Some(Response::new(json!(rows).to_string().into()))
            }
            .boxed_local()
        })
    })
}

/// Rows that are due one after the other, for the first time within one period.
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
    App::new(config, Rc::new(fetch::NativeFetch::new()), Rc::new(SystemClock), None)
}

/// CPU seconds of this thread until now; None where the system does not tell.
fn cpu() -> Option<f64> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = stat.split(' ').next()?.parse().ok()?;
    Some(nanos / 1e9)
}
