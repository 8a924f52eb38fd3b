//! Answers in JSON. Every one carries Cache-Control: a cache in front of us would otherwise make up its own rule.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::fetch::{Body, Response};

/// Somebody's own, or a service's: kept nowhere.
pub const PERSONAL: &str = "private, no-store";
/// For all, and asked for again each time; the `ETag` makes that cheap.
pub const ASK_AGAIN: &str = "no-cache";

/// A JSON answer with status 200. `cache` is its Cache-Control.
pub fn json(cache: &'static str, document: &Value) -> Response {
    bytes(cache, document.to_string().into())
}

/// Like [`json`], of a document that is written already.
pub fn bytes(cache: &'static str, document: Bytes) -> Response {
    let mut response = Response::new(Body::from(document));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

/// An answer that needs no words.
pub fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(PERSONAL));
    response
}

/// Gives a response an `ETag` made from its bytes.
pub fn tagged(mut response: Response) -> Response {
    if let Body::Bytes(body) = response.body() {
        // 16 of the hash's 32 bytes: 128 bits are as good a name, in half the header.
        let tag = URL_SAFE_NO_PAD.encode(Sha256::digest(body).split_at(16).0);
        if let Ok(tag) = HeaderValue::try_from(format!("\"{tag}\"")) {
            response.headers_mut().insert(header::ETAG, tag);
        }
    }
    response
}

/// Turns a tagged response into a 304 if the client that `asked` has its bytes already.
pub fn unless_known(asked: &HeaderMap, mut response: Response) -> Response {
    if response.headers().get(header::ETAG).is_some_and(|tag| has(asked, tag)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::Empty;
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response
}

/// Whether If-None-Match names `tag`, compared weakly (RFC 9110 §13.1.2). Our tags hold no comma.
fn has(asked: &HeaderMap, tag: &HeaderValue) -> bool {
    let values = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|sent| {
        let sent = sent.trim();
        sent == "*" || tag == sent.strip_prefix("W/").unwrap_or(sent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_has_is_not_sent_again() {
        let get = |sent: &[&str]| {
            let lines = sent.iter().map(|line| (header::IF_NONE_MATCH, HeaderValue::try_from(*line).unwrap()));
            let response = unless_known(&lines.collect(), tagged(json(ASK_AGAIN, &serde_json::json!({"a": 1}))));
            let tag = response.headers()["etag"].to_str().unwrap().to_owned();
            (response.status().as_u16(), response.body().is_empty(), tag)
        };
        let (status, empty, tag) = get(&[]);
        assert_eq!((status, empty, tag.len()), (200, false, 24));
        for sent in [&[&*tag][..], &[&format!("W/{tag}")], &[&format!("\"x\", {tag}")], &["\"x\"", &tag], &["*"]] {
            assert_eq!(get(sent), (304, true, tag.clone()), "{sent:?}");
        }
        assert_eq!(get(&["\"x\"", tag.trim_matches('"')]).0, 200);
    }
}
