//! What a candidate stands on: a Valkey of its own with the REST gateway in front, filled alike for all, and what went through both. A
//! server each, so that what a candidate does behind its answers is counted as its own.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use edgefront::{config::Config, ports::time::Timestamp, schema::token::Token, sessions::Keyring};
use edgefront_gateway::{
    Fault, Gateway, Options,
    server::{Server, ServerOptions},
};
use redis::{Pipeline, aio::MultiplexedConnection};

use super::{
    statistics,
    workload::{CART_ITEMS, COLD_ITEMS, ITEMS, SESSIONS},
};
use xtask::failure::Failure;

/// The gateway's token; both ends are ours.
pub const TOKEN: &str = "bench";
/// How many things one request to Redis brings.
const AT_ONCE: usize = 10_000;

/// A running Redis, and its gateway. Ends when dropped.
pub struct Backend {
    gateway: Gateway,
    connection: MultiplexedConnection,
    _server: Server,
}

/// What went through since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// HTTP requests.
    pub requests: u64,
    /// Commands, as Upstash bills them: also those that a script calls.
    pub commands: u64,
}

/// A visitor who is signed in.
pub struct Visitor {
    token: Token,
    /// As the browser sends it.
    pub cookie: String,
}

/// Signs in as many visitors as the load needs.
///
/// # Errors
/// When there are no random bits.
pub fn visitors(config: &Config, now: Timestamp) -> Result<Vec<Visitor>, Failure> {
    let keyring = Keyring::new(&config.session);
    let visitor = |_| {
        let token = Token::new(now)?;
        Ok(Visitor { cookie: keyring.pair(&token)?, token })
    };
    (0..SESSIONS)
        .map(visitor)
        .collect::<Result<_, edgefront::ports::error::Error>>()
        .map_err(|cause| Failure::new(cause.to_string(), ""))
}

impl Backend {
    /// Starts both, and fills Redis.
    ///
    /// # Errors
    /// When one of them does not start.
    pub async fn start(binary: &Path, visitors: &[Visitor], now: Timestamp) -> Result<Self, Failure> {
        let options = ServerOptions { binary: Some(binary.to_owned()), databases: 1, ..ServerOptions::default() };
        let server = Server::start(options).map_err(|cause| Failure::new(cause.to_string(), ""))?;
        let gateway = Gateway::start(Options::new(server.url(), TOKEN)).await;
        let gateway = gateway.map_err(|cause| Failure::new(cause.to_string(), ""))?;
        let client = redis::Client::open(server.url()).map_err(|cause| failed(&cause))?;
        let connection = client.get_multiplexed_async_connection().await.map_err(|cause| failed(&cause))?;
        let backend = Self { gateway, connection, _server: server };
        backend.fill(visitors, now).await?;
        Ok(backend)
    }

    /// For `UPSTASH_REDIS_REST_URL`.
    pub fn url(&self) -> String {
        self.gateway.url()
    }

    /// Lets every request wait so long before it is executed, as if Redis were that far away.
    pub fn set_latency(&self, latency: Duration) {
        self.gateway.set_fault((!latency.is_zero()).then_some(Fault::Slow(latency)));
    }

    /// The median time of a request to Redis at this latency, milliseconds.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn round_trip(&self, latency: Duration) -> Result<f64, Failure> {
        self.set_latency(latency);
        let client = reqwest::Client::new();
        let mut times = Vec::new();
        for _ in 0..50 {
            let started = Instant::now();
            let request = client.post(self.url()).bearer_auth(TOKEN).body(r#"["PING"]"#);
            let answer = request.send().await.map_err(|cause| Failure::new(cause.to_string(), ""))?;
            answer.bytes().await.map_err(|cause| Failure::new(cause.to_string(), ""))?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        Ok(statistics::median(times).unwrap_or_default())
    }

    /// What went through until now.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub async fn counts(&self) -> Result<Counts, Failure> {
        let info = redis::cmd("INFO").arg("commandstats").query_async::<String>(&mut self.connection.clone()).await;
        let commands = calls(&info.map_err(|cause| failed(&cause))?);
        Ok(Counts { requests: self.gateway.counts().requests, commands })
    }

    /// Deletes the stored pages: those of 20 KB that are asked for once would fill the memory.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub async fn forget_pages(&self) -> Result<(), Failure> {
        let mut cursor = String::from("0");
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg("cache:*").arg("COUNT").arg(AT_ONCE);
            let found = scan.query_async(&mut self.connection.clone()).await;
            let (next, keys): (String, Vec<String>) = found.map_err(|cause| failed(&cause))?;
            if !keys.is_empty() {
                let mut unlink = redis::cmd("UNLINK");
                unlink.arg(keys).exec_async(&mut self.connection.clone()).await.map_err(|cause| failed(&cause))?;
            }
            if next == "0" {
                // edgefront's account of them.
                let mut unlink = redis::cmd("UNLINK");
                unlink.arg(&["pages:", "dying:", "bytes:"]);
                return unlink.exec_async(&mut self.connection.clone()).await.map_err(|cause| failed(&cause));
            }
            cursor = next;
        }
    }

    /// The layout is the book's: sessions, carts, rows and the ranking are for every candidate the same keys.
    async fn fill(&self, visitors: &[Visitor], now: Timestamp) -> Result<(), Failure> {
        let mut pipeline = redis::pipe();
        for (number, visitor) in visitors.iter().enumerate() {
            let token = visitor.token.as_str();
            pipeline.hset("login:", token, format!("user-{number}"));
            pipeline.zadd("recent:", token, now.as_score());
            for item in 0..CART_ITEMS {
                pipeline.hset(format!("cart:{token}"), format!("item-{item}"), 1);
            }
        }
        let next = now.as_score() + f64::from(ROW_PERIOD);
        for number in 0..ITEMS {
            let item = format!("item-{number}");
            pipeline.zadd("viewed:", &item, -1_000_000);
            pipeline.zadd("delay:", &item, ROW_PERIOD);
            pipeline.zadd("schedule:", &item, next);
            pipeline.set(format!("inv:{item}"), row(&item));
        }
        self.send(&pipeline).await?;
        let cold: Vec<_> = (0..COLD_ITEMS).map(|number| (-1, format!("cold-{number}"))).collect();
        for some in cold.chunks(AT_ONCE) {
            let mut pipeline = redis::pipe();
            pipeline.zadd_multiple("viewed:", some);
            self.send(&pipeline).await?;
        }
        Ok(())
    }

    async fn send(&self, pipeline: &Pipeline) -> Result<(), Failure> {
        pipeline.exec_async(&mut self.connection.clone()).await.map_err(|cause| failed(&cause))
    }
}

/// Seconds between two refreshes of a row: none falls into the run.
const ROW_PERIOD: u32 = 86_400;

/// A row of an inventory.
fn row(item: &str) -> String {
    format!(
        r#"{{"id":"{item}","name":"A thing to be sold","price_cents":1990,"stock":42,"sale_starts_at":0,"sale_ends_at":0}}"#
    )
}

fn failed(cause: &redis::RedisError) -> Failure {
    Failure::new(format!("Redis: {cause}"), "")
}

/// The calls that `INFO commandstats` tells, without those that only connect and measure.
fn calls(info: &str) -> u64 {
    let own = ["info", "hello", "client", "select", "scan", "unlink"];
    let calls = |line: &str| {
        let (command, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let is_own = own.iter().any(|own| command.split('|').next() == Some(own));
        let calls = figures.strip_prefix("calls=")?.split(',').next()?;
        if is_own { None } else { calls.parse::<u64>().ok() }
    };
    info.lines().filter_map(calls).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_candidate_sent_is_counted() {
        let info = "# Commandstats\r\ncmdstat_hget:calls=2,usec=5,usec_per_call=2.50\r\ncmdstat_client|setinfo:calls=4,usec=1\r\n\
            cmdstat_evalsha:calls=3,usec=9\r\ncmdstat_info:calls=7,usec=9\r\n";
        assert_eq!(calls(info), 5);
    }
}
