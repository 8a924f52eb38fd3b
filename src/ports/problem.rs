//! Problem documents (RFC 9457): the JSON of an error response.
//!
//! A 4xx document tells the caller what to correct. The cause of a 5xx concerns the operator only: the response carries
//! it to the log, and its document is generic. No response quotes Redis, the database or a secret.

use std::fmt::Display;

use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{
    error::{Error, Refusal},
    fetch::{FetchError, Response},
    header_names::NO_STORE,
    rate_limit::PERIOD,
};

/// `Retry-After` of a 503, in seconds. A lost connection recovers sooner, an exhausted quota later; five seconds keep a
/// crowd of clients from adding load.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The detail of every 5xx.
const SERVER_ERROR_DETAIL: &str = "the server failed to answer, and the request is not the cause: try again later";

/// Forbids everything: a problem document loads, runs, frames and submits nothing.
const CONTENT_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");

/// The side that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureSource {
    /// edgefront, Redis or the database.
    Edgefront,
    /// The origin did not answer.
    Origin,
}

/// The cause of an error response of edgefront. It travels in the response's extensions. It is counted, and logged if it
/// is a 5xx, when the response is sent: not if a stale page replaces the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The route's pattern.
    pub route: String,
    /// The problem's type.
    pub kind: &'static str,
    pub cause: String,
    pub source: FailureSource,
}

impl Failure {
    pub fn attach(self, response: &mut Response) {
        response.extensions_mut().insert(self);
    }
}

/// The type of a problem (RFC 9457 §3.1): the common part of all its occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProblemType {
    pub status: StatusCode,
    /// The last part of the document's `type`.
    pub kind: &'static str,
    pub title: &'static str,
    pub source: FailureSource,
}

impl ProblemType {
    #[must_use]
    pub const fn new(status: StatusCode, kind: &'static str, title: &'static str) -> Self {
        Self { status, kind, title, source: FailureSource::Edgefront }
    }

    const fn of_origin(self) -> Self {
        Self { source: FailureSource::Origin, ..self }
    }

    /// The type of a domain error. No other code picks the status of an error.
    #[must_use]
    pub const fn of(error: &Error) -> Self {
        match error {
            Error::Invalid { .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", "Invalid value"),
            Error::NotFound(_) => Self::new(StatusCode::NOT_FOUND, "not-found", "Not found"),
            Error::CartFull { .. } => Self::new(StatusCode::CONFLICT, "cart-full", "Cart full"),
            Error::TooOften => Self::new(StatusCode::TOO_MANY_REQUESTS, "too-often", "Too many requests"),
            Error::NotSignedIn => Self::new(StatusCode::FORBIDDEN, "sign-in", "Sign-in required"),
            Error::Refused(refusal) => match refusal {
                Refusal::NotStarted => Self::new(StatusCode::CONFLICT, "not-started", "Sale not started"),
                Refusal::Ended => Self::new(StatusCode::CONFLICT, "ended", "Sale ended"),
                Refusal::SoldOut => Self::new(StatusCode::CONFLICT, "sold-out", "Sold out"),
                Refusal::AlreadyBought => Self::new(StatusCode::CONFLICT, "already-bought", "Already bought"),
            },
            Error::Conflict(_) => Self::new(StatusCode::CONFLICT, "conflict", "Conflict"),
            Error::KeyReused => Self::new(StatusCode::CONFLICT, "key-reused", "Idempotency key reused"),
            Error::Redis(_) | Error::Database(_) | Error::NotYet | Error::Home(_) | Error::Busy => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Temporarily unavailable")
            }
            Error::Origin(FetchError::Timeout) => {
                Self::new(StatusCode::GATEWAY_TIMEOUT, "origin-slow", "Storefront timed out").of_origin()
            }
            Error::Origin(FetchError::Unreachable | FetchError::Spent) => {
                Self::new(StatusCode::BAD_GATEWAY, "origin-down", "Storefront unreachable").of_origin()
            }
            Error::Esi(_) => Self::new(StatusCode::BAD_GATEWAY, "esi", "Storefront page refused"),
            Error::Platform(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        }
    }

    /// The document's `detail`: the problem's message, or one message for every 5xx.
    #[must_use]
    pub fn detail(&self, message: String) -> String {
        if self.status.is_server_error() { SERVER_ERROR_DETAIL.to_owned() } else { message }
    }

    /// Makes the response to a request of `route`, the route's pattern. The log names the pattern, because a path may
    /// hold an id. `field` is the invalid field.
    #[must_use]
    pub fn respond(&self, route: impl Display, message: String, field: Option<&str>) -> Response {
        let mut document = json!({
            "type": format!("urn:edgefront:{}", self.kind),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail(message.clone()),
        });
        if let (Some(field), Some(document)) = (field, document.as_object_mut()) {
            document.insert("field".to_owned(), field.into());
        }
        let mut response = Response::new(document.to_string().into());
        *response.status_mut() = self.status;
        Failure { route: route.to_string(), kind: self.kind, cause: message, source: self.source }
            .attach(&mut response);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(NO_STORE));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // A browser may show the document as a page.
        headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

/// Makes the response for a domain error; see [`ProblemType::respond`].
#[must_use]
pub fn respond(error: &Error, route: impl Display) -> Response {
    let field = if let Error::Invalid { field, .. } = error { Some(*field) } else { None };
    let mut response = ProblemType::of(error).respond(route, error.to_string(), field);
    if *error == Error::TooOften {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(PERIOD.as_secs()));
    }
    response
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::ports::{database::DatabaseError, fetch::Body};

    fn document(error: &Error) -> (u16, serde_json::Value, HeaderMap) {
        let (parts, body) = respond(error, "/test").into_parts();
        let Body::Bytes(bytes) = body else { panic!("a problem has a body") };
        (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap(), parts.headers)
    }

    #[test]
    fn an_invalid_field_is_named() {
        let (status, document, headers) = document(&Error::invalid("quantity", "must be a whole number"));
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
            (Error::Esi("secret".to_owned()), 502),
            (Error::Home(FetchError::Timeout), 503),
            (Error::Platform("secret".to_owned()), 500),
            (Error::Origin(FetchError::Timeout), 504),
            (Error::Origin(FetchError::Unreachable), 502),
        ] {
            let (got, document, headers) = document(&error);
            assert_eq!(got, status);
            assert_eq!(headers.contains_key("retry-after"), status == 503);
            let text = document.to_string();
            assert!(!["UPSTASH", "WRONGTYPE", "secret"].iter().any(|word| text.contains(word)), "{text}");
        }
    }
}
