//! Authorization. A visitor's write must come from a page of this origin; a service must send the service key.
//!
//! Nothing here costs a Redis command.

use http::{HeaderMap, Method, Uri, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{proxy::is_same_origin, routes::problem::Problem};

/// The callers of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone: the route changes nothing and reveals nothing.
    Open,
    /// The visitor's browser, identified by its cookie.
    Visitor,
    /// A service that sends `SERVICE_KEY`. A browser never adds the key by itself, so the origin does not matter.
    Service,
}

impl Access {
    /// Authorizes a request. `service_key` is `SERVICE_KEY`, if it is set.
    ///
    /// # Errors
    /// [`Problem::CrossOrigin`], [`Problem::WrongServiceKey`] or [`Problem::NoServiceKey`].
    pub fn check(
        self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        service_key: Option<&str>,
    ) -> Result<(), Problem> {
        match self {
            // Without a proof of its origin, the request may come from a page of any site.
            Self::Visitor if !method.is_safe() && is_same_origin(uri, headers) != Some(true) => {
                Err(Problem::CrossOrigin)
            }
            Self::Service => match service_key {
                None => Err(Problem::NoServiceKey),
                Some(key) if has_key(headers, key) => Ok(()),
                Some(_) => Err(Problem::WrongServiceKey),
            },
            Self::Open | Self::Visitor => Ok(()),
        }
    }
}

/// True if the request carries `key`. Hashing both keys first makes the comparison take the same time for every key of
/// any length.
fn has_key(headers: &HeaderMap, key: &str) -> bool {
    let sent = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let Some((scheme, sent)) = sent.split_at_checked("Bearer ".len()) else { return false };
    let is_same = Sha256::digest(sent.trim_ascii()).ct_eq(&Sha256::digest(key));
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_a_page_of_this_origin_may_write() {
        let uri: Uri = "https://shop.example/_edge/v1/cart".parse().unwrap();
        for (sent, is_allowed) in [
            (&[][..], false),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://shop.example")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "https://shop.example")], true),
            (&[("origin", "https://shop.example:443")], false),
            (&[("origin", "http://shop.example")], false),
            (&[("origin", "https://shop.example.evil.example")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], false),
            (&[("origin", "https://shop.example"), ("origin", "https://evil.example")], false),
        ] {
            let check = |method| Access::Visitor.check(&method, &uri, &headers(sent), None).is_ok();
            assert_eq!(check(Method::POST), is_allowed, "{sent:?}");
            assert!(check(Method::GET), "{sent:?}");
        }
        let local: Uri = "http://localhost:8787/".parse().unwrap();
        assert_eq!(is_same_origin(&local, &headers(&[("origin", "http://localhost:8787")])), Some(true));
    }

    #[test]
    fn a_service_needs_the_right_key() {
        let uri = Uri::from_static("https://shop.example/_edge/v1/jobs");
        let check = |sent: &[_], key| Access::Service.check(&Method::POST, &uri, &headers(sent), key);
        assert!(check(&[("authorization", "Bearer 0123456789abcdef")], Some("0123456789abcdef")).is_ok());
        assert!(check(&[("authorization", "bearer 0123456789abcdef")], Some("0123456789abcdef")).is_ok());
        for wrong in ["Bearer 0123456789abcdeg", "Bearer ", "Bearer", "Basic 0123456789abcdef", "0123456789abcdef", ""]
        {
            assert!(check(&[("authorization", wrong)], Some("0123456789abcdef")).is_err(), "{wrong}");
        }
        assert!(matches!(check(&[("authorization", "Bearer ")], None), Err(Problem::NoServiceKey)));
    }
}
