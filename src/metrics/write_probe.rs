//! Checks that Redis accepts writes.

use crate::{ports::error::Error, schema::redis::Redis};
use upstash_rest::Command;

/// Sends a write that changes nothing. A read does not suffice: a full Redis, or a replica, still answers reads.
///
/// # Errors
/// [`Error::Redis`] if Redis refuses the write or does not answer.
pub async fn check_writable(redis: &Redis) -> Result<(), Error> {
    let no_change = Command::write("ZADD").arg(redis.keys().ranking()).arg("XX").num(0).arg("").repeatable();
    Ok(redis.run(no_change).await?)
}
