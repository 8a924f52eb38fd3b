//! The functions of `glue.js`.

use js_sys::{Function, Promise, Uint8Array};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use worker::web_sys;

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    #[wasm_bindgen(js_name = readRequest)]
    pub fn read_request(request: &Message) -> String;
    #[wasm_bindgen(js_name = readResponse)]
    pub fn read_response(response: &Message) -> String;
    /// Fails if the platform refuses the status or a header.
    #[wasm_bindgen(catch)]
    pub fn respond(status: u16, head: &str, body: &JsValue) -> Result<JsValue, JsValue>;
    pub fn keep(head: &str, bytes: &JsValue) -> JsValue;
    #[wasm_bindgen(catch, js_name = respondKept)]
    pub fn respond_kept(status: u16, kept: &JsValue, head: &str) -> Result<JsValue, JsValue>;
    /// Fails if `opened` has no WebSocket, or the platform refuses a header.
    #[wasm_bindgen(catch, js_name = respondWebSocket)]
    pub fn respond_websocket(opened: &Message, head: &str) -> Result<JsValue, JsValue>;
    /// Resolves with the response. Rejects also if the platform refuses the request.
    pub fn send(address: &str, method: &str, head: &str, body: &JsValue, millis: f64) -> Promise;

    /// As [`send`], through a service binding.
    #[wasm_bindgen(js_name = sendHome)]
    pub fn send_home(
        binding: &JsValue,
        address: &str,
        method: &str,
        head: &str,
        body: &JsValue,
        millis: f64,
    ) -> Promise;

    pub fn listen(call: JsValue);
    pub fn watch(promise: &Promise, number: u32);
    pub fn soon(number: u32);
    pub fn turn() -> Promise;
    /// Lets the current request go on until `work` settles, even if its client leaves.
    pub fn outlive(work: &Promise);
    pub fn sleep(number: u32, millis: f64);
    /// Returns the function that ends the wait early.
    pub fn alarm(number: u32, millis: f64) -> Function;

    pub type Reader;
    /// Fails if the stream has another reader.
    #[wasm_bindgen(catch)]
    pub fn reader(stream: &web_sys::ReadableStream) -> Result<Reader, JsValue>;
    pub fn read(reader: &Reader, size: u32) -> Promise;
    /// The bytes of a read, valid until [`reuse`]; None at the stream's end.
    pub fn chunk(read: &JsValue) -> Option<Uint8Array>;
    /// Returns a read's buffer to the pool. Copy its bytes first: the next read, perhaps another visitor's, overwrites them.
    pub fn reuse(chunk: &Uint8Array);
    pub fn cancel(reader: &Reader);
    /// Returns a stream of `first` and then the rest of `stream`. Releases `reader`, which must have no pending read.
    #[wasm_bindgen(js_name = passOn)]
    pub fn pass_on(reader: &Reader, stream: &web_sys::ReadableStream, first: &[u8]) -> JsValue;

    /// Returns a stream of the `length` bytes of `stream`, which the platform sends with its length.
    #[wasm_bindgen(js_name = ofLength)]
    pub fn of_length(stream: &JsValue, length: u32) -> JsValue;

    #[wasm_bindgen(js_name = listenExchanges)]
    pub fn listen_exchanges(call: JsValue);
    /// Delivers the response to the callback of [`listen_exchanges`].
    pub fn exchange(
        number: u32,
        address: &str,
        head: &str,
        body: &[u8],
        millis: f64,
        limit: f64,
        is_shared: bool,
        is_short: bool,
    );
    /// Counts `key`. Resolves with true if `key` is within the rate limit `binding`.
    pub fn count(binding: &JsValue, key: &str) -> Promise;
    /// Resolves with the page in which each element that a selector matches has marks. `selectors` is JSON.
    #[wasm_bindgen(js_name = markElements)]
    pub fn mark_elements(html: &[u8], selectors: &str, id: &str) -> Promise;
    /// Fails if a selector is invalid. `selectors` is JSON.
    #[wasm_bindgen(catch, js_name = checkSelectors)]
    pub fn check_selectors(selectors: &str) -> Result<(), JsValue>;
    /// Resolves with the rows of each statement. Statements and rows are JSON.
    pub fn query(database: &JsValue, statements: &str) -> Promise;
}

#[wasm_bindgen]
extern "C" {
    /// A request or a response.
    pub type Message;
    #[wasm_bindgen(method, getter)]
    pub fn body(this: &Message) -> Option<web_sys::ReadableStream>;
    /// Resolves with all bytes of the body. `bytes()` costs twice as much: it chains a promise.
    #[wasm_bindgen(method, js_name = arrayBuffer)]
    pub fn array_buffer(this: &Message) -> Promise;

    /// A promise and the function that resolves it.
    pub type Deferred;
    #[wasm_bindgen(js_namespace = Promise, js_name = withResolvers)]
    pub fn deferred() -> Deferred;
    #[wasm_bindgen(method, getter)]
    pub fn promise(this: &Deferred) -> Promise;
    #[wasm_bindgen(method)]
    pub fn resolve(this: &Deferred, value: &JsValue);

    /// An event's context.
    pub type Context;
    #[wasm_bindgen(method, js_name = waitUntil)]
    pub fn wait_until(this: &Context, work: &Promise);

    /// A cron trigger.
    pub type Trigger;
    #[wasm_bindgen(method, getter)]
    pub fn cron(this: &Trigger) -> String;
}
