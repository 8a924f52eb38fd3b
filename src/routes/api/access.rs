//! Who may ask. A visitor's browser must have been told by our own pages; a service must hold the key.
//!
//! Nothing here asks Redis.

use http::{HeaderMap, Method, Uri, header};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use url::Url;

use crate::routes::problem::Problem;

/// Who a route is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody, whatever they send: it changes nothing and tells nothing.
    Open,
    /// The visitor's own browser, by its cookie.
    Visitor,
    /// Whoever holds `SERVICE_KEY`. A browser never adds that by itself, so the origin does not matter.
    Service,
}

impl Access {
    /// Lets a request in, or says why not. `service_key` is `SERVICE_KEY`, if there is one.
    ///
    /// # Errors
    /// [`Problem::ForeignOrigin`], [`Problem::NotTheService`] or [`Problem::NoServiceKey`].
    pub fn check(
        self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        service_key: Option<&str>,
    ) -> Result<(), Problem> {
        match self {
            Self::Visitor if !method.is_safe() && !is_same_origin(uri, headers) => Err(Problem::ForeignOrigin),
            Self::Service => match service_key {
                None => Err(Problem::NoServiceKey),
                Some(key) if has_key(headers, key) => Ok(()),
                Some(_) => Err(Problem::NotTheService),
            },
            Self::Open | Self::Visitor => Ok(()),
        }
    }
}

/// Returns whether one of our own pages sent this.
///
/// `Sec-Fetch-Site` is the browser's own word and no script can set it. `none` (the address bar, a bookmark) never comes
/// with an unsafe method, so it is refused like `same-site` and `cross-site`. A browser without it sends `Origin`; a
/// client that sends neither may be anything that carries cookies, and is refused too, as is one that sends two.
fn is_same_origin(uri: &Uri, headers: &HeaderMap) -> bool {
    let sites = headers.get_all("sec-fetch-site");
    if sites.iter().next().is_some() {
        return sites.iter().eq(["same-origin"]);
    }
    let own = Url::parse(&uri.to_string()).map(|url| url.origin());
    own.is_ok_and(|own| own.is_tuple() && headers.get_all(header::ORIGIN).iter().eq([&own.ascii_serialization()]))
}

/// Returns whether the request carries `key`. Both are hashed first: the comparison then takes the same time for every key, of
/// whatever length.
fn has_key(headers: &HeaderMap, key: &str) -> bool {
    let sent = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let Some((scheme, sent)) = sent.split_at_checked("Bearer ".len()) else { return false };
    let same = Sha256::digest(sent.trim_ascii()).ct_eq(&Sha256::digest(key));
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_a_page_of_our_own_may_write() {
        let uri: Uri = "https://shop.example/_edge/v1/cart".parse().unwrap();
        for (sent, let_in) in [
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
            assert_eq!(check(Method::POST), let_in, "{sent:?}");
            assert!(check(Method::GET), "{sent:?}");
        }
        let local: Uri = "http://localhost:8787/".parse().unwrap();
        assert!(is_same_origin(&local, &headers(&[("origin", "http://localhost:8787")])));
    }

    #[test]
    fn the_service_shows_its_key() {
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
