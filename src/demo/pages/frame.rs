//! The parts around every page's own content: head, header and footer.

use std::borrow::Cow;

use askama::Template;
use serde_json::Value;

use crate::demo::{assets, shopper::Shopper};

/// The facts that head and header show.
#[derive(Default)]
pub(in crate::demo) struct Frame<'a> {
    /// The title, without the shop's name.
    pub title: Cow<'a, str>,
    /// The summary for search engines. Empty on pages that they must not list.
    pub description: Cow<'a, str>,
    /// Scheme and host of the shop, and the canonical path of the page. Empty on pages that search engines must not list.
    pub url: Option<(&'a str, Cow<'a, str>)>,
    /// Data for search engines (schema.org), as a JSON array.
    pub data: Option<Value>,
    /// The category of the page; empty without one.
    pub category: &'a str,
    /// The text of the search field.
    pub search: &'a str,
    /// The visitor, on a page that is rendered for this visitor only. The header then needs no script.
    pub shopper: Option<&'a Shopper>,
    /// The bundles that only some pages need: styles or scripts.
    pub bundle: Option<assets::Bundle>,
}

impl<'a> Frame<'a> {
    /// A page that anybody may see and search engines may list.
    pub(in crate::demo) fn public(title: &'a str, description: &'a str, site: &'a str, path: &'a str) -> Self {
        let url = Some((site, path.into()));
        Self { title: title.into(), description: description.into(), url, ..Self::default() }
    }

    /// A page for one visitor.
    pub(in crate::demo) fn private(title: &'a str, shopper: &'a Shopper) -> Self {
        Self { title: title.into(), shopper: Some(shopper), bundle: Some(assets::VISITOR), ..Self::default() }
    }

    /// A form page of a guest.
    pub(in crate::demo) fn form(title: &'a str) -> Self {
        Self { title: title.into(), bundle: Some(assets::VISITOR), ..Self::default() }
    }

    pub(in crate::demo) fn header(&self) -> PageHeader<'_> {
        PageHeader { frame: self }
    }

    /// The signed-in visitor's name in the header: the email up to its `@`, as in `assets/shop/visitor.js`. None for a
    /// guest.
    fn user_name(&self) -> Option<&str> {
        self.shopper?.user.as_deref()?.split('@').next()
    }

    /// Pieces in the visitor's cart; None if it is empty or unknown.
    fn pieces(&self) -> Option<u32> {
        let pieces = self.shopper?.cart.as_ref()?.values().sum();
        (pieces > 0).then_some(pieces)
    }

    /// [`data`](Self::data) for a script element: no text in it is markup.
    fn data_text(&self) -> Option<String> {
        self.data.as_ref().map(|data| data.to_string().replace('<', "\\u003c").replace('>', "\\u003e"))
    }
}

/// The part above every page's own content. A template of its own, so that it is compiled once instead of once per
/// page.
#[derive(Template)]
#[template(path = "header.html")]
pub(in crate::demo) struct PageHeader<'a> {
    frame: &'a Frame<'a>,
}

/// The part below every page's own content.
#[derive(Template)]
#[template(path = "footer.html")]
pub(in crate::demo) struct PageFooter;
