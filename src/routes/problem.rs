//! Errors as RFC 9457 problem documents. This is the only place that picks a status for an error.
//!
//! What the caller can correct is told in full. What only an operator can help is marked, logged once when the answer goes out, and
//! answered generically: no answer quotes Redis, the database or a secret.

use std::fmt::Display;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use crate::{
    metrics::journal,
    ports::{
        error::{Error, Refusal},
        fetch::{FetchError, Response},
        rate_limit::PERIOD,
    },
};

/// What a caller should wait before the next try, in seconds. A lost connection is back sooner, a used-up quota later;
/// five keeps a crowd of clients from making it worse.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Nothing runs, loads, frames it or is sent from it.
const NOTHING: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");

/// Why a request was not done as asked: HTTP's own reasons, and those of the domain.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("there is nothing at this address")]
    NoSuchPath,
    #[error("this address answers {}", allow.to_str().unwrap_or_default())]
    WrongMethod { allow: HeaderValue },
    #[error("this needs `Authorization: Bearer` and the service key")]
    NotTheService,
    #[error("this part is closed: SERVICE_KEY is not set")]
    NoServiceKey,
    #[error("a page of another origin cannot do this: Sec-Fetch-Site or Origin must name this one")]
    ForeignOrigin,
    #[error("the body has more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body must be JSON: send `Content-Type: application/json`")]
    NotJson,
    #[error("the body is not a JSON object: {0}")]
    Malformed(String),
    #[error(transparent)]
    Domain(#[from] Error),
}

impl Problem {
    /// The problem as a response to a request of `route`, which is what the log calls it: a pattern, no ids.
    #[must_use]
    pub fn respond(self, route: impl Display) -> Response {
        let (status, kind, title) = self.class();
        let detail = if status.is_server_error() {
            "it is not your request; try again later".to_owned()
        } else {
            self.to_string()
        };
        let mut document = json!({
            "type": format!("urn:edgefront:{kind}"),
            "title": title,
            "status": status.as_u16(),
            "detail": detail,
        });
        if let (Self::Domain(Error::Invalid { field, .. }), Some(document)) = (&self, document.as_object_mut()) {
            document.insert("field".to_owned(), (*field).into());
        }
        let mut response = Response::new(document.to_string().into());
        *response.status_mut() = status;
        if status.is_server_error() {
            journal::mark(&mut response, route.to_string(), self.to_string());
        }
        self.headers(status, response.headers_mut());
        response
    }

    /// Status, kind (the end of the document's `type`) and title.
    fn class(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::NoSuchPath => (StatusCode::NOT_FOUND, "no-such-path", "Nothing is here"),
            Self::WrongMethod { .. } => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Not in this way"),
            Self::NotTheService | Self::NoServiceKey => {
                (StatusCode::UNAUTHORIZED, "service-key", "For the shop's own services")
            }
            Self::ForeignOrigin => (StatusCode::FORBIDDEN, "foreign-origin", "From another origin"),
            Self::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Too large"),
            Self::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", "Not JSON"),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "malformed", "Malformed JSON"),
            Self::Domain(error) => match error {
                Error::Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", "Wrong value"),
                Error::NotFound(_) => (StatusCode::NOT_FOUND, "not-found", "Not found"),
                Error::CartFull { .. } => (StatusCode::CONFLICT, "cart-full", "The cart is full"),
                Error::TooOften => (StatusCode::TOO_MANY_REQUESTS, "too-often", "Too often"),
                Error::NotSignedIn => (StatusCode::FORBIDDEN, "sign-in", "Sign in first"),
                Error::Refused(refusal) => match refusal {
                    Refusal::NotStarted => (StatusCode::CONFLICT, "not-started", "Not begun yet"),
                    Refusal::Ended => (StatusCode::CONFLICT, "ended", "Over"),
                    Refusal::SoldOut => (StatusCode::CONFLICT, "sold-out", "Sold out"),
                    Refusal::AlreadyBought => (StatusCode::CONFLICT, "already-bought", "Bought already"),
                },
                Error::KeyReused => (StatusCode::CONFLICT, "key-reused", "Idempotency key used before"),
                Error::Redis(_) | Error::Database(_) | Error::NotYet(_) => {
                    (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Not available now")
                }
                Error::Origin(FetchError::Timeout) => {
                    (StatusCode::GATEWAY_TIMEOUT, "origin-slow", "The shop is too slow")
                }
                Error::Origin(FetchError::Unreachable | FetchError::Spent) => {
                    (StatusCode::BAD_GATEWAY, "origin-down", "The shop does not answer")
                }
                Error::Platform(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something is wrong here"),
            },
        }
    }

    fn headers(self, status: StatusCode, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // It is a plain page where that is asked for.
        headers.insert(header::CONTENT_SECURITY_POLICY, NOTHING);
        match self {
            Self::WrongMethod { allow } => {
                headers.insert(header::ALLOW, allow);
            }
            // RFC 9110 §11.6.1: a 401 must say how.
            Self::NotTheService | Self::NoServiceKey => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"edgefront\""));
            }
            Self::Domain(Error::TooOften) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(PERIOD.as_secs()));
            }
            _ if status == StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, RETRY_AFTER);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{database::DatabaseError, fetch::Body};

    fn document(problem: impl Into<Problem>) -> (u16, serde_json::Value, HeaderMap) {
        let (parts, body) = problem.into().respond("/test").into_parts();
        let Body::Bytes(bytes) = body else { panic!("a problem has a body") };
        (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap(), parts.headers)
    }

    #[test]
    fn a_wrong_field_is_named() {
        let (status, document, headers) = document(Error::invalid("quantity", "must be a whole number"));
        assert_eq!((status, headers["content-type"].to_str().unwrap()), (422, "application/problem+json"));
        assert_eq!(
            document,
            json!({
                "type": "urn:edgefront:invalid",
                "title": "Wrong value",
                "status": 422,
                "detail": "quantity must be a whole number",
                "field": "quantity",
            })
        );
    }

    #[test]
    fn the_inside_does_not_show_outside() {
        for (error, status) in [
            (Error::Redis(upstash_rest::Error::Unauthorized), 503),
            (Error::Redis(upstash_rest::Error::Refused { code: "WRONGTYPE".to_owned() }), 503),
            (Error::Database(DatabaseError::Failed("secret: no such table".to_owned())), 503),
            (Error::Platform("secret".to_owned()), 500),
            (Error::Origin(FetchError::Timeout), 504),
            (Error::Origin(FetchError::Unreachable), 502),
        ] {
            let (got, document, headers) = document(error);
            assert_eq!(got, status);
            assert_eq!(headers.contains_key("retry-after"), status == 503);
            let text = document.to_string();
            assert!(!["UPSTASH", "WRONGTYPE", "secret"].iter().any(|word| text.contains(word)), "{text}");
        }
    }
}
