//! Throttles sign-in attempts by account and network together.
//!
//! A limit by account alone would let an attacker lock the owner out. A limit by network alone would let an attacker
//! with many networks try one account without end. So there are two limits:
//! - Each pair of account and network has a delay that doubles with each failure.
//! - All networks together have a rate limit for each account. It does not apply to a network from which the owner has
//!   signed in, so many attackers cannot lock the owner out there (OWASP, "Slow Down Online Guessing Attacks with
//!   Device Cookies").

use serde::Deserialize;
use serde_json::{Value, json};

use super::rows::deserialize_rows;
use crate::ports::{database::Database, error::Error, network::ClientNetwork, time::Timestamp};

/// The attempts of one account from one network.
pub(super) struct SignInAttempts<'a> {
    pub database: &'a dyn Database,
    /// The account's email. It need not have an account.
    pub user: &'a str,
    pub network: Option<ClientNetwork>,
    pub now: Timestamp,
}

/// The decision about an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The attempt counts as failed until [`SignInAttempts::succeed`].
    Allowed {
        /// The user has signed in from this network.
        is_known: bool,
    },
    /// Seconds until the next attempt.
    Wait(u64),
}

/// SQL: the delay after `failures` in seconds. Five attempts are free. Then the delay is 1 s, and it doubles up to 15
/// minutes.
macro_rules! delay {
    () => {
        "CASE WHEN failures < 5 THEN 0 ELSE min(900, 1 << (failures - 5)) END"
    };
}

/// A month after its last attempt, a row is deleted.
const DELETE_OLD: &str = "DELETE FROM sign_in_attempts WHERE tried_at < ?1 - 30 * 86400";
/// Counts an attempt unless it comes too early. After a day without an attempt, the count begins anew.
const COUNT: &str = concat!(
    "INSERT INTO sign_in_attempts (user, network, failures, tried_at) VALUES (?1, ?2, 1, ?3)
    ON CONFLICT (user, network) DO UPDATE SET tried_at = ?3,
        failures = CASE WHEN tried_at < ?3 - 86400 THEN 1 ELSE min(failures + 1, 20) END
    WHERE tried_at + ",
    delay!(),
    " <= ?3 RETURNING signed_in_at IS NOT NULL AS is_known"
);
const REMAINING: &str = concat!(
    "SELECT max(1, tried_at + ",
    delay!(),
    " - ?3) AS seconds FROM sign_in_attempts WHERE user = ?1 AND network = ?2"
);
const SUCCEED: &str = "INSERT INTO sign_in_attempts (user, network, failures, tried_at, signed_in_at)
    VALUES (?1, ?2, 0, ?3, ?3) ON CONFLICT (user, network) DO UPDATE SET failures = 0, tried_at = ?3, signed_in_at = ?3";

#[derive(Deserialize)]
struct Counted {
    is_known: u8,
}

#[derive(Deserialize)]
struct Remaining {
    seconds: u64,
}

impl SignInAttempts<'_> {
    /// Counts an attempt, before the password is checked: concurrent attempts cannot all use the same free one. An
    /// attempt that comes too early does not count, so it does not prolong the delay.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub(super) async fn count(&self) -> Result<Admission, Error> {
        let statements =
            [(DELETE_OLD, vec![json!(self.now.as_secs())]), (COUNT, self.binds()), (REMAINING, self.binds())];
        let mut results = self.database.transaction(&statements).await?.into_iter().skip(1);
        let (counted, remaining) = (results.next().unwrap_or_default(), results.next().unwrap_or_default());
        if let Some(Counted { is_known }) = deserialize_rows(counted)?.pop() {
            return Ok(Admission::Allowed { is_known: is_known != 0 });
        }
        Ok(Admission::Wait(deserialize_rows(remaining)?.pop().map_or(1, |Remaining { seconds }| seconds)))
    }

    /// Records a sign-in. From now on the network is known. A failure is only logged, because the user is signed in.
    pub(super) async fn succeed(&self) {
        if let Err(error) = self.database.query(SUCCEED, &self.binds()).await {
            log::warn!("a sign-in was not recorded: {error}");
        }
    }

    fn binds(&self) -> Vec<Value> {
        let network = self.network.map(|network| network.to_string()).unwrap_or_default();
        vec![json!(self.user), json!(network), json!(self.now.as_secs())]
    }
}
