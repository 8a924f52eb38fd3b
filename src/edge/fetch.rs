//! [`Fetch`] over the platform's `fetch`. Redirects are passed on. A request that times out is aborted, because an
//! event has only six connections.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, Method, StatusCode, header};
use js_sys::Reflect;
use upstash_rest::{ExchangeTerms, TransportError};
use wasm_bindgen::{JsCast, JsValue};

use super::{
    body::{self, HeldArray},
    clock::millis,
    exchange::Delivery,
    glue::{self, Message},
    headers,
    task::Settled,
};
use crate::ports::{
    fetch::{Fetch, FetchError, Request, Response},
    held::Content,
    home::Home,
};

/// The platform's `fetch`.
pub struct PlatformFetch;

/// A service binding to the home tier.
pub struct HomeBinding(pub JsValue);

impl Home for HomeBinding {
    fn send(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(sent(Some(&self.0), request, deadline))
    }
}

impl Fetch for PlatformFetch {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(sent(None, request, deadline))
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let (address, headers) = (head.uri.to_string(), headers::write(&head.headers));
            let ExchangeTerms { deadline, limit, is_shared, is_short } = terms;
            #[expect(clippy::cast_precision_loss, reason = "far below 2⁵³")]
            let limit = limit as f64;
            let delivery = Delivery::of(|number| {
                glue::exchange(number, &address, &headers, &body, millis(deadline), limit, is_shared, is_short);
            });
            // The platform has its own copy: a page must not stay here until Redis answers.
            drop(body);
            delivery.await
        })
    }

    fn hold(&self, bytes: Bytes) -> Content {
        Content::Held(Rc::new(HeldArray::new(&bytes)))
    }
}

/// Sends a request, through a service binding if there is one.
async fn sent(binding: Option<&JsValue>, request: Request, deadline: Duration) -> Result<Response, FetchError> {
    let (head, body) = request.into_parts();
    // The platform refuses a GET with a body. Such a body has no meaning (RFC 9110 §9.3.1).
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let body = if is_read { JsValue::UNDEFINED } else { body::write_request(body, &head.headers) };
    let headers = headers::write(&without_the_platforms(head.headers));
    let (address, method, millis) = (head.uri.to_string(), head.method.as_str(), millis(deadline));
    let answer = match binding {
        None => glue::send(&address, method, &headers, &body, millis),
        Some(binding) => glue::send_home(binding, &address, method, &headers, &body, millis),
    };
    let answer = Settled::from(answer).await.map_err(|error| failure(&error))?;
    read(answer.unchecked_into()).ok_or(FetchError::Unreachable)
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

fn read(answer: Message) -> Option<Response> {
    let response = read_head(&glue::read_response(&answer))?;
    let body = body::of_response(answer, &response);
    Some(response.map(|()| body))
}

fn read_head(text: &str) -> Option<http::Response<()>> {
    let mut lines = headers::lines(text);
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::from_bytes(lines.next()?).ok()?;
    *response.headers_mut() = headers::read(lines)?;
    Some(response)
}
