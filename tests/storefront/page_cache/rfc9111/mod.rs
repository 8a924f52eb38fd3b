//! A shared HTTP cache, by the sections of RFC 9111, 9110, 5861, 9211 and 9213. The unit tests of the header parsers
//! are beside the parsers. These tests are about clients and origins.

/// RFC 9111 §4.4: unsafe requests.
mod invalidation;
/// RFC 9110 §14, RFC 9111 §3.3: ranges.
mod parts;
/// RFC 9111 §3, §4: the stored responses, and their reuse.
mod reuse;
/// RFC 9111 §4.2.4, RFC 5861: stale responses.
mod stale;
/// RFC 9111 §4.3: validation.
mod validation;
/// RFC 9111 §4.1: `Vary`.
mod variants;

use crate::support::{Reply, Shop};

/// A page with `control` as its `Cache-Control`.
pub fn fresh(body: &str, control: &str) -> Reply {
    Reply::html(body.to_owned()).header("cache-control", control)
}

/// `Cache-Status` and body of a visit with these headers. Waits for its background work.
pub async fn ask(shop: &Shop, path: &str, headers: &[(&str, &str)]) -> (String, String) {
    let mut request = shop.get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.expect("an answer");
    let status = super::cache_status(&answer);
    let body = answer.text().await.expect("a body");
    shop.settled().await;
    (status.trim_start_matches("edgefront; ").to_owned(), body)
}

/// The `Cache-Status` of [`ask`].
pub async fn status(shop: &Shop, path: &str, headers: &[(&str, &str)]) -> String {
    ask(shop, path, headers).await.0
}
