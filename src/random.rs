//! Random bits: `crypto.getRandomValues` in a Worker, the system's source natively.

use crate::error::Error;

/// So many random bytes.
///
/// # Errors
/// [`Error::Platform`] if the platform has none.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::Platform("no random bits".to_owned()))?;
    Ok(bytes)
}
