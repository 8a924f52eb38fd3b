//! Header rules: the request headers that may select a page, and their values.

use std::fmt;

use http::{HeaderName, HeaderValue, header};

use super::entries;
use crate::ports::header_names::{is_edge, is_hop_by_hop, is_of_proxies};

/// Headers that no shared render carries: they belong to one visitor, ask for less than the whole page, or are set by
/// edgefront.
const NEVER: [&str; 19] = [
    "accept-encoding",
    "authorization",
    "cache-control",
    "cf-connecting-ip",
    // The same address with "Pseudo IPv4" of Cloudflare.
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "pragma",
    "range",
    "surrogate-capability",
];

/// Returns whether a header may select a page. All others belong to one visitor, describe the connection, or are set by
/// edgefront, so that no shared render carries them.
#[must_use]
pub fn may_select(name: &HeaderName) -> bool {
    let text = name.as_str();
    !NEVER.contains(&text) && !is_edge(name) && !is_of_proxies(name) && !is_hop_by_hop(text)
}

/// Parses the names of headers that may select a page, separated by commas.
///
/// # Errors
/// The first entry that names no such header.
pub fn selecting_headers(list: &str) -> Result<Vec<HeaderName>, String> {
    let parse = |name: &str| match HeaderName::try_from(name) {
        // Both are valid in a name (RFC 9110 §5.6.2), but here they are a wildcard and the sign of an addition.
        Ok(name) if !name.as_str().contains(['*', '+']) => {
            if may_select(&name) {
                Ok(name)
            } else {
                Err(not_shared(&name))
            }
        }
        _ => Err(format!("has {name:?}, which names no header")),
    };
    entries(list, ',').map(parse).collect()
}

/// The client's headers that reach the origin with a request whose response may be stored. Cookies never do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderRules {
    /// `PAGE_FORWARD_HEADERS`: these headers select a page if the origin's `Vary` names them.
    pub forward: Forward,
    /// `HEADERS_VARIED`: these headers always select a page, and the origin always gets them.
    pub varied: Vec<HeaderName>,
    /// `HEADERS_NORMALIZED`: these headers select a page by one of the listed values. The last rule for a header counts.
    pub normalized: Vec<NormalizedHeader>,
}

impl From<Forward> for HeaderRules {
    fn from(forward: Forward) -> Self {
        Self { forward, varied: Vec::new(), normalized: Vec::new() }
    }
}

/// The headers that `PAGE_FORWARD_HEADERS` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forward {
    /// `*`: all headers except those about the connection, the cache or a person. The origin must name in `Vary` every
    /// header that its responses depend on.
    All,
    Only(Vec<HeaderName>),
}

/// A request header that selects a page by one of a few values: `accept-language=en|de`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalizedHeader {
    pub name: HeaderName,
    /// The values that the origin gets with shared renders. Empty: it does not get the header.
    pub values: Vec<String>,
}

impl NormalizedHeader {
    /// Parses `HEADERS_NORMALIZED`.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        entries(text, ',').map(Self::parse).collect()
    }

    fn parse(rule: &str) -> Result<Self, String> {
        let wrong =
            || format!("has {rule:?}, and a rule must look like accept-language=en|de, or user-agent= for no value");
        let (name, values) = rule.split_once('=').ok_or_else(wrong)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
        let is_tag = |byte: u8| byte.is_ascii_alphanumeric() || b"-| ".contains(&byte);
        if name == header::ACCEPT_LANGUAGE && !values.bytes().all(is_tag) {
            return Err(format!("has {rule:?}, and a language must look like de or pt-BR"));
        }
        if !HeaderValue::from_str(values).is_ok_and(|value| value.to_str().is_ok()) {
            return Err(wrong());
        }
        if !may_select(&name) {
            return Err(not_shared(&name));
        }
        let values = values.split('|').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
        Ok(Self { name, values: values.collect() })
    }
}

impl fmt::Display for NormalizedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.values.join("|"))
    }
}

/// The problem with the name of a header that may not select a page.
fn not_shared(name: &HeaderName) -> String {
    format!("has {name}, which no shared render carries: name a header that many visitors share")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_a_header_and_its_values() {
        let parsed =
            NormalizedHeader::parse_all("Accept-Language = en | de, user-agent=, accept=image/avif|image/webp");
        let parsed = parsed.unwrap();
        let texts: Vec<_> = parsed.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["accept-language=en|de", "user-agent=", "accept=image/avif|image/webp"]);
        assert_eq!(NormalizedHeader::parse_all(" , "), Ok(Vec::new()));
        for text in ["accept-language", "=en", "a b=c", "cookie=a", "accept-language=en_US", "user-agent=\u{fc}"] {
            assert!(NormalizedHeader::parse_all(text).is_err(), "{text}");
        }
    }
}
