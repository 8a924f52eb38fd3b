//! Responses of Redis. JavaScript delivers a response in one call with typed arguments. As the value of a promise, each
//! of its parts would take another call.

use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderValue, StatusCode};
use rustc_hash::FxHashMap;
use upstash_rest::TransportError;
use wasm_bindgen::{JsValue, prelude::Closure};

use super::{
    glue,
    task::{self, Settled},
};

type Delivered = Result<http::Response<Bytes>, TransportError>;

thread_local! {
    /// The responses that their callers have not read yet.
    static DELIVERED: RefCell<FxHashMap<u32, Delivered>> = RefCell::default();
}

/// Installs the callback for responses. Called once, when the isolate starts.
pub fn listen() {
    let deliver = Closure::<dyn Fn(u32, u16, Option<String>, Option<String>, Option<Vec<u8>>)>::new(
        |number, status, token, text: Option<String>, bytes| {
            let body = text.map(String::into_bytes).or(bytes).unwrap_or_default();
            task::settle(number, || {
                let delivered = read(status, token, body);
                DELIVERED.with_borrow_mut(|responses| responses.insert(number, delivered));
                Ok(JsValue::UNDEFINED)
            });
        },
    );
    // The callback lives as long as the isolate.
    glue::listen_exchanges(deliver.into_js_value());
}

/// The response with the only header that a caller reads.
fn read(status: u16, token: Option<String>, body: Vec<u8>) -> Delivered {
    let status = match status {
        0 => return Err(TransportError::Unreachable),
        1 => return Err(TransportError::Timeout),
        status => StatusCode::from_u16(status).map_err(|_| TransportError::Unreachable)?,
    };
    let mut response = http::Response::new(body.into());
    *response.status_mut() = status;
    if let Some(token) = token.and_then(|token| HeaderValue::try_from(token).ok()) {
        response.headers_mut().insert("upstash-sync-token", token);
    }
    Ok(response)
}

/// Resolves with the response of an exchange.
pub struct Delivery {
    number: u32,
    settled: Settled,
}

impl Delivery {
    /// Starts the exchange with its number.
    pub fn of(start: impl FnOnce(u32)) -> Self {
        let (settled, number) = Settled::of(|number| {
            start(number);
            number
        });
        Self { number, settled }
    }
}

impl Future for Delivery {
    type Output = Delivered;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let number = self.number;
        self.settled.poll_unpin(context).map(|_| {
            let delivered = DELIVERED.with_borrow_mut(|responses| responses.remove(&number));
            delivered.unwrap_or(Err(TransportError::Unreachable))
        })
    }
}

/// Drops a response that nobody has read.
impl Drop for Delivery {
    fn drop(&mut self) {
        let unread = DELIVERED.with_borrow_mut(|responses| responses.remove(&self.number));
        drop(unread);
    }
}
