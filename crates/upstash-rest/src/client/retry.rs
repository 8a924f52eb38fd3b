//! Retries.

use crate::error::Error;

/// Returns the result of the first attempt, or makes a second one if the commands are repeatable and the failure may
/// pass. If both fail, the error is the first one. There is no backoff: the deadline leaves time for the second
/// attempt, or the attempt ends with it.
pub async fn retry_once<T>(
    first: Result<T, Error>,
    is_repeatable: bool,
    second: impl AsyncFnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    match first {
        Err(error) if is_repeatable && error.is_transient() => {
            // Boxed, as a second attempt is rare: otherwise the future of every call would have room for it.
            Box::pin(second()).await.map_err(|_| error)
        }
        result => result,
    }
}
