//! What went to Redis, so that a test can assert what a visit costs. It holds names of commands, never keys or values.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use crate::{Form, request::Command};

/// Requests that the log remembers.
const LOG_LENGTH: usize = 1_000;

/// Totals since the gateway started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// HTTP requests with commands for Redis, also when it was down; a refused one (no token, malformed, a forbidden
    /// command) has none.
    pub requests: u64,
    /// Commands sent to Redis; each item of a pipeline or transaction is one, as Upstash bills them.
    pub commands: u64,
}

/// One HTTP request that reached Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How it came.
    pub form: Form,
    /// The names of its commands in upper case and in order, such as `EVALSHA`.
    pub commands: Vec<String>,
}

/// The totals and the last [`LOG_LENGTH`] requests.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<(Counts, VecDeque<Entry>)>);

impl Tally {
    /// Notes a request and returns the total of requests, itself included.
    pub(crate) fn note<'a>(&self, form: Form, commands: impl Iterator<Item = &'a Command>) -> u64 {
        let commands: Vec<String> = commands.map(Command::name).collect();
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (counts, log) = &mut *tally;
        counts.requests += 1;
        counts.commands += commands.len() as u64;
        if log.len() == LOG_LENGTH {
            log.pop_front();
        }
        log.push_back(Entry { form, commands });
        counts.requests
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn log(&self) -> Vec<Entry> {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.1.iter().cloned().collect()
    }
}
