//! A Worker that touches nothing and answers a page of 20 KB: what the platform can do at most, in Rust. Built as
//! edgefront is. One that always holds: the request is not looked at, and the body crosses the border to JavaScript
//! once, as bytes.
#![cfg(target_arch = "wasm32")]

use std::sync::LazyLock;

use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use web_sys::{Headers, Response, ResponseInit};

/// Answers any request.
///
/// # Errors
/// None: the platform takes this header and these bytes.
#[wasm_bindgen]
pub fn fetch() -> Result<Response, JsValue> {
    let headers = Headers::new()?;
    headers.set("Content-Type", "text/html; charset=utf-8")?;
    let init = ResponseInit::new();
    init.set_headers_headers(&headers);
    // A copy of its own: the bytes of the Worker's memory may move.
    let body = js_sys::Uint8Array::from(PAGE.as_slice());
    Response::new_with_opt_buffer_source_and_init(Some(&body), &init)
}

static PAGE: LazyLock<Vec<u8>> = LazyLock::new(|| b"<p>A page of twenty thousand bytes.</p>\n".repeat(512));
