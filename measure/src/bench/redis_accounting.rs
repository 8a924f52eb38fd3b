//! Attributes Redis usage to the load that caused it. A candidate can send commands seconds after its responses. So the
//! usage of a load is read when the next load of the same candidate begins.

use std::collections::HashMap;

use xtask::failure::Failure;

use super::{
    backend::RedisUsage,
    candidate::RunningCandidate,
    results::{ResultKey, Results},
};

/// The open accounts, by candidate.
#[derive(Default)]
pub struct RedisAccounting {
    accounts: HashMap<String, Account>,
}

struct Account {
    /// The usage at the beginning of the load.
    before: RedisUsage,
    /// The load and the number of its requests; `None` for a load without a measurement.
    load: Option<(ResultKey, u64)>,
}

impl RedisAccounting {
    /// Ends the account of the candidate's latest load and begins a new one.
    ///
    /// # Errors
    /// When Redis does not answer.
    pub async fn settle(&mut self, running: &RunningCandidate, results: &mut Results) -> Result<(), Failure> {
        let Some(backend) = &running.backend else { return Ok(()) };
        let now = backend.usage().await?;
        let next = Account { before: now, load: None };
        if let Some(Account { before, load: Some((key, sent)) }) =
            self.accounts.insert(running.candidate.name.clone(), next)
        {
            results.add_redis_usage(&key, sent, before, now);
        }
        Ok(())
    }

    /// Names the load to which the current account belongs.
    pub fn attribute(&mut self, key: &ResultKey, sent: u64) {
        if let Some(account) = self.accounts.get_mut(&key.candidate) {
            account.load = Some((key.clone(), sent));
        }
    }
}
