//! [`Fetch`] over the platform's `fetch`. Redirects are passed on. A request that times out is aborted, because an
//! event has only six connections.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, Method, StatusCode, header};
use js_sys::{Array, Reflect, Uint8Array};
use upstash_rest::TransportError;
use wasm_bindgen::{JsCast, JsValue};

use super::{
    body,
    clock::millis,
    glue::{self, Message},
    headers,
    task::Settled,
};
use crate::ports::fetch::{Fetch, FetchError, Request, Response};

/// The platform's `fetch`.
pub struct PlatformFetch;

impl Fetch for PlatformFetch {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            // The platform refuses a GET with a body. Such a body has no meaning (RFC 9110 §9.3.1).
            let is_read = matches!(head.method, Method::GET | Method::HEAD);
            let body = if is_read { JsValue::UNDEFINED } else { body::write(body) };
            let headers = headers::write(&without_the_platforms(head.headers));
            let (address, method) = (head.uri.to_string(), head.method.as_str());
            let answer = Settled::from(glue::send(&address, method, &headers, &body, millis(deadline)));
            let answer = answer.await.map_err(|error| failure(&error))?;
            read(&answer.unchecked_into()).ok_or(FetchError::Unreachable)
        })
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        deadline: Duration,
        limit: usize,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let (address, headers) = (head.uri.to_string(), headers::write(&head.headers));
            #[expect(clippy::cast_precision_loss, reason = "far below 2⁵³")]
            let limit = limit as f64;
            let answer = Settled::from(glue::exchange(&address, &headers, &body, millis(deadline), limit));
            let answer = answer.await.map_err(|error| failure(&error))?;
            let answer = answer.dyn_into::<Array>().map_err(|_| TransportError::Unreachable)?;
            let head = answer.get(0).as_string().ok_or(TransportError::Unreachable)?;
            let body = answer.get(1).unchecked_into::<Uint8Array>().to_vec();
            Ok(read_head(&head).ok_or(TransportError::Unreachable)?.map(|()| body.into()))
        })
    }
}

/// The error of a failed `fetch`. `glue.js` names a timeout `TimeoutError`.
fn failure(error: &JsValue) -> FetchError {
    let name = Reflect::get(error, &"name".into()).ok().and_then(|name| name.as_string());
    if name.as_deref() == Some("TimeoutError") { FetchError::Timeout } else { FetchError::Unreachable }
}

/// Removes the headers that the platform sets from the address and the body.
fn without_the_platforms(mut headers: HeaderMap) -> HeaderMap {
    for name in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn read(answer: &Message) -> Option<Response> {
    let response = read_head(&glue::read_response(answer))?;
    let body = body::of_response(answer, response.headers());
    Some(response.map(|()| body))
}

fn read_head(text: &str) -> Option<http::Response<()>> {
    let mut lines = headers::lines(text);
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::from_bytes(lines.next()?).ok()?;
    *response.headers_mut() = headers::read(lines);
    Some(response)
}
