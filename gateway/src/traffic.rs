//! Counters and a log of the requests that reached Redis, so that tests can assert the cost of an operation. The log
//! contains names of commands, never keys or values.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::request::{Command, RequestKind};

/// The log keeps this many requests.
const LOG_CAPACITY: usize = 1_000;

/// Totals since the gateway started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// HTTP requests with commands for Redis, including those that found Redis unreachable. Rejected requests (no valid
    /// token, malformed, all commands refused) do not count.
    pub requests: u64,
    /// Commands sent to Redis. Like Upstash's bill, it counts each command of a pipeline or transaction.
    pub commands: u64,
}

/// One HTTP request that reached Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The form in which the request carried its commands.
    pub kind: RequestKind,
    /// The names of its commands, in order and in upper case, such as `EVALSHA`.
    pub commands: Vec<String>,
}

/// Records traffic: the totals and the last [`LOG_CAPACITY`] requests.
#[derive(Debug, Default)]
pub(crate) struct TrafficRecorder(Mutex<Traffic>);

#[derive(Debug, Default)]
struct Traffic {
    counts: Counts,
    log: VecDeque<LogEntry>,
}

impl TrafficRecorder {
    /// Records a request and returns the number of requests so far, including this one.
    pub(crate) fn record<'a>(&self, kind: RequestKind, commands: impl Iterator<Item = &'a Command>) -> u64 {
        let commands: Vec<String> = commands.map(Command::name).collect();
        let mut traffic = self.lock();
        traffic.counts.requests += 1;
        traffic.counts.commands += commands.len() as u64;
        if traffic.log.len() == LOG_CAPACITY {
            traffic.log.pop_front();
        }
        traffic.log.push_back(LogEntry { kind, commands });
        traffic.counts.requests
    }

    /// The totals since the start.
    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// The last [`LOG_CAPACITY`] requests, oldest first.
    pub(crate) fn log(&self) -> Vec<LogEntry> {
        self.lock().log.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Traffic> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
