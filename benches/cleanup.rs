//! Measures how many sessions a second the session cleanup ends through the gateway: `cargo bench --bench cleanup`.
//!
//! The cleanup and the gateway have one thread each, and a real Valkey has a process, all on one machine. Every session
//! is idle, has 8 viewed items, and belongs to its own user or to a guest. There are two mixes; a cart has 2 lines:
//! - `shop`: half of the sessions are guests, and each has a cart, because a guest's session begins with one. Of the
//!   users, three in ten have a cart.
//! - `carts`: every session has a cart.
//!
//! The pinned Valkey is built without jemalloc, unlike Redis for Linux. `EDGEFRONT_REDIS_SERVER` names another server.

use std::{
    io::{self, Write as _},
    rc::Rc,
    time::{Duration, Instant},
};

use edgefront::{
    config::SessionConfig,
    ports::{budget::Budget, time::Timestamp},
    schema::{keys::Keys, redis::Redis, token::Token},
    sessions::{self, CleanupProbe, CleanupReport},
};
use edgefront_gateway::server::{Server, ServerOptions};
use upstash_rest::Credentials;

mod parts;
#[path = "parts/wire.rs"]
mod wire;

use self::{
    parts::{SystemClock, TOKEN, fetch, runtime, serve_gateway},
    wire::{send, send_all},
};

/// Sessions per round.
const SESSIONS: u32 = 100_000;
const ROUNDS: usize = 5;

fn main() {
    let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let gateway = serve_gateway(&server);
    let runtime = runtime();
    println!("{}", server_description(&server));
    for (mix, users_with_cart) in [("shop", 3), ("carts", 10)] {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let carts = fill(&server, users_with_cart).expect("the server reads");
            let before = cpu_seconds(&server);
            let started = Instant::now();
            let cleaned = runtime.block_on(clean(&gateway.url()));
            let seconds = started.elapsed().as_secs_f64();
            assert_eq!(cleaned, CleanupReport { sessions: SESSIONS.into(), carts, unfinished: false });
            let rate = f64::from(SESSIONS) / seconds;
            let busy = cpu_seconds(&server) - before;
            let (share, micros) = (busy / seconds * 100.0, busy / f64::from(SESSIONS) * 1e6);
            println!(
                "  {mix}: {rate:.0} sessions a second; server CPU: {share:.0} %, {micros:.1} us per session; {}",
                script_latency(&server)
            );
            rates.push(rate);
        }
        rates.sort_by(f64::total_cmp);
        println!("{mix}: {:.0} sessions a second (median of {ROUNDS})", rates[ROUNDS / 2]);
    }
}

async fn clean(gateway: &str) -> CleanupReport {
    let authorization = http::HeaderValue::try_from(format!("Bearer {TOKEN}")).expect("ASCII");
    let credentials = Credentials { url: gateway.to_owned(), authorization };
    let fetch = Rc::new(fetch::NativeFetch::new());
    let redis = Redis::new(fetch, Rc::new(SystemClock), credentials, Duration::from_secs(10), Keys::BOOK);
    let config = SessionConfig {
        signing_keys: Vec::new(),
        limit: 10_000_000,
        idle: Duration::from_mins(1),
        max_age: Duration::from_hours(1),
        view_window: Duration::ZERO,
    };
    let budget = Budget::new(Rc::new(SystemClock), Duration::from_mins(1), 1_000_000);
    sessions::clean(&redis, &config, CleanupProbe::Idle, &budget).await.expect("Redis answers")
}

/// Fills an empty database over RESP. Returns the number of carts.
fn fill(server: &Server, users_with_cart: u32) -> io::Result<u64> {
    let mut carts = 0;
    let mut text = String::new();
    let mut command = |words: &[&str]| wire::push_command(&mut text, words);
    command(&["FLUSHALL"]);
    command(&["CONFIG", "RESETSTAT"]);
    for number in 0..SESSIONS {
        let token = Token::new(Timestamp::from_millis(1_000_000_000_000)).expect("random bits");
        let token = token.as_str();
        let is_guest = number % 2 == 0;
        let user = if is_guest { String::new() } else { format!("user-{number}") };
        command(&["HSET", "login:", token, &user]);
        command(&["ZADD", "recent:", &format!("{}.{:03}", 1_000_000_000 + number / 1000, number % 1000), token]);
        let key = format!("viewed:{token}");
        let items: Vec<_> = (0..8).map(|item| format!("item-{}", number % 97 + item)).collect();
        let viewed = items.iter().flat_map(|item| ["1000000000", item]);
        command(&["ZADD", &key].into_iter().chain(viewed).collect::<Vec<_>>());
        if is_guest || number / 2 % 10 < users_with_cart {
            carts += 1;
            command(&["HSET", &format!("cart:{token}"), "enamel-mug", "2", "carbon-steel-pan", "1"]);
        }
        if !is_guest {
            command(&["ZADD", &format!("sessions:{user}"), "1000000000", token]);
            command(&["HSET", &format!("devices:{user}"), token, "0123456789abcdef Firefox on Windows"]);
        }
    }
    send_all(server, |stream| stream.write_all(text.as_bytes()))?;
    Ok(carts)
}

/// The server's name, version and memory allocator.
fn server_description(server: &Server) -> String {
    let info = send(server, "INFO everything").expect("the server answers");
    let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    let version = line("valkey_version:").map(|version| format!("Valkey {version}"));
    let version = version.or_else(|| line("redis_version:").map(|version| format!("Redis {version}")));
    format!("{}, {}", version.expect("a version").trim(), line("mem_allocator:").expect("an allocator").trim())
}

/// The CPU seconds of the server's main thread.
fn cpu_seconds(server: &Server) -> f64 {
    let info = send(server, "INFO cpu").expect("the server answers");
    let seconds = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let [user, system] = ["used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"].map(seconds);
    user.expect("a figure") + system.expect("a figure")
}

/// The time that one call of the script blocks the server.
fn script_latency(server: &Server) -> String {
    let info = send(server, "INFO latencystats").expect("the server answers");
    let figures = info.lines().find_map(|line| line.strip_prefix("latency_percentiles_usec_evalsha:"));
    format!("script latency in us: {}", figures.expect("a script ran").trim())
}
