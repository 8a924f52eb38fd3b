//! The problems of a request: HTTP's own, and the errors of the domain. Each becomes a problem document
//! ([`ports::problem`](crate::ports::problem)).

use std::fmt::Display;

use http::{HeaderValue, StatusCode, header};

use crate::ports::{
    error::Error,
    fetch::Response,
    problem::{self, ProblemType},
};

/// The reason for an error response. A message says what happened, then what to do.
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
    /// Makes the response to a request of `route`, the route's pattern.
    #[must_use]
    pub fn respond(self, route: impl Display) -> Response {
        if let Self::Domain(error) = &self {
            return problem::respond(error, route);
        }
        let mut response = self.problem_type().respond(route, self.to_string(), None);
        let headers = response.headers_mut();
        match self {
            Self::WrongMethod { allow } => {
                headers.insert(header::ALLOW, allow);
            }
            // RFC 9110 §11.6.1: a 401 must name the authentication scheme.
            Self::WrongServiceKey | Self::NoServiceKey => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"edgefront\""));
            }
            _ => {}
        }
        response
    }

    pub(super) const fn problem_type(&self) -> ProblemType {
        let (status, kind, title) = match self {
            Self::NoSuchPath => (StatusCode::NOT_FOUND, "no-such-path", "No such path"),
            Self::WrongMethod { .. } => (StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Method not allowed"),
            Self::WrongServiceKey | Self::NoServiceKey => {
                (StatusCode::UNAUTHORIZED, "service-key", "Service key required")
            }
            Self::CrossOrigin => (StatusCode::FORBIDDEN, "foreign-origin", "Cross-origin request"),
            Self::BodyTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Body too large"),
            Self::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", "Not JSON"),
            Self::MalformedJson(_) => (StatusCode::BAD_REQUEST, "malformed", "Malformed JSON"),
            Self::Domain(error) => return ProblemType::of(error),
        };
        ProblemType::new(status, kind, title)
    }
}
