//! Errors as RFC 9457 problem documents. No other module picks the status of an error.
//!
//! A 4xx document tells the caller what to correct. The cause of a 5xx concerns the operator only: the response carries
//! it to the log, and its document is generic. No response quotes Redis, the database or a secret.

use std::fmt::Display;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

use crate::{
    metrics::event_log::Failure,
    ports::{
        error::{Error, Refusal},
        fetch::{FetchError, Response},
        rate_limit::PERIOD,
    },
};

/// `Retry-After` of a 503, in seconds. A lost connection recovers sooner, an exhausted quota later; five seconds keep a
/// crowd of clients from adding load.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The detail of every 5xx.
const SERVER_ERROR_DETAIL: &str = "the server failed to answer, and the request is not the cause: try again later";

/// Forbids everything: a problem document loads, runs, frames and submits nothing.
const CONTENT_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");

/// The reason for an error response: HTTP's own reasons, and those of the domain. A message says what happened, then
/// what to do.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("no route has this path: check its spelling")]
    NoSuchPath,
    #[error("this path does not support the method: use {}", allow.to_str().unwrap_or_default())]
    WrongMethod { allow: HeaderValue },
    #[error("the service key is missing or wrong: send it as `Authorization: Bearer <service key>`")]
    WrongServiceKey,
    #[error("the service's routes are closed, because SERVICE_KEY is not set: set this secret")]
    NoServiceKey,
    #[error(
        "the request comes from another origin: send it from a page of this one (Sec-Fetch-Site or Origin must say so)"
    )]
    CrossOrigin,
    #[error("the body has more than {limit} bytes: send a shorter one")]
    BodyTooLarge { limit: usize },
    #[error("the body is not marked as JSON: send `Content-Type: application/json`")]
    NotJson,
    #[error("the body is not a JSON object: {0}")]
    MalformedJson(String),
    #[error(transparent)]
    Domain(#[from] Error),
}

impl Problem {
    /// Makes the response to a request of `route`, the route's pattern. The log names the pattern, because a path may
    /// hold an id.
    #[must_use]
    pub fn respond(self, route: impl Display) -> Response {
        let (status, kind, title) = self.class();
        let mut document = json!({
            "type": format!("urn:edgefront:{kind}"),
            "title": title,
            "status": status.as_u16(),
            "detail": self.detail(),
        });
        if let (Self::Domain(Error::Invalid { field, .. }), Some(document)) = (&self, document.as_object_mut()) {
            document.insert("field".to_owned(), (*field).into());
        }
        let mut response = Response::new(document.to_string().into());
        *response.status_mut() = status;
        if status.is_server_error() {
            Failure { route: route.to_string(), cause: self.to_string() }.attach(&mut response);
        }
        self.insert_headers(status, response.headers_mut());
        response
    }

    /// The document's `detail`: this problem's message, or one message for every 5xx.
    pub(super) fn detail(&self) -> String {
        if self.class().0.is_server_error() { SERVER_ERROR_DETAIL.to_owned() } else { self.to_string() }
    }

    /// The status, the kind (the last part of the document's `type`) and the title.
    pub(super) fn class(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::NoSuchPath => (StatusCode::NOT_FOUND, "no-such-path", "No such path"),
            Self::WrongMethod { .. } => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Method not allowed"),
            Self::WrongServiceKey | Self::NoServiceKey => {
                (StatusCode::UNAUTHORIZED, "service-key", "Service key required")
            }
            Self::CrossOrigin => (StatusCode::FORBIDDEN, "foreign-origin", "Cross-origin request"),
            Self::BodyTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Body too large"),
            Self::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", "Not JSON"),
            Self::MalformedJson(_) => (StatusCode::BAD_REQUEST, "malformed", "Malformed JSON"),
            Self::Domain(error) => match error {
                Error::Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid", "Invalid value"),
                Error::NotFound(_) => (StatusCode::NOT_FOUND, "not-found", "Not found"),
                Error::CartFull { .. } => (StatusCode::CONFLICT, "cart-full", "Cart full"),
                Error::TooOften => (StatusCode::TOO_MANY_REQUESTS, "too-often", "Too many requests"),
                Error::NotSignedIn => (StatusCode::FORBIDDEN, "sign-in", "Sign-in required"),
                Error::Refused(refusal) => match refusal {
                    Refusal::NotStarted => (StatusCode::CONFLICT, "not-started", "Sale not started"),
                    Refusal::Ended => (StatusCode::CONFLICT, "ended", "Sale ended"),
                    Refusal::SoldOut => (StatusCode::CONFLICT, "sold-out", "Sold out"),
                    Refusal::AlreadyBought => (StatusCode::CONFLICT, "already-bought", "Already bought"),
                },
                Error::KeyReused => (StatusCode::CONFLICT, "key-reused", "Idempotency key reused"),
                Error::Redis(_) | Error::Database(_) | Error::NotYet(_) => {
                    (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Temporarily unavailable")
                }
                Error::Origin(FetchError::Timeout) => {
                    (StatusCode::GATEWAY_TIMEOUT, "origin-slow", "Storefront timed out")
                }
                Error::Origin(FetchError::Unreachable | FetchError::Spent) => {
                    (StatusCode::BAD_GATEWAY, "origin-down", "Storefront unreachable")
                }
                Error::Platform(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
            },
        }
    }

    fn insert_headers(self, status: StatusCode, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // A browser may show the document as a page.
        headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
        match self {
            Self::WrongMethod { allow } => {
                headers.insert(header::ALLOW, allow);
            }
            // RFC 9110 §11.6.1: a 401 must name the authentication scheme.
            Self::WrongServiceKey | Self::NoServiceKey => {
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
    fn an_invalid_field_is_named() {
        let (status, document, headers) = document(Error::invalid("quantity", "must be a whole number"));
        assert_eq!((status, headers["content-type"].to_str().unwrap()), (422, "application/problem+json"));
        assert_eq!(
            document,
            json!({
                "type": "urn:edgefront:invalid",
                "title": "Invalid value",
                "status": 422,
                "detail": "quantity must be a whole number",
                "field": "quantity",
            })
        );
    }

    #[test]
    fn a_problem_document_reveals_no_internals() {
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
