//! Builds HTTP responses.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER},
};
use http_body_util::{BodyExt, Either, Full};

use crate::{
    error::ErrorResponse,
    reply::{self, CommandResult, JsonResult, ReplyFormat},
    request::RequestKind,
    stream::EventBody,
};

/// The header that carries a sync token in both directions.
pub(super) const SYNC_TOKEN: HeaderName = HeaderName::from_static("upstash-sync-token");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// One second: the shortest that the header can express.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// A response: complete, or a stream.
pub(crate) type HttpResponse = Response<Either<Full<Bytes>, EventBody>>;

/// The response to an executed request. A client sends the sync token back to read its own writes. In a region, it is a
/// position of the primary. Else, it is the number of requests that have reached Redis.
pub(super) fn success(
    kind: RequestKind,
    format: ReplyFormat,
    results: &[CommandResult],
    sync_token: Option<HeaderValue>,
) -> HttpResponse {
    let status = match (kind, results) {
        (RequestKind::Single, [Err(text)]) => ErrorResponse::from_redis(text.clone()).status,
        _ => StatusCode::OK,
    };
    let (content_type, body) = match format {
        ReplyFormat::Json => (JSON, json_body(kind, results, false)),
        ReplyFormat::Base64Json => (JSON, json_body(kind, results, true)),
        ReplyFormat::Resp2 => (OCTET_STREAM, resp2_body(results)),
    };
    let mut response = raw(status, body);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().extend(sync_token.map(|token| (SYNC_TOKEN, token)));
    response
}

/// The response that is a stream of events.
pub(super) fn events(body: EventBody, sync_token: u64) -> HttpResponse {
    let mut response = Response::new(Either::Right(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would hold events back.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    headers.insert(SYNC_TOKEN, HeaderValue::from(sync_token));
    response
}

/// The response to a request that failed as a whole.
pub(super) fn error(error: &ErrorResponse) -> HttpResponse {
    let result = Err(error.text.clone());
    let mut response = raw(error.status, to_json(&JsonResult { result: &result, base64: false }));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A response with this body and no content type. A 503 has the header `Retry-After`.
pub(super) fn raw(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    }
    response
}

/// The response with the first half of its body. A stream stays: it has no half.
pub(super) async fn truncated(response: HttpResponse) -> HttpResponse {
    let (parts, body) = response.into_parts();
    let body = match body {
        Either::Left(complete) => {
            let Ok(body) = complete.collect().await;
            let mut body = body.to_bytes();
            body.truncate(body.len() / 2);
            Either::Left(Full::new(body))
        }
        stream @ Either::Right(_) => stream,
    };
    Response::from_parts(parts, body)
}

/// An object for a single command, else an array of objects.
fn json_body(kind: RequestKind, results: &[CommandResult], base64: bool) -> Vec<u8> {
    let objects: Vec<_> = results.iter().map(|result| JsonResult { result, base64 }).collect();
    match (kind, objects.as_slice()) {
        (RequestKind::Single, [object]) => to_json(object),
        _ => to_json(&objects),
    }
}

fn resp2_body(results: &[CommandResult]) -> Vec<u8> {
    let mut body = Vec::new();
    for result in results {
        reply::write_resp2(result, &mut body);
    }
    body
}

fn to_json(value: &impl serde::Serialize) -> Vec<u8> {
    // Cannot fail: the values are strings, integers, arrays and objects with string keys.
    serde_json::to_vec(value).unwrap_or_default()
}
