//! The address of a database, and the token that opens it.

use std::fmt;

use http::{HeaderValue, Uri};

/// The URL and the token of a database, as its console shows them.
#[derive(Clone)]
pub struct Credentials {
    /// The URL, without a trailing slash.
    pub url: String,
    /// `Bearer <token>`.
    pub authorization: HeaderValue,
}

/// A URL or a token that cannot be used. Neither is part of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// The URL is not absolute: it looks like `https://name-12345.upstash.io`.
    #[error("the URL of the database must begin with https:// or http://")]
    Url,
    /// The token is empty, or it holds characters that a header cannot carry.
    #[error("the token of the database is empty, or not visible ASCII")]
    Token,
}

impl Credentials {
    /// Credentials from a URL, whose trailing slash is removed, and a token.
    ///
    /// # Errors
    /// [`CredentialsError`] names the argument that cannot be used.
    pub fn new(url: &str, token: &str) -> Result<Self, CredentialsError> {
        let url = url.trim_end_matches('/').to_owned();
        let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("https" | "http"));
        url.parse().ok().filter(is_http).ok_or(CredentialsError::Url)?;
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CredentialsError::Token);
        }
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| CredentialsError::Token)?;
        authorization.set_sensitive(true);
        Ok(Self { url, authorization })
    }
}

/// Shows the URL only.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_slash_is_removed() {
        let credentials = Credentials::new("https://name-12345.upstash.io/", "token").unwrap();
        assert_eq!(credentials.url, "https://name-12345.upstash.io");
        assert_eq!(credentials.authorization, "Bearer token");
    }

    #[test]
    fn debug_output_shows_no_token() {
        let credentials = Credentials::new("http://127.0.0.1:8079", "SECRET").unwrap();
        assert_eq!(format!("{credentials:?}"), "Credentials { url: \"http://127.0.0.1:8079\", .. }");
    }

    #[test]
    fn unusable_credentials_are_named() {
        for url in ["", "name-12345.upstash.io", "redis://127.0.0.1:6379", "https://"] {
            assert_eq!(Credentials::new(url, "token").unwrap_err(), CredentialsError::Url, "{url}");
        }
        for token in ["", "two words", "line\nbreak", "tökén"] {
            assert_eq!(Credentials::new("https://a.b", token).unwrap_err(), CredentialsError::Token, "{token}");
        }
    }
}
