//! Retries.

use crate::{error::Error, sync::CallSync};

/// Returns the result of the first attempt, or makes a second one if the commands are repeatable and the failure may
/// pass. If both fail, the error is the first one. There is no backoff: the deadline leaves time for the second
/// attempt, or the attempt ends with it. If there is no response, the scope of the call notes the lost write.
pub async fn retry_once<T>(
    first: Result<T, Error>,
    is_repeatable: bool,
    sync: &CallSync,
    second: impl AsyncFnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let result = match first {
        Err(error) if is_repeatable && error.is_transient() => {
            // Boxed, because a second attempt is rare: the future of every call stays small.
            Box::pin(second()).await.map_err(|_| error)
        }
        result => result,
    };
    if result.as_ref().is_err_and(Error::is_transient) {
        sync.lose();
    }
    result
}
