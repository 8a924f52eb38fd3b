//! The `fetch` and the timers that a browser, a Worker and Node have in common.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, future::LocalBoxFuture};
use http::{HeaderValue, StatusCode};
use js_sys::{Function, Promise, Reflect, Uint8Array, futures::JsFuture};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use web_sys::{AbortSignal, Headers, RequestInit, RequestRedirect, Response};

use super::{Alarm, ExchangeTerms, Transport, Wake};
use crate::error::TransportError;

#[wasm_bindgen]
extern "C" {
    /// Caught: some platforms throw where others reject.
    #[wasm_bindgen(catch)]
    fn fetch(url: &str, options: &RequestInit) -> Result<Promise, JsValue>;
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(call: &Function, millis: f64) -> JsValue;
}

/// A transport over the global `fetch`, for wasm32: a browser, a Worker, Node.
#[derive(Debug, Clone, Copy, Default)]
pub struct WebTransport;

impl Transport for WebTransport {
    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move { send(request, terms).await.map_err(|error| failure(&error)) })
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(js_sys::Date::now() / 1000.0)
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        let (promise, resolve) = deferred();
        set_timeout(&resolve, millis(duration));
        Box::pin(JsFuture::from(promise).map(drop))
    }

    /// Resolves a promise, so that in a Worker the sleeper wakes in the context of its own request. The platform knows
    /// that context only of promises that `withResolvers` makes: those of optimised `new Promise` code lose it.
    fn alarm(&self, duration: Duration) -> (Alarm, Wake) {
        let (promise, resolve) = deferred();
        set_timeout(&resolve, millis(duration));
        // The resolver of a promise never throws.
        let wake = move || drop(resolve.call0(&JsValue::UNDEFINED));
        (Box::pin(JsFuture::from(promise).map(drop)), Box::new(wake))
    }
}

/// A promise, and the function that resolves it.
fn deferred() -> (Promise, Function) {
    let deferred = Promise::with_resolvers::<JsValue, JsValue>();
    (deferred.promise(), deferred.resolve().unchecked_into())
}

async fn send(
    request: http::Request<Bytes>,
    ExchangeTerms { deadline, limit, .. }: ExchangeTerms,
) -> Result<http::Response<Bytes>, JsValue> {
    let (head, body) = request.into_parts();
    let headers = Headers::new()?;
    for (name, value) in &head.headers {
        headers.append(name.as_str(), value.to_str().unwrap_or_default())?;
    }
    let options = RequestInit::new();
    options.set_method(head.method.as_str());
    options.set_headers(&headers);
    options.set_body(&Uint8Array::from(&*body));
    drop(body);
    options.set_redirect(RequestRedirect::Manual);
    options.set_signal(Some(&AbortSignal::timeout_with_f64(millis(deadline))));
    let response: Response = JsFuture::from(fetch(&head.uri.to_string(), &options)?).await?.dyn_into()?;
    if length(&response).is_some_and(|length| length > limit) {
        return Err(JsValue::UNDEFINED);
    }
    let status = StatusCode::from_u16(response.status()).map_err(|_| JsValue::UNDEFINED)?;
    let token = response.headers().get("upstash-sync-token").ok().flatten();
    let body = Uint8Array::new(&JsFuture::from(response.array_buffer()?).await?).to_vec();
    if body.len() > limit {
        return Err(JsValue::UNDEFINED);
    }
    let mut read = http::Response::new(body.into());
    *read.status_mut() = status;
    if let Some(token) = token.and_then(|token| HeaderValue::try_from(token).ok()) {
        read.headers_mut().insert("upstash-sync-token", token);
    }
    Ok(read)
}

fn length(response: &Response) -> Option<usize> {
    response.headers().get("content-length").ok()??.parse().ok()
}

/// Reads the failure of a `fetch`: an aborted one has a name.
fn failure(error: &JsValue) -> TransportError {
    let name = Reflect::get(error, &"name".into()).ok().and_then(|name| name.as_string());
    if name.as_deref() == Some("TimeoutError") { TransportError::Timeout } else { TransportError::Unreachable }
}

/// Milliseconds, at most what a timer can hold (24.8 days): a longer one would fire at once.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).min(f64::from(i32::MAX))
}
