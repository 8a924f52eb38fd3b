//! How many sessions a second the cleaning ends through the gateway: `cargo bench --bench cleanup`.
//!
//! The cleaning has a thread, the gateway another, and a real Valkey a process: as in production, but on one machine. Every
//! session was seen long ago, has 8 viewed items, and belongs to a user of its own or to a guest. Two mixes, in turn:
//! - `shop`: half are guests, who all have a cart (a guest's session begins with one); of the users, three in ten do.
//! - `carts`: every session has a cart. A cart has 2 lines.
//!
//! The pinned Valkey is built without jemalloc, which Redis for Linux comes with: `EDGEFRONT_REDIS_SERVER` names another server.

use std::{
    io::{self, Write as _},
    rc::Rc,
    time::{Duration, Instant},
};

use edgefront::{
    config::SessionConfig,
    ports::{budget::Budget, time::Timestamp},
    schema::{keys::Keys, token::Token},
    sessions::{self, CleanupProbe, CleanupReport},
    upstash::{Credentials, Redis},
};
use edgefront_gateway::server::{Server, ServerOptions};

mod parts;
#[path = "parts/wire.rs"]
mod wire;

use self::{
    parts::{SystemClock, TOKEN, fetch, runtime, serve_gateway},
    wire::{ask, feed},
};

/// Sessions of one round.
const SESSIONS: u32 = 100_000;
const ROUNDS: usize = 5;

fn main() {
    let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let gateway = serve_gateway(&server);
    let runtime = runtime();
    println!("{}", described(&server));
    for (mix, users_with_cart) in [("shop", 3), ("carts", 10)] {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let carts = fill(&server, users_with_cart).expect("the server reads");
            let before = busy(&server);
            let started = Instant::now();
            let cleaned = runtime.block_on(clean(&gateway.url()));
            let seconds = started.elapsed().as_secs_f64();
            assert_eq!(cleaned, CleanupReport { sessions: SESSIONS.into(), carts, unfinished: false });
            let rate = f64::from(SESSIONS) / seconds;
            let busy = busy(&server) - before;
            let (share, micros) = (busy / seconds * 100.0, busy / f64::from(SESSIONS) * 1e6);
            println!(
                "  {mix}: {rate:.0} a second; the server is busy for {share:.0} % of it, {micros:.1} us a session; {}",
                longest(&server)
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

/// Fills an empty database by the server's own protocol; returns how many carts there are.
fn fill(server: &Server, users_with_cart: u32) -> io::Result<u64> {
    let mut carts = 0;
    let mut text = String::new();
    let mut command = |words: &[&str]| wire::command(&mut text, words);
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
    feed(server, |stream| stream.write_all(text.as_bytes()))?;
    Ok(carts)
}

/// Which server it is, and how it takes its memory.
fn described(server: &Server) -> String {
    let info = ask(server, "INFO everything").expect("the server answers");
    let line = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    let version = line("valkey_version:").map(|version| format!("Valkey {version}"));
    let version = version.or_else(|| line("redis_version:").map(|version| format!("Redis {version}")));
    format!("{}, {}", version.expect("a version").trim(), line("mem_allocator:").expect("an allocator").trim())
}

/// CPU seconds of the server's main thread until now.
fn busy(server: &Server) -> f64 {
    let info = ask(server, "INFO cpu").expect("the server answers");
    let seconds = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    let [user, system] = ["used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"].map(seconds);
    user.expect("a figure") + system.expect("a figure")
}

/// How long one call of the script held the server up.
fn longest(server: &Server) -> String {
    let info = ask(server, "INFO latencystats").expect("the server answers");
    let figures = info.lines().find_map(|line| line.strip_prefix("latency_percentiles_usec_evalsha:"));
    format!("its script takes, in us: {}", figures.expect("a script ran").trim())
}
