//! What an operation takes with 10 thousand, 100 thousand, 1 million and 10 million sessions: `cargo bench --bench growth`.
//!
//! Each size is a real Valkey of its own with a gateway of its own, and all are there at once: the rounds go from one to the next, so
//! that noise hits all alike. Every session has its login and its time; one in ten also 8 viewed items, a cart of 2 lines and its
//! user's lists, and these are the ones that are asked for. It takes 3 GB of memory and two minutes.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    rc::Rc,
    time::{Duration, Instant},
};

use edgefront::{
    carts::{self, CartChange, Quantity},
    config::{Config, rules::UrlRules},
    page_cache::{LeaseRequest, LeaseTerms, Lookup, PageKey, SelectingHeaders},
    ports::{budget::Budget, time::Clock},
    schema::{ids::ItemId, keys::Keys, redis::Redis, token::Token},
    sessions::{self, CleanupProbe, SessionTouch},
};
use edgefront_gateway::server::{Server, ServerOptions};
use upstash_rest::{Credentials, Reply};

mod parts;
#[path = "parts/wire.rs"]
mod wire;

use self::{
    parts::{SystemClock, TOKEN, fetch, runtime, serve_gateway},
    wire::{ask, command, feed},
};

const SIZES: [u32; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
const ROUNDS: usize = 9;
/// Calls of an operation in a round.
const CALLS: usize = 300;
/// Sessions that end in a round of cleaning.
const VICTIMS: u32 = 3_000;
const OPERATIONS: [&str; 4] = ["session check", "page view", "cart write", "cleanup of a session"];

/// A database of some size, and who asks for it.
struct Place {
    size: u32,
    server: Server,
    redis: Redis,
    /// Sessions that have all that one has.
    tokens: Vec<Token>,
}

fn main() {
    bytes();
    let places = SIZES.map(|size| {
        let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let before = memory(&server);
        let started = Instant::now();
        let tokens = fill(&server, size, 10, false).expect("the server reads");
        let (seconds, took) = (started.elapsed().as_secs(), (memory(&server) - before) / u64::from(size));
        println!("{size} sessions: {took} bytes each, filled in {seconds} s");
        let redis = client(serve_gateway(&server).url());
        Place { size, server, redis, tokens }
    });
    let runtime = runtime();
    let mut micros = vec![vec![Vec::new(); OPERATIONS.len()]; places.len()];
    for round in 0..ROUNDS {
        for (place, micros) in places.iter().zip(&mut micros) {
            for (operation, micros) in micros.iter_mut().enumerate() {
                micros.push(runtime.block_on(place.measure(operation, round)));
            }
        }
    }
    println!("\nmicroseconds, median of {ROUNDS} rounds, and times what it takes with {}:", SIZES[0]);
    for (operation, name) in OPERATIONS.iter().enumerate() {
        let mut line = format!("{name:>22}");
        let medians: Vec<_> = micros.iter_mut().map(|micros| median(&mut micros[operation])).collect();
        for (place, median) in places.iter().zip(&medians) {
            let _ = write!(line, " | {}: {median:.1} ({:.2})", place.size, median / medians[0]);
        }
        println!("{line}");
    }
}

impl Place {
    /// Microseconds of one call: the median of a round's, or of the cleaning, which ends many at a time, the mean.
    async fn measure(&self, operation: usize, round: usize) -> f64 {
        let config = config();
        let now = SystemClock.now();
        if operation == 3 {
            fill(&self.server, VICTIMS, 1, true).expect("the server reads");
            let started = Instant::now();
            let budget = Budget::new(Rc::new(SystemClock), Duration::from_mins(1), 1_000_000);
            let cleaned = sessions::clean(&self.redis, &config.session, CleanupProbe::Idle, &budget).await;
            let took = started.elapsed();
            assert_eq!(cleaned.expect("Redis answers").sessions, u64::from(VICTIMS));
            return took.as_secs_f64() * 1e6 / f64::from(VICTIMS);
        }
        let (mut micros, item) = (Vec::new(), ItemId::parse("enamel-mug").expect("an item"));
        let page = PageKey::of_url("https://shop.example/products/enamel-mug", &UrlRules::default()).expect("a page");
        let quantity = Quantity::parse(&3.into(), &config.cart).expect("a quantity");
        for call in 0..CALLS {
            // A large prime: from everywhere, and in every round others.
            let token = &self.tokens[(round * CALLS + call) * 7_919 % self.tokens.len()];
            let started = Instant::now();
            match operation {
                0 => {
                    let session = sessions::check(&self.redis, token, now, &config.session).await;
                    assert!(session.expect("Redis answers").is_some());
                }
                1 => {
                    let selecting = SelectingHeaders::default();
                    let keys = self.redis.keys();
                    // Without a lease: it only looks.
                    let terms = LeaseTerms { duration: Duration::ZERO, request: LeaseRequest::IfStale };
                    let lookup = Lookup::new(keys, &page, &selecting, now, terms);
                    let (_, command) = lookup.expect("random bits");
                    let [user, seen] = sessions::check_commands(self.redis.keys(), token);
                    let asked = [command, user, seen];
                    let replies: Vec<Reply> = self.redis.all(&asked).await.expect("Redis answers");
                    assert_eq!(replies.len(), 3);
                    let sight = SessionTouch { token: token.clone(), item: Some(item.clone()), at: now };
                    sessions::touch(&self.redis, &sight, &config.session).await.expect("Redis answers");
                }
                _ => {
                    let change = CartChange::Set(item.clone(), quantity);
                    let write = carts::change(&self.redis, Some(token), &change, now, &config).await;
                    assert!(!write.expect("Redis answers").created);
                }
            }
            micros.push(started.elapsed().as_secs_f64() * 1e6);
        }
        median(&mut micros)
    }
}

/// Says what a session takes of memory, with nothing and with everything.
fn bytes() {
    let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    for (what, every) in
        [("a login and its time", 0), ("with 8 viewed items, a cart of 2 lines and the user's lists", 1)]
    {
        ask(&server, "FLUSHALL").expect("the server answers");
        let before = memory(&server);
        fill(&server, 100_000, every, false).expect("the server reads");
        println!("{what}: {} bytes a session", (memory(&server) - before) / 100_000);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn memory(server: &Server) -> u64 {
    let info = ask(server, "INFO memory").expect("the server answers");
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|bytes| bytes.trim().parse().ok()).expect("a figure")
}

/// Adds sessions by the server's own protocol; every so many (0: none) with all that one has, whose tokens come back, at most 10,000. Seen within
/// the last hour, or `long_ago`.
fn fill(server: &Server, count: u32, every: u32, long_ago: bool) -> io::Result<Vec<Token>> {
    let now = SystemClock.now();
    let age = if long_ago { 40 * 86_400 } else { 3_600 };
    feed(server, |stream| {
        let mut kept = Vec::new();
        for start in (0..count).step_by(1_000) {
            let mut text = String::new();
            let (mut logins, mut times) =
                (vec!["HSET".to_owned(), "login:".into()], vec!["ZADD".to_owned(), "recent:".into()]);
            for number in start..count.min(start + 1_000) {
                let token = Token::new(now).expect("random bits");
                let user = format!("user-{number}-{}", u8::from(long_ago));
                let seen = now - Duration::from_secs(age)
                    + Duration::from_millis(u64::from(number) * 3_000_000 / u64::from(count));
                logins.extend([token.as_str().to_owned(), user.clone()]);
                times.extend([seen.to_string(), token.as_str().to_owned()]);
                if every > 0 && number % every == 0 {
                    let items = (0..8).flat_map(|item| [seen.to_string(), format!("item-{}", number % 97 + item)]);
                    command(
                        &mut text,
                        ["ZADD".to_owned(), format!("viewed:{}", token.as_str())].into_iter().chain(items),
                    );
                    let lines = ["enamel-mug", "2", "carbon-steel-pan", "1"].map(str::to_owned);
                    command(
                        &mut text,
                        ["HSET".to_owned(), format!("cart:{}", token.as_str())].into_iter().chain(lines),
                    );
                    let token_text = token.as_str().to_owned();
                    command(
                        &mut text,
                        ["ZADD".to_owned(), format!("sessions:{user}"), seen.to_string(), token_text.clone()],
                    );
                    let device = "0123456789abcdef Firefox on Windows".to_owned();
                    command(&mut text, ["HSET".to_owned(), format!("devices:{user}"), token_text, device]);
                    // From everywhere among them.
                    if number % (every * count.div_ceil(10_000 * every)) == 0 {
                        kept.push(token);
                    }
                }
            }
            command(&mut text, logins);
            command(&mut text, times);
            stream.write_all(text.as_bytes())?;
        }
        Ok(kept)
    })
}

fn config() -> Config {
    let variables = [
        ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1"),
        ("UPSTASH_REDIS_REST_TOKEN", TOKEN),
        ("SESSION_KEYS", "the-session-key-of-the-bench-0123456789"),
        ("SESSION_LIMIT", "100000000"),
    ];
    let find = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    Config::from_lookup(find).unwrap_or_else(|errors| panic!("{errors}"))
}

fn client(url: String) -> Redis {
    let authorization = http::HeaderValue::try_from(format!("Bearer {TOKEN}")).expect("ASCII");
    let credentials = Credentials { url, authorization };
    Redis::new(
        Rc::new(fetch::NativeFetch::new()),
        Rc::new(SystemClock),
        credentials,
        Duration::from_secs(10),
        Keys::BOOK,
    )
}
