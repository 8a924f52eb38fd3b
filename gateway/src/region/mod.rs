//! One region of a database with a primary and read replicas, such as an Upstash Global database.
//!
//! A request that only reads is answered by the replica near the gateway. Any other request is forwarded to the
//! primary: writes, scripts except the `_RO` forms, and mixed pipelines as a whole. The sync token of a response is a
//! position in the primary's replication stream. A read with a token waits until the replica has reached that position.
//! If that takes too long, the primary answers.
//!
//! The primary also answers a read if the replica fails, takes more than [`NEAR_TIMEOUT`], or has not received the
//! primary's data since it started. Such a replica is empty, or has an old state.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

use crate::{
    auth::Access,
    policy::{self, Verdict},
    request::Command,
    upstream::{Upstream, UpstreamError},
};

/// A place in a replication stream.
mod position;

/// A server's part in the replication.
mod standing;

/// The replication stream, delayed.
mod link;

use link::Link;
pub(crate) use position::Position;
pub(crate) use standing::Standing;

/// Pause between two looks at a replica's position.
const POLL: Duration = Duration::from_millis(1);
/// The pause of a read doubles up to this. Most replicas lag by a few milliseconds; many reads that wait for one with a
/// longer lag must not keep it busy.
const MAX_POLL: Duration = Duration::from_millis(20);
/// Longest wait for the answer of a replica. After a failure, the primary answers all reads for this time.
const NEAR_TIMEOUT: Duration = Duration::from_secs(1);
/// A client that leaves after this wait leaves because of the replica. Shorter than the time limits of clients, and far
/// longer than an answer takes.
const SLOW: Duration = Duration::from_millis(100);
/// Time for a replica to receive the primary's data.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(30);

/// Configuration of a region.
#[derive(Clone, Debug)]
pub struct RegionOptions {
    /// The primary, in the form of [`Options::redis_url`](crate::Options::redis_url). The same host and port: this is the
    /// primary's region, which has no replica and so no latency and no lag.
    pub primary_url: String,
    /// Round trip between the regions: each forwarded request takes this much longer. Default: 0.
    pub latency: Duration,
    /// Delay of the replication. With a value, the gateway makes its Redis a replica of the primary, over a link with
    /// this delay. Default: `None`, the Redis is a replica already.
    pub lag: Option<Duration>,
    /// Longest wait of a read for the position in its sync token. Default: 1 s.
    pub sync_wait: Duration,
}

impl RegionOptions {
    /// The default of [`RegionOptions::sync_wait`].
    pub const SYNC_WAIT: Duration = Duration::from_secs(1);

    /// Options for this primary, and the defaults for the rest.
    pub fn new(primary_url: impl Into<String>) -> Self {
        Self { primary_url: primary_url.into(), latency: Duration::ZERO, lag: None, sync_wait: Self::SYNC_WAIT }
    }
}

/// The reason why a region does not start.
pub(crate) enum RegionError {
    /// A latency or a lag is given, but the near server is the primary.
    NoReplica,
    /// The cause, which never contains the password.
    Other(String),
}

impl From<String> for RegionError {
    fn from(cause: String) -> Self {
        Self::Other(cause)
    }
}

/// The region of a gateway.
pub(crate) struct Region {
    /// `None` in the primary's own region.
    primary: Option<Upstream>,
    link: Option<Link>,
    latency: Mutex<Duration>,
    sync_wait: Duration,
    forwarded: AtomicU64,
    /// No read is answered near before this moment.
    avoid_near_until: Mutex<Option<Instant>>,
}

impl Region {
    /// Connects to the primary. With a lag, makes `near` its replica, and waits until `near` has the data.
    ///
    /// # Errors
    /// With the cause, which never contains the password.
    pub(crate) async fn start(options: RegionOptions, near: &Upstream, timeout: Duration) -> Result<Self, RegionError> {
        let RegionOptions { primary_url, latency, lag, sync_wait } = options;
        let primary = Upstream::new(&primary_url, timeout)?;
        if near.is_cluster() || primary.is_cluster() {
            return Err("regions work with single servers, not with a Redis Cluster".to_owned().into());
        }
        let primary = (primary.host_and_port() != near.host_and_port()).then_some(primary);
        let is_delayed = !latency.is_zero() || lag.is_some_and(|lag| !lag.is_zero());
        if primary.is_none() && is_delayed {
            return Err(RegionError::NoReplica);
        }
        let mut link = None;
        if let Some(primary) = &primary {
            primary.connect().await?;
            if let Some(lag) = lag {
                let delayed = Link::open(primary.address()).await.map_err(|error| error.to_string())?;
                follow(near, link::HOST, delayed.port()).await?;
                delayed.set_lag(lag);
                link = Some(delayed);
            }
        }
        Ok(Self {
            primary,
            link,
            latency: Mutex::new(latency),
            sync_wait,
            forwarded: AtomicU64::new(0),
            avoid_near_until: Mutex::default(),
        })
    }

    /// Decides about each command, as [`policy::check`]. Asks `near` if a server must be asked, and the primary if `near` does not answer.
    ///
    /// # Errors
    /// When a server must be asked, and none replies.
    pub(crate) async fn check(
        &self,
        near: &Upstream,
        commands: &[Command],
        access: Access,
    ) -> Result<Vec<Verdict>, UpstreamError> {
        let Some(primary) = &self.primary else { return policy::check(commands, access, near).await };
        if !self.avoids_near() {
            let verdicts = async { policy::check(commands, access, near).await.ok() };
            if let Some(verdicts) = self.answer_near(verdicts).await {
                return Ok(verdicts);
            }
        }
        policy::check(commands, access, primary).await
    }

    fn avoids_near(&self) -> bool {
        lock(&self.avoid_near_until).is_some_and(|moment| Instant::now() < moment)
    }

    /// Returns whether `near` may answer a request: it only reads, and `near` has reached the position `seen`.
    ///
    /// # Errors
    /// When a server must be asked which commands only read, and none replies.
    pub(crate) async fn may_answer_near(
        &self,
        near: &Upstream,
        commands: &[Command],
        seen: Option<&Position>,
    ) -> Result<bool, UpstreamError> {
        let Some(primary) = &self.primary else { return Ok(false) };
        if self.avoids_near() {
            return Ok(false);
        }
        let only_reads = match only_read(commands, near).await {
            Err(_) => only_read(commands, primary).await?,
            Ok(only_reads) => only_reads,
        };
        Ok(only_reads && self.has_reached(near, seen).await)
    }

    /// The output of `read`, which `near` answers. `None` if it takes too long or fails: then the primary answers.
    pub(crate) async fn answer_near<T>(&self, read: impl Future<Output = Option<T>>) -> Option<T> {
        let mut asking = AskingNear { region: self, since: Instant::now(), is_answered: false };
        let answer = timeout(NEAR_TIMEOUT, read).await.ok().flatten();
        if answer.is_none() {
            self.avoid_near();
        }
        asking.is_answered = true;
        answer
    }

    fn avoid_near(&self) {
        *lock(&self.avoid_near_until) = Some(Instant::now() + NEAR_TIMEOUT);
    }

    /// The primary, which is a round trip away; `near` in its own region.
    pub(crate) async fn reach_primary<'a>(&'a self, near: &'a Upstream) -> &'a Upstream {
        let Some(primary) = &self.primary else { return near };
        self.forwarded.fetch_add(1, Ordering::Relaxed);
        let latency = *lock(&self.latency);
        sleep(latency).await;
        primary
    }

    /// Requests that were forwarded to the primary.
    pub(crate) fn forwarded(&self) -> u64 {
        self.forwarded.load(Ordering::Relaxed)
    }

    /// Changes [`RegionOptions::latency`].
    pub(crate) fn set_latency(&self, latency: Duration) {
        *lock(&self.latency) = latency;
    }

    /// Changes the delay of the link, if this gateway has one. It holds for bytes under way, too.
    pub(crate) fn set_lag(&self, lag: Duration) {
        if let Some(link) = &self.link {
            link.set_lag(lag);
        }
    }

    /// Lets the replica follow the primary without the link, which ends with the gateway.
    pub(crate) async fn release(&self, near: &Upstream) {
        if let (Some(link), Some(primary)) = (&self.link, &self.primary) {
            link.set_lag(Duration::ZERO);
            let (host, port) = primary.host_and_port();
            // Without an answer, the replica keeps its data and serves it.
            let _ = near.run([&replica_of(host, port)]).await;
        }
    }

    /// Waits until a replica has reached a position. False: it has not within [`RegionOptions::sync_wait`], or it
    /// follows another stream, or it fails.
    async fn has_reached(&self, replica: &Upstream, seen: Option<&Position>) -> bool {
        let Some(seen) = seen else { return true };
        let reached = async {
            let mut pause = POLL;
            loop {
                let standing = self.answer_near(async { replica.standing().await.ok() }).await.flatten();
                match standing.and_then(|standing| standing.position?.has_reached(seen)) {
                    Some(true) => return true,
                    Some(false) => sleep(pause).await,
                    None => return false,
                }
                pause = MAX_POLL.min(pause * 2);
            }
        };
        timeout(self.sync_wait, reached).await.unwrap_or(false)
    }
}

/// A read that the replica has not answered. If the client leaves after [`SLOW`], the primary answers the next reads: the
/// client's time limit may be shorter than [`NEAR_TIMEOUT`].
struct AskingNear<'a> {
    region: &'a Region,
    since: Instant,
    is_answered: bool,
}

impl Drop for AskingNear<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.since.elapsed() >= SLOW {
            self.region.avoid_near();
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a replica may execute these commands.
pub(crate) async fn only_read(commands: &[Command], near: &Upstream) -> Result<bool, UpstreamError> {
    for command in commands {
        if !policy::may_run_on_replica(command, near).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn replica_of(host: &str, port: u16) -> Command {
    Command::from_words(&["REPLICAOF", host, &port.to_string()])
}

/// Makes a server a replica, and waits until it has the primary's data.
async fn follow(replica: &Upstream, host: &str, port: u16) -> Result<(), String> {
    replica.run([&replica_of(host, port)]).await.map_err(|error| error.to_string())?;
    let is_up = async {
        while replica.standing().await.ok().flatten().is_none_or(|standing| !standing.is_linked) {
            sleep(POLL).await;
        }
    };
    timeout(FOLLOW_TIMEOUT, is_up).await.map_err(|_| "it does not receive the primary's data".to_owned())
}
