//! [`Fetch`] over the platform's `fetch`, bound directly: redirects are passed on, and a request that is given up is aborted, so
//! that it does not keep one of the six connections that an event may have open.

use std::time::Duration;

use futures_util::future::{Either, LocalBoxFuture, select};
use http::{HeaderMap, Method, StatusCode, header};
use js_sys::Promise;
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;
use worker::web_sys::{self, AbortController, RequestInit, RequestRedirect};

use super::{body, clock::Sleep, headers};
use crate::fetch::{Fetch, FetchError, Request, Response};

#[wasm_bindgen]
extern "C" {
    /// Caught, since what a visitor can make the platform refuse (a method that it does not know) must not end the isolate.
    #[wasm_bindgen(catch, js_name = fetch)]
    fn platform_fetch(address: &str, init: &RequestInit) -> Result<Promise, JsValue>;
}

/// The platform's `fetch`.
pub struct PlatformFetch;

impl Fetch for PlatformFetch {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            // Every failure of the platform's own calls means the same here: there can be no response.
            send(request, deadline).await.unwrap_or(Err(FetchError::Unreachable))
        })
    }
}

async fn send(request: Request, deadline: Duration) -> Result<Result<Response, FetchError>, JsValue> {
    let abort = AbortController::new()?;
    let (head, body) = request.into_parts();
    let init = RequestInit::new();
    init.set_method(head.method.as_str());
    init.set_headers_headers(&headers::write(&without_the_platforms(head.headers))?);
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(&abort.signal()));
    // The platform refuses a GET with a body, which means nothing anyway (RFC 9110 §9.3.1).
    if !matches!(head.method, Method::GET | Method::HEAD) {
        init.set_body(&body::write(body));
    }
    let answer = JsFuture::from(platform_fetch(&head.uri.to_string(), &init)?);
    // The signal is not a timeout's: that would cut off a body which is still on its way.
    match select(answer, Sleep::new(deadline)).await {
        Either::Left((answer, _)) => read(&answer?.unchecked_into()).map(Ok),
        Either::Right(_) => {
            abort.abort();
            Ok(Err(FetchError::Timeout))
        }
    }
}

/// Without what the platform says itself: the host is the address's, and the length is the body's.
fn without_the_platforms(mut headers: HeaderMap) -> HeaderMap {
    for name in [header::HOST, header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn read(answer: &web_sys::Response) -> Result<Response, JsValue> {
    let mut response = Response::new(body::read(answer.body()));
    *response.status_mut() = StatusCode::from_u16(answer.status()).map_err(|_| JsValue::NULL)?;
    *response.headers_mut() = headers::read(&answer.headers());
    Ok(response)
}
