//! What `glue.js` does, seen from here.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::{JsCast, JsValue, prelude::wasm_bindgen};
use worker::web_sys::{self, AbortSignal};

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    #[wasm_bindgen(js_name = readRequest)]
    pub fn read_request(request: &Message) -> String;
    #[wasm_bindgen(js_name = readResponse)]
    pub fn read_response(response: &Message) -> String;
    /// Caught: the platform refuses some statuses and values.
    #[wasm_bindgen(catch)]
    pub fn respond(status: u16, head: &str, body: &JsValue) -> Result<JsValue, JsValue>;
    pub fn keep(head: &str, bytes: &js_sys::Uint8Array) -> JsValue;
    #[wasm_bindgen(catch, js_name = respondKept)]
    pub fn respond_kept(status: u16, kept: &JsValue, head: &str) -> Result<JsValue, JsValue>;
    /// Caught, since what a visitor can make the platform refuse (a method that it does not know) must not end the isolate.
    #[wasm_bindgen(catch)]
    pub fn send(
        address: &str,
        method: &str,
        head: &str,
        body: &JsValue,
        signal: &AbortSignal,
    ) -> Result<Promise, JsValue>;
    pub fn turn() -> Promise;

    pub type Reader;
    /// Caught: what somebody else reads can not be read.
    #[wasm_bindgen(catch)]
    pub fn reader(stream: &web_sys::ReadableStream) -> Result<Reader, JsValue>;
    /// Resolves with bytes, or undefined at the end.
    #[wasm_bindgen(js_name = nextChunk)]
    pub fn next_chunk(reader: &Reader) -> Promise;
    pub fn cancel(reader: &Reader);

    pub type Alarm;
    pub fn alarm(millis: f64) -> Alarm;
    #[wasm_bindgen(method, getter)]
    pub fn over(this: &Alarm) -> Promise;
    #[wasm_bindgen(method)]
    pub fn ring(this: &Alarm);

    /// A list of the answer's head and its bytes, or null.
    #[wasm_bindgen(catch)]
    pub async fn exchange(address: &str, head: &str, body: &[u8], millis: f64, limit: f64) -> Result<JsValue, JsValue>;
    /// Whether the rate limit `binding` lets one more of `key` through.
    #[wasm_bindgen(catch)]
    pub async fn count(binding: &JsValue, key: &str) -> Result<JsValue, JsValue>;
    /// The rows of each of `statements`: JSON, both.
    #[wasm_bindgen(catch)]
    pub async fn query(database: &JsValue, statements: &str) -> Result<JsValue, JsValue>;
}

#[wasm_bindgen]
extern "C" {
    /// A request or a response.
    pub type Message;
    #[wasm_bindgen(method, getter)]
    pub fn body(this: &Message) -> Option<web_sys::ReadableStream>;
    /// Resolves with all bytes of its body.
    #[wasm_bindgen(method)]
    pub fn bytes(this: &Message) -> Promise;

    /// What the platform gives along with an event.
    pub type Context;
    #[wasm_bindgen(method, js_name = waitUntil)]
    pub fn wait_until(this: &Context, work: &Promise);

    /// A cron trigger.
    pub type Trigger;
    #[wasm_bindgen(method, getter)]
    pub fn cron(this: &Trigger) -> String;
}

/// What [`next_chunk`] resolved with.
pub fn bytes_of(chunk: JsValue) -> Option<Uint8Array> {
    (!chunk.is_undefined()).then(|| chunk.unchecked_into())
}
