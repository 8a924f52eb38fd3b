//! Who may do what: the full token everything that is not refused, the read-only token reads. An absent, wrong or empty
//! token gets nothing, and a comparison takes the same time wherever two tokens differ.

use http::{HeaderMap, header::AUTHORIZATION};
use subtle::ConstantTimeEq;

/// What a request's token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Full,
    ReadOnly,
}

/// The tokens of a gateway.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) full: String,
    pub(crate) read_only: Option<String>,
}

impl Tokens {
    /// The access of a request with these headers and this `_token` of the query, which wins; `None`: 401.
    pub(crate) fn access(&self, headers: &HeaderMap, query_token: Option<&[u8]>) -> Option<Access> {
        let presented = query_token.or_else(|| bearer(headers))?;
        let is = |token: &str| bool::from(presented.ct_eq(token.as_bytes()));
        if is(&self.full) {
            return Some(Access::Full);
        }
        let read_only = self.read_only.as_deref()?;
        is(read_only).then_some(Access::ReadOnly)
    }
}

/// The token of `Authorization: Bearer token`; the scheme may be missing, as Upstash takes it.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    match value.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(token.trim_ascii()),
        _ => Some(value),
    }
}
