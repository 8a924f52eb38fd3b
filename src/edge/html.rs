//! [`Html`] by the platform's `HTMLRewriter`.

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use js_sys::{Error, Uint8Array};
use wasm_bindgen::{JsCast, JsValue};

use super::{glue, task::Settled};
use crate::ports::html::{Html, HtmlError, Marks};

/// The platform's `HTMLRewriter`.
pub struct Rewriter;

impl Html for Rewriter {
    fn mark(&self, html: Bytes, selectors: Vec<String>, marks: Marks) -> LocalBoxFuture<'_, Result<Bytes, HtmlError>> {
        Box::pin(async move {
            let marked = Settled::from(glue::mark_elements(&html, &json(&selectors), marks.id())).await;
            Ok(marked
                .map_err(|error| HtmlError::Parser(message(&error)))?
                .unchecked_into::<Uint8Array>()
                .to_vec()
                .into())
        })
    }
}

/// Checks selectors.
///
/// # Errors
/// The first invalid selector and its problem.
pub fn check<'a>(selectors: impl Iterator<Item = &'a str>) -> Result<(), String> {
    glue::check_selectors(&json(&selectors.collect::<Vec<_>>())).map_err(|error| message(&error))
}

fn json(selectors: &[impl serde::Serialize]) -> String {
    // Serializing strings cannot fail.
    serde_json::to_string(selectors).unwrap_or_default()
}

fn message(error: &JsValue) -> String {
    error.dyn_ref::<Error>().map_or_else(|| format!("{error:?}"), |error| error.message().into())
}
