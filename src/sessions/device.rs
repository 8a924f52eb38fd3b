//! What a session is called outside: a name that leads nobody to its token, and a label that its user recognizes.

use std::fmt;

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::{
    ports::error::Error,
    schema::{hex, token::Token},
};

/// The public name of a session: the first 16 hexadecimal digits of a SHA-256 over its token. A token has 128 random bits, so
/// nobody finds it from its name; and of one user's sessions, no two share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceId(String);

impl DeviceId {
    /// The name of the session of `token`.
    #[must_use]
    pub fn of(token: &Token) -> Self {
        // Apart from every other hash of a token.
        let mut name = hex(&Sha256::new().chain_update("device:").chain_update(token.as_str()).finalize());
        name.truncate(16);
        Self(name)
    }

    /// The name in `text`, or None if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 16 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// As it stands in URLs and in `devices:`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a user calls a device: "Firefox on Windows".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLabel(String);

impl DeviceLabel {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not 1 to 64 characters that all can be seen (a space between them may be).
    pub fn parse(text: &str) -> Result<Self, Error> {
        let is_visible = !text.trim().is_empty() && !text.chars().any(char::is_control);
        if !is_visible || text.chars().count() > 64 {
            return Err(Error::invalid("device", "must be 1 to 64 characters, and none that cannot be seen"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The label of whoever sent `headers`. None if their `User-Agent` is none that we know.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::of_user_agent(headers.get(header::USER_AGENT)?.to_str().ok()?)
    }

    fn of_user_agent(text: &str) -> Option<Self> {
        let named = |names: &[(&str, &'static str)]| {
            names.iter().find(|(mark, _)| text.contains(mark)).map(|(_, name)| (*name).to_owned())
        };
        match (named(&BROWSERS), named(&SYSTEMS)) {
            (Some(browser), Some(system)) => Some(Self(format!("{browser} on {system}"))),
            (one, other) => one.or(other).map(Self),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a browser's User-Agent holds, and its name. Nearly all of them claim to be Chrome and Safari as well, so those come last.
const BROWSERS: [(&str, &str); 15] = [
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("YaBrowser/", "Yandex Browser"),
    ("DuckDuckGo/", "DuckDuckGo"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("HeadlessChrome/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];

/// As [`BROWSERS`]: an iPhone says that it is like a Mac, and Android that it is a Linux.
const SYSTEMS: [(&str, &str); 8] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
    ("X11", "Unix"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::time::Timestamp;

    fn label(user_agent: &str) -> Option<String> {
        DeviceLabel::of_user_agent(user_agent).map(|label| label.as_str().to_owned())
    }

    #[test]
    fn a_browser_is_called_by_its_name_and_system() {
        for (user_agent, name) in [
            ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Windows"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
                "Chrome on Windows",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
                "Safari on macOS",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.7444.77 Mobile/15E148 Safari/604.1",
                "Chrome on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36",
                "Samsung Internet on Android",
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
                "Chrome on ChromeOS",
            ),
            ("SomeApp/3.1 (Android 15)", "Android"),
            ("Mozilla/5.0 Firefox/145.0", "Firefox"),
        ] {
            assert_eq!(label(user_agent).as_deref(), Some(name), "{user_agent}");
        }
        for user_agent in ["", "curl/8.14.1", "Mozilla/5.0", "\u{7f}"] {
            assert_eq!(label(user_agent), None, "{user_agent}");
        }
    }

    #[test]
    fn a_service_may_call_a_device_what_it_likes_within_a_line() {
        for text in ["The till at the door", "é", &"a".repeat(64)] {
            assert_eq!(DeviceLabel::parse(text).unwrap().as_str(), text);
        }
        for text in ["", " ", "a\nb", "\0", &"a".repeat(65)] {
            assert!(DeviceLabel::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_devices_name_is_its_own_and_holds_nothing_of_the_token() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let (one, other) = (Token::new(now).unwrap(), Token::new(now).unwrap());
        let id = DeviceId::of(&one);
        assert_eq!(id, DeviceId::of(&one));
        assert_ne!(id, DeviceId::of(&other));
        assert_eq!(DeviceId::parse(id.as_str()), Some(id));
        for text in ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "others", "0123456789abcde\n"] {
            assert_eq!(DeviceId::parse(text), None, "{text}");
        }
    }
}
