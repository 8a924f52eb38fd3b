//! Fault injection: failures of a REST database on request, for tests of its clients. Only authorized requests meet
//! faults.

use std::{
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Upstash's error when the commands of a month are used up.
const QUOTA_ERROR: &str = "ERR max requests limit exceeded. Limit: 500000, Usage: 500000. See https://upstash.com/docs/redis/troubleshooting/max_requests_limit for details";

/// A failure to inject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Closes the connection without a response. Executes nothing.
    Refuse,
    /// Responds with this status and body. Executes nothing.
    Status(u16, String),
    /// Responds with 200 and `{"error": …}`. Executes nothing.
    ErrorBody(String),
    /// Responds with 200 and a body that is not JSON, like a captive portal. Executes nothing.
    Garbage,
    /// Waits this long, then executes and responds.
    Slow(Duration),
    /// Executes, then closes the connection without a response.
    LoseReply,
    /// Executes, then responds with the first half of the body.
    Truncate,
    /// Does not execute the second, fourth, … command of a pipeline; an error takes the place of its result. Other
    /// requests are not affected.
    HalfPipeline,
    /// Answers read-only requests from the Redis at this URL, as from a replica that lags behind. A request with the
    /// `upstash-sync-token` of a response since the fault was set is not affected.
    StaleReads(String),
}

/// The requests that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultScope {
    /// Every request.
    Always,
    /// The next N requests.
    Next(u32),
    /// Every Nth request.
    Every(u32),
}

impl Fault {
    /// The names that [`Fault::from_str`] accepts, and the effect of each.
    pub const NAMES: [(&'static str, &'static str); 12] = [
        ("refuse", "close the connection without a response; execute nothing"),
        ("401", "respond as to a wrong token; execute nothing"),
        ("429", "respond as to too many requests; execute nothing"),
        ("500", "respond with an HTML error page; execute nothing"),
        ("error", "respond with status 200 and an error in the body; execute nothing"),
        ("quota", "respond as Upstash does when the commands of a month are used up; execute nothing"),
        ("garbage", "respond with status 200 and a page that is not JSON; execute nothing"),
        ("slow=SECONDS", "wait, then execute and respond"),
        ("lost-reply", "execute, then close the connection without a response"),
        ("truncated", "execute, then respond with the first half of the body"),
        ("half-pipeline", "execute only the first, third, … command of a pipeline"),
        ("stale=REDIS_URL", "answer read-only requests from this Redis, as from a replica that lags behind"),
    ];

    /// The response of Upstash when the commands of a month are used up.
    #[must_use]
    pub fn quota() -> Self {
        Self::Status(400, serde_json::json!({ "error": QUOTA_ERROR }).to_string())
    }
}

/// Parses one of [`Fault::NAMES`].
impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = |text: &str| text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok(match text.split_once('=').map_or((text, ""), |(name, value)| (name, value)) {
            ("refuse", "") => Self::Refuse,
            ("401", "") => Self::Status(401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#.to_owned()),
            ("429", "") => Self::Status(429, r#"{"error":"ERR too many requests"}"#.to_owned()),
            ("500", "") => Self::Status(500, "<html>Internal Server Error</html>".to_owned()),
            ("error", "") => Self::ErrorBody("ERR internal error".to_owned()),
            ("quota", "") => Self::quota(),
            ("garbage", "") => Self::Garbage,
            ("slow", value) => {
                Self::Slow(seconds(value).ok_or("slow needs a number of seconds, for example slow=0.5")?)
            }
            ("lost-reply", "") => Self::LoseReply,
            ("truncated", "") => Self::Truncate,
            ("half-pipeline", "") => Self::HalfPipeline,
            ("stale", url) if !url.is_empty() => Self::StaleReads(url.to_owned()),
            _ => return Err(format!("unknown fault; use one of {}", Self::NAMES.map(|(name, _)| name).join(", "))),
        })
    }
}

/// Decides for each request whether it meets a fault.
#[derive(Debug, Default)]
pub(crate) struct FaultInjector(Mutex<InjectorState>);

#[derive(Debug, Default)]
struct InjectorState {
    active: Option<(Fault, FaultScope)>,
    /// Authorized requests since the active fault was set.
    requests_since_set: u32,
    /// Number of requests that had reached Redis when the active fault was set.
    redis_requests_when_set: u64,
    /// Authorized requests since the start, with and without fault.
    received: u64,
}

impl FaultInjector {
    /// Sets or clears the fault. `redis_requests` is the number of requests that have reached Redis so far.
    pub(crate) fn set(&self, fault: Option<(Fault, FaultScope)>, redis_requests: u64) {
        let mut state = self.lock();
        state.active = fault;
        state.requests_since_set = 0;
        state.redis_requests_when_set = redis_requests;
    }

    /// Number of requests that had reached Redis when the fault was set.
    pub(crate) fn redis_requests_when_set(&self) -> u64 {
        self.lock().redis_requests_when_set
    }

    /// Counts an authorized request and returns the fault that it meets.
    pub(crate) fn next_request(&self) -> Option<Fault> {
        let mut state = self.lock();
        state.received += 1;
        state.requests_since_set = state.requests_since_set.saturating_add(1);
        let (fault, scope) = state.active.as_ref()?;
        let is_affected = match *scope {
            FaultScope::Always => true,
            FaultScope::Next(count) => state.requests_since_set <= count,
            FaultScope::Every(nth) => state.requests_since_set.is_multiple_of(nth.max(1)),
        };
        is_affected.then(|| fault.clone())
    }

    /// Authorized requests since the start.
    pub(crate) fn received(&self) -> u64 {
        self.lock().received
    }

    fn lock(&self) -> MutexGuard<'_, InjectorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
