//! The label of a device, by which its user recognizes it.

use http::{HeaderMap, header};

use crate::ports::error::Error;

/// The name of a device as its user reads it: "Firefox on Windows".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLabel(String);

impl DeviceLabel {
    /// Checks a label.
    ///
    /// # Errors
    /// [`Error::Invalid`] unless it is 1 to 64 characters, without control characters and not only spaces.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let is_visible = !text.trim().is_empty() && !text.chars().any(char::is_control);
        if !is_visible || text.chars().count() > 64 {
            return Err(Error::invalid("device", "must be 1 to 64 visible characters"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The label of the browser that sent `headers`. `None` if its `User-Agent` names no known browser or system.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::of_user_agent(headers.get(header::USER_AGENT)?.to_str().ok()?)
    }

    fn of_user_agent(text: &str) -> Option<Self> {
        let find = |names: &[(&str, &'static str)]| {
            names.iter().find(|(marker, _)| text.contains(marker)).map(|(_, name)| (*name).to_owned())
        };
        match (find(&BROWSERS), find(&SYSTEMS)) {
            (Some(browser), Some(system)) => Some(Self(format!("{browser} on {system}"))),
            (browser, system) => browser.or(system).map(Self),
        }
    }

    /// The label as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A marker in the `User-Agent`, and the browser's name. The first match counts.
///
/// Chrome and Safari come last, because nearly every browser also claims to be one of them.
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

/// A marker in the `User-Agent`, and the system's name. The first match counts.
///
/// iPhone and iPad come before macOS, and Android before Linux, because their browsers name both.
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

    fn label(user_agent: &str) -> Option<String> {
        DeviceLabel::of_user_agent(user_agent).map(|label| label.as_str().to_owned())
    }

    #[test]
    fn a_browser_is_labelled_by_its_name_and_system() {
        for (user_agent, expected) in [
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
            assert_eq!(label(user_agent).as_deref(), Some(expected), "{user_agent}");
        }
        for user_agent in ["", "curl/8.14.1", "Mozilla/5.0", "\u{7f}"] {
            assert_eq!(label(user_agent), None, "{user_agent}");
        }
    }

    #[test]
    fn a_label_is_any_visible_text_of_up_to_64_characters() {
        for text in ["The till at the door", "é", &"a".repeat(64)] {
            assert_eq!(DeviceLabel::parse(text).unwrap().as_str(), text);
        }
        for text in ["", " ", "a\nb", "\0", &"a".repeat(65)] {
            assert!(DeviceLabel::parse(text).is_err(), "{text:?}");
        }
    }
}
