//! Authentication by token. Tokens are compared in constant time, so response times do not help to guess one.

use http::{HeaderMap, header::AUTHORIZATION};
use subtle::ConstantTimeEq;

/// Access that a token grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Every command that the gateway permits.
    Full,
    /// Only commands that read.
    ReadOnly,
}

/// The tokens of a gateway; neither is empty.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) full: String,
    pub(crate) read_only: Option<String>,
}

impl Tokens {
    /// Checks the token of a request. `_token` in the query takes precedence over the `Authorization` header. `None`
    /// when the token is missing, empty or wrong.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, query_token: Option<&[u8]>) -> Option<Access> {
        let presented = query_token.or_else(|| bearer_token(headers))?;
        let matches = |token: &str| bool::from(presented.ct_eq(token.as_bytes()));
        if matches(&self.full) {
            return Some(Access::Full);
        }
        let read_only = self.read_only.as_deref()?;
        matches(read_only).then_some(Access::ReadOnly)
    }
}

/// The token of `Authorization: Bearer token`. The documents of Upstash show no other form, and do not tell what happens
/// to one. The gateway refuses every other form, so that a client that works here does not fail there.
fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
