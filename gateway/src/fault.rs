//! Ways in which a REST database fails, for tests of its clients, and for whoever wants to see what their shop does then. Faults meet
//! authorised requests only.

use std::{
    str::FromStr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// What Upstash says when a month's commands are spent.
const QUOTA: &str = "ERR max requests limit exceeded. Limit: 500000, Usage: 500000. See https://upstash.com/docs/redis/troubleshooting/max_requests_limit for details";

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is closed without an answer; nothing is executed.
    Refuse,
    /// This status and body; nothing is executed.
    Status(u16, String),
    /// 200 with `{"error": …}`; nothing is executed.
    ErrorBody(String),
    /// 200 with a body that is not JSON, as of a captive portal; nothing is executed.
    Garbage,
    /// Waits this long, then executes and answers.
    Slow(Duration),
    /// Executes, then closes the connection without an answer.
    LoseReply,
    /// Executes, then answers with the first half of the body.
    Truncate,
    /// Of a pipeline, every second command is not executed and has an error in its place. All else is as ever.
    HalfPipeline,
    /// Requests that only read are answered by the Redis at this URL, a replica that lags behind, unless they carry the
    /// `upstash-sync-token` of an answer since the fault began.
    StaleReads(String),
}

/// Which requests meet a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// The next so many.
    Next(u32),
    /// One in so many, the last of each.
    Every(u32),
}

impl Fault {
    /// The names that [`Fault::from_str`] understands, and what each does.
    pub const NAMES: [(&'static str, &'static str); 12] = [
        ("refuse", "close the connection without an answer, execute nothing"),
        ("401", "answer as to a wrong token, execute nothing"),
        ("429", "answer as to too many requests, execute nothing"),
        ("500", "answer with an error page, execute nothing"),
        ("error", "answer 200 with an error in the body, execute nothing"),
        ("quota", "answer as Upstash does when the month's commands are spent, execute nothing"),
        ("garbage", "answer 200 with a page that is not JSON, execute nothing"),
        ("slow=SECONDS", "wait, then execute and answer"),
        ("lost-reply", "execute, then close the connection without an answer"),
        ("truncated", "execute, then answer with the first half of the body"),
        ("half-pipeline", "of a pipeline, execute the first, third, … command only"),
        ("stale=REDIS_URL", "answer requests that only read from this Redis, a replica that lags behind"),
    ];

    /// The fault that Upstash's used-up quota is.
    #[must_use]
    pub fn quota() -> Self {
        Self::Status(400, serde_json::json!({ "error": QUOTA }).to_string())
    }
}

/// Reads one of [`Fault::NAMES`].
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
            ("slow", value) => Self::Slow(seconds(value).ok_or("slow needs seconds, as in slow=0.5")?),
            ("lost-reply", "") => Self::LoseReply,
            ("truncated", "") => Self::Truncate,
            ("half-pipeline", "") => Self::HalfPipeline,
            ("stale", url) if !url.is_empty() => Self::StaleReads(url.to_owned()),
            _ => return Err(format!("there are: {}", Self::NAMES.map(|(name, _)| name).join(", "))),
        })
    }
}

/// The fault of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    set: Option<(Fault, When)>,
    /// Requests since the fault was set.
    asked: u32,
    /// How many requests had reached Redis then.
    since: u64,
    /// Requests since the start, whether they met a fault or not.
    received: u64,
}

impl Faults {
    /// Sets or ends a fault; `requests` have reached Redis until now.
    pub(crate) fn set(&self, fault: Option<(Fault, When)>, requests: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.set, state.asked, state.since) = (fault, 0, requests);
    }

    /// How many requests had reached Redis when the fault was set.
    pub(crate) fn since(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).since
    }

    /// What the request that has just come meets.
    pub(crate) fn next(&self) -> Option<Fault> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.received += 1;
        state.asked = state.asked.saturating_add(1);
        let (fault, when) = state.set.as_ref()?;
        let is_met = match *when {
            When::Always => true,
            When::Next(requests) => state.asked <= requests,
            When::Every(requests) => state.asked.is_multiple_of(requests.max(1)),
        };
        is_met.then(|| fault.clone())
    }

    pub(crate) fn received(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).received
    }
}
