//! The Redis of one candidate: a Valkey with the REST gateway in front. Each candidate has its own, so that the
//! commands that it sends after its responses are counted for it.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use edgefront::schema::families;
use edgefront_gateway::Fault;
use redis::{RedisError, aio::MultiplexedConnection};
use xtask::failure::Failure;

use super::{dataset, visitor_session::VisitorSession};
use crate::{rest_redis::RestRedis, statistics, worker_variables::GATEWAY_TOKEN};

/// The number of keys that one SCAN visits.
const SCAN_COUNT: usize = 10_000;
/// The number of requests that [`Backend::round_trip_ms`] measures.
const PINGS: usize = 50;

/// A running Valkey and its gateway. Dropping it ends both.
pub struct Backend {
    rest: RestRedis,
    connection: MultiplexedConnection,
}

/// The requests and commands since the start of a backend.
#[derive(Debug, Clone, Copy, Default)]
pub struct RedisUsage {
    /// HTTP requests to the gateway.
    pub requests: u64,
    /// Commands as Upstash bills them, including those that a script calls.
    pub commands: u64,
}

impl Backend {
    /// Starts the server at `binary` and the gateway, and fills Redis with the data set. `now` is the time since the
    /// Unix epoch.
    ///
    /// # Errors
    /// When one of them does not start, or Redis rejects a command.
    pub async fn start(binary: &Path, sessions: &[VisitorSession], now: Duration) -> Result<Self, Failure> {
        let rest = RestRedis::start(binary, None).await?;
        let client = redis::Client::open(rest.server.url()).map_err(|cause| redis_failure(&cause))?;
        let connection = client.get_multiplexed_async_connection().await.map_err(|cause| redis_failure(&cause))?;
        dataset::fill(&connection, sessions, now).await.map_err(|cause| redis_failure(&cause))?;
        Ok(Self { rest, connection })
    }

    /// For `UPSTASH_REDIS_REST_URL`.
    pub fn url(&self) -> String {
        self.rest.gateway.url()
    }

    /// Simulates a distant Redis: every request waits for `latency` before its execution.
    pub fn set_latency(&self, latency: Duration) {
        self.rest.gateway.set_fault((!latency.is_zero()).then_some(Fault::Slow(latency)));
    }

    /// The median duration of a request to Redis with this latency, milliseconds.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn round_trip_ms(&self, latency: Duration) -> Result<f64, Failure> {
        self.set_latency(latency);
        let failed = |cause: reqwest::Error| Failure::new(format!("the gateway: {cause}"), "");
        let client = reqwest::Client::new();
        let mut times = Vec::new();
        for _ in 0..PINGS {
            let started = Instant::now();
            let request = client.post(self.url()).bearer_auth(GATEWAY_TOKEN).body(r#"["PING"]"#);
            request.send().await.map_err(failed)?.bytes().await.map_err(failed)?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        Ok(statistics::median(times).unwrap_or_default())
    }

    /// The requests and commands until now.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub async fn usage(&self) -> Result<RedisUsage, Failure> {
        let info = redis::cmd("INFO").arg("commandstats").query_async::<String>(&mut self.connection.clone()).await;
        let commands = count_commands(&info.map_err(|cause| redis_failure(&cause))?);
        Ok(RedisUsage { requests: self.rest.gateway.counts().requests, commands })
    }

    /// Deletes the stored pages. The cold pages, 20 KB each, would fill the memory.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub async fn delete_pages(&self) -> Result<(), Failure> {
        // edgefront ends most leases by the page that names them. Without the page, requests would wait for its render.
        for family in [families::PAGE, families::RENDER_LEASE] {
            self.delete_matching(&format!("{}*", family.prefix())).await?;
        }
        // edgefront's account of the stored pages.
        self.unlink(&[families::STORED_PAGES.prefix().to_owned()]).await
    }

    async fn delete_matching(&self, pattern: &str) -> Result<(), Failure> {
        let mut connection = self.connection.clone();
        let mut cursor = String::from("0");
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
            let found = scan.query_async(&mut connection).await;
            let (next, keys): (String, Vec<String>) = found.map_err(|cause| redis_failure(&cause))?;
            if !keys.is_empty() {
                self.unlink(&keys).await?;
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    async fn unlink(&self, keys: &[String]) -> Result<(), Failure> {
        let mut unlink = redis::cmd("UNLINK");
        unlink.arg(keys).exec_async(&mut self.connection.clone()).await.map_err(|cause| redis_failure(&cause))
    }
}

fn redis_failure(cause: &RedisError) -> Failure {
    Failure::new(format!("Redis: {cause}"), "")
}

/// Adds up the calls in `INFO commandstats`, without the commands of the benchmark itself.
fn count_commands(info: &str) -> u64 {
    let own_commands = ["info", "hello", "client", "select", "scan", "unlink"];
    let calls = |line: &str| {
        let (command, figures) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let is_own = own_commands.iter().any(|own| command.split('|').next() == Some(own));
        let calls = figures.strip_prefix("calls=")?.split(',').next()?;
        if is_own { None } else { calls.parse::<u64>().ok() }
    };
    info.lines().filter_map(calls).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_commands_of_the_candidate_count() {
        let info = "# Commandstats\r\ncmdstat_hget:calls=2,usec=5,usec_per_call=2.50\r\n\
            cmdstat_client|setinfo:calls=4,usec=1\r\ncmdstat_evalsha:calls=3,usec=9\r\ncmdstat_info:calls=7,usec=9\r\n";
        assert_eq!(count_commands(info), 5);
    }
}
