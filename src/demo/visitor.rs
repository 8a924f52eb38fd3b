//! Who asks, as the edge says. It drops what a client says of itself, so these headers are to be believed.

use std::collections::BTreeMap;

use http::{HeaderMap, request::Parts};

/// Whoever sent a request.
#[derive(Debug, Default)]
pub(super) struct Visitor {
    /// `Edge-User`: who is signed in. None also where Redis does not answer.
    pub user: Option<String>,
    /// `Edge-Cart`: item → quantity, ordered by item. None where Redis does not answer, which is not an empty cart.
    pub cart: Option<BTreeMap<String, u32>>,
}

impl Visitor {
    pub(super) fn of(head: &Parts) -> Self {
        let cart = text(&head.headers, "edge-cart").and_then(|cart| serde_json::from_str(cart).ok());
        Self { user: text(&head.headers, "edge-user").map(str::to_owned), cart }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
