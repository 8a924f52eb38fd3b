//! Headers, both ways. The platform takes the bytes of a value for UTF-8: a lone latin1 byte arrives as U+FFFD, and there is no
//! way to see what it was. So text is carried as UTF-8 here too, and no value can break an answer.

use http::{HeaderMap, HeaderName, HeaderValue};
use js_sys::Array;
use wasm_bindgen::JsValue;
use worker::web_sys::Headers;

/// Reads all headers; each `Set-Cookie` is one of its own.
pub fn read(from: &Headers) -> HeaderMap {
    let pairs = from.entries().into_iter().filter_map(|entry| entry.ok().map(|entry| Array::from(&entry)));
    // Collected by appending: a name that comes again keeps its values.
    let headers = pairs.filter_map(|pair| {
        let name = HeaderName::try_from(pair.get(0).as_string()?).ok()?;
        Some((name, HeaderValue::try_from(pair.get(1).as_string()?).ok()?))
    });
    headers.collect()
}

/// Writes all headers.
///
/// # Errors
/// If the platform refuses a value.
pub fn write(from: &HeaderMap) -> Result<Headers, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in from {
        headers.append(name.as_str(), &String::from_utf8_lossy(value.as_bytes()))?;
    }
    Ok(headers)
}
