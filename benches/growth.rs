//! Measures operations with 10 thousand, 100 thousand, 1 million and 10 million sessions: `cargo bench --bench growth`.
//!
//! Each size has its own Valkey and its own gateway, and all run at once. Rounds alternate between the sizes, so that
//! noise affects all alike. Every session has a login and a time. One in ten also has 8 viewed items, a cart of 2 lines
//! and its user's lists; the operations use these sessions. The benchmark takes 3 GB of memory and two minutes.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    rc::Rc,
    time::{Duration, Instant},
};

use edgefront::{
    carts::{self, CartChange, Quantity},
    config::{Config, rules::UrlRules},
    page_cache::{Lookup, LookupTerms, PageKey, RankRead, SelectingHeaders, Wanted},
    ports::{
        budget::Budget,
        time::{Clock, Timestamp},
    },
    schema::{ids::ItemId, keys::Keys, redis::Redis, token::Token},
    sessions::{self, CleanupProbe, SessionTouch, TouchOutcome},
};
use edgefront_gateway::server::{Server, ServerOptions};
use upstash_rest::{Credentials, Reply};

mod parts;
#[path = "parts/wire.rs"]
mod wire;

use self::{
    parts::{SystemClock, TOKEN, fetch, runtime, serve_gateway},
    wire::{push_command, send, send_all},
};

const SIZES: [u32; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
const ROUNDS: usize = 9;
/// Calls of an operation per round.
const CALLS: usize = 300;
/// Sessions that a round of cleanup ends.
const IDLE_SESSIONS: u32 = 3_000;

/// The measured operations, with their names in the output.
const OPERATIONS: [(Operation, &str); 4] = [
    (Operation::CheckSession, "session check"),
    (Operation::ViewPage, "page view"),
    (Operation::WriteCart, "cart write"),
    (Operation::CleanUp, "cleanup of a session"),
];

#[derive(Clone, Copy)]
enum Operation {
    CheckSession,
    ViewPage,
    WriteCart,
    CleanUp,
}

/// A database with `size` sessions, and its client.
struct Database {
    size: u32,
    server: Server,
    redis: Redis,
    /// Sessions with viewed items, a cart and lists.
    tokens: Vec<Token>,
}

fn main() {
    print_memory();
    let databases = SIZES.map(|size| {
        let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        let before = memory(&server);
        let started = Instant::now();
        let tokens = fill(&server, size, 10, LastSeen::WithinHour).expect("the server reads");
        let (seconds, bytes) = (started.elapsed().as_secs(), (memory(&server) - before) / u64::from(size));
        println!("{size} sessions: {bytes} bytes each, filled in {seconds} s");
        let redis = client(serve_gateway(&server).url());
        Database { size, server, redis, tokens }
    });
    let runtime = runtime();
    let mut micros = vec![vec![Vec::new(); OPERATIONS.len()]; databases.len()];
    for round in 0..ROUNDS {
        for (database, micros) in databases.iter().zip(&mut micros) {
            for ((operation, _), micros) in OPERATIONS.iter().zip(micros) {
                micros.push(runtime.block_on(database.measure(*operation, round)));
            }
        }
    }
    println!("\nmicroseconds, median of {ROUNDS} rounds (relative to {} sessions):", SIZES[0]);
    for (index, (_, name)) in OPERATIONS.iter().enumerate() {
        let mut line = format!("{name:>22}");
        let medians: Vec<_> = micros.iter_mut().map(|micros| median(&mut micros[index])).collect();
        for (database, median) in databases.iter().zip(&medians) {
            let _ = write!(line, " | {}: {median:.1} ({:.2})", database.size, median / medians[0]);
        }
        println!("{line}");
    }
}

/// The inputs of the operations, prepared outside the measured time.
struct Inputs {
    now: Timestamp,
    config: Config,
    item: ItemId,
    page: PageKey,
    quantity: Quantity,
}

impl Inputs {
    fn new() -> Self {
        let (config, url) = (config(), "https://shop.example/products/enamel-mug");
        Self {
            now: SystemClock.now(),
            item: ItemId::parse("enamel-mug").expect("an item"),
            page: PageKey::of_url(url, &UrlRules::default()).expect("a page"),
            quantity: Quantity::parse(&3.into(), config.cart.max_quantity).expect("a quantity"),
            config,
        }
    }
}

impl Database {
    /// Microseconds of one call: the median of a round. For the cleanup, which ends sessions in batches: the mean per
    /// session.
    async fn measure(&self, operation: Operation, round: usize) -> f64 {
        let inputs = Inputs::new();
        if let Operation::CleanUp = operation {
            return self.measure_cleanup(&inputs.config).await;
        }
        let mut micros = Vec::new();
        for call in 0..CALLS {
            // A large prime spreads the calls over all sessions, and each round uses others.
            let token = &self.tokens[(round * CALLS + call) * 7_919 % self.tokens.len()];
            let started = Instant::now();
            match operation {
                Operation::CheckSession => {
                    let session = sessions::check(&self.redis, token, inputs.now, &inputs.config.session).await;
                    assert!(session.expect("Redis answers").is_some());
                }
                Operation::ViewPage => self.view_page(token, &inputs).await,
                Operation::WriteCart | Operation::CleanUp => self.write_cart(token, &inputs).await,
            }
            micros.push(started.elapsed().as_secs_f64() * 1e6);
        }
        median(&mut micros)
    }

    async fn view_page(&self, token: &Token, Inputs { now, config, item, page, .. }: &Inputs) {
        let (selecting, keys) = (SelectingHeaders::default(), self.redis.keys());
        let terms = LookupTerms { lease: None, rank: RankRead::IfStale, session: None };
        let (_, lookup) =
            Lookup::new(keys, page, Wanted { selecting: &selecting, held: None }, *now, terms).expect("random bits");
        let mut commands = sessions::check_commands(keys, token, *now, &config.session);
        commands.push(lookup);
        let replies: Vec<Reply> = self.redis.all(&commands).await.expect("Redis answers");
        assert_eq!(replies.len(), commands.len());
        let touch = SessionTouch { token: token.clone(), item: Some(item.clone()), at: *now };
        let touch = sessions::touch_command(keys.shard_of(token), &[&touch], &config.session);
        self.redis.run::<Vec<TouchOutcome>>(touch).await.expect("Redis answers");
    }

    async fn write_cart(&self, token: &Token, Inputs { now, config, item, quantity, .. }: &Inputs) {
        let change = CartChange::Set(item.clone(), *quantity);
        let write = carts::change(&self.redis, Some(token), &change, *now, config).await;
        assert!(!write.expect("Redis answers").created);
    }

    async fn measure_cleanup(&self, config: &Config) -> f64 {
        fill(&self.server, IDLE_SESSIONS, 1, LastSeen::LongAgo).expect("the server reads");
        let started = Instant::now();
        let budget = Budget::new(Rc::new(SystemClock), Duration::from_mins(1), 1_000_000);
        let report = sessions::clean(&self.redis, &config.session, CleanupProbe::Idle, &budget).await;
        let elapsed = started.elapsed();
        assert_eq!(report.expect("Redis answers").sessions, u64::from(IDLE_SESSIONS));
        elapsed.as_secs_f64() * 1e6 / f64::from(IDLE_SESSIONS)
    }
}

/// Prints the memory of a session, alone and with all its data.
fn print_memory() {
    let server = Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    for (content, every) in
        [("a login and its time", 0), ("with 8 viewed items, a cart of 2 lines and the user's lists", 1)]
    {
        send(&server, "FLUSHALL").expect("the server answers");
        let before = memory(&server);
        fill(&server, 100_000, every, LastSeen::WithinHour).expect("the server reads");
        println!("{content}: {} bytes per session", (memory(&server) - before) / 100_000);
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn memory(server: &Server) -> u64 {
    let info = send(server, "INFO memory").expect("the server answers");
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    used.and_then(|bytes| bytes.trim().parse().ok()).expect("a figure")
}

/// The time of a session's last request.
#[derive(Clone, Copy)]
enum LastSeen {
    WithinHour,
    LongAgo,
}

/// Adds `count` sessions over RESP. One in `every` (0: none) has viewed items, a cart and lists; at most 10,000 of
/// their tokens are returned.
fn fill(server: &Server, count: u32, every: u32, last_seen: LastSeen) -> io::Result<Vec<Token>> {
    let now = SystemClock.now();
    let (age, suffix) = match last_seen {
        LastSeen::WithinHour => (3_600, 0),
        LastSeen::LongAgo => (40 * 86_400, 1),
    };
    send_all(server, |stream| {
        let mut sample = Vec::new();
        for start in (0..count).step_by(1_000) {
            let mut text = String::new();
            let (mut logins, mut times) =
                (vec!["HSET".to_owned(), "login:".into()], vec!["ZADD".to_owned(), "recent:".into()]);
            for number in start..count.min(start + 1_000) {
                let token = Token::new(now).expect("random bits");
                let user = format!("user-{number}-{suffix}");
                let seen = now - Duration::from_secs(age)
                    + Duration::from_millis(u64::from(number) * 3_000_000 / u64::from(count));
                logins.extend([token.as_str().to_owned(), user.clone()]);
                times.extend([seen.to_string(), token.as_str().to_owned()]);
                if every > 0 && number % every == 0 {
                    push_session_data(&mut text, token.as_str(), &user, &seen.to_string(), number);
                    if number % (every * count.div_ceil(10_000 * every)) == 0 {
                        sample.push(token);
                    }
                }
            }
            push_command(&mut text, logins);
            push_command(&mut text, times);
            stream.write_all(text.as_bytes())?;
        }
        Ok(sample)
    })
}

/// Appends the commands for a session's viewed items, its cart, and its user's lists.
fn push_session_data(text: &mut String, token: &str, user: &str, seen: &str, number: u32) {
    let viewed = (0..8).flat_map(|item| [seen.to_owned(), format!("item-{}", number % 97 + item)]);
    push_command(text, ["ZADD".to_owned(), format!("viewed:{token}")].into_iter().chain(viewed));
    push_command(text, ["HSET", &format!("cart:{token}"), "enamel-mug", "2", "carbon-steel-pan", "1"]);
    push_command(text, ["ZADD", &format!("sessions:{user}"), seen, token]);
    push_command(text, ["HSET", &format!("devices:{user}"), token, "0123456789abcdef Firefox on Windows"]);
}

fn config() -> Config {
    let variables = [
        ("UPSTASH_REDIS_REST_URL", "http://127.0.0.1"),
        ("UPSTASH_REDIS_REST_TOKEN", TOKEN),
        ("SESSION_KEYS", "the-session-key-of-the-bench-0123456789"),
        ("SESSION_LIMIT", "100000000"),
    ];
    let value = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    Config::from_lookup(value).unwrap_or_else(|errors| panic!("{errors}"))
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
