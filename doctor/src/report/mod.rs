//! The result of an examination, for people and for machines.

mod kind;
mod text;

pub use self::kind::average;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{advice::Rule, danger::Danger, difference::Difference, visitor::Visitor};

/// The method by which the hit ratio is estimated.
pub const ESTIMATE: &str = "Share of the sampled requests, by visitors without cookies and with analytics cookies \
    only, that a stored page can answer. Every page counts once, so weigh the kinds by their traffic in your shop. \
    Every item counts as popular, and the first request for each page is not counted. Visitors with other cookies get \
    pages of their own, unless the shop declares the page shared. The ratio with the proposed rules assumes \
    that all pages of a kind are like the tried one.";

/// The result. Its JSON has the same fields.
#[derive(Debug, Serialize)]
pub struct Report {
    pub url: String,
    /// The preset that the decisions are based on. None: none was given, and no software was recognized.
    pub preset: Option<PresetReport>,
    pub pages: usize,
    pub requests: u32,
    /// Remarks about the sample, for the reader.
    pub notes: Vec<String>,
    /// Personal pages that the shop declares shared, and future leaks.
    pub dangers: Vec<Danger>,
    pub kinds: Vec<KindReport>,
    /// 0 to 1; see `estimate`.
    pub hit_ratio: f64,
    pub hit_ratio_with_rules: f64,
    pub estimate: &'static str,
    /// For `[vars]` of wrangler.toml, without `ORIGIN_URL`.
    pub vars: Map<String, Value>,
}

/// The preset, and why it was chosen.
#[derive(Debug, Serialize)]
pub struct PresetReport {
    pub name: String,
    /// The traces of the software. Empty if the preset was given.
    pub traces: Vec<String>,
}

/// One kind of page.
#[derive(Debug, Serialize)]
pub struct KindReport {
    /// The path pattern.
    pub kind: String,
    pub example: String,
    pub pages: usize,
    /// Number of the pages that edgefront stores.
    pub stored: usize,
    /// The reasons why the others are not stored.
    pub not_stored: Vec<ReasonReport>,
    pub set_cookies: Vec<CookieReport>,
    /// `cache-control: …` and `vary: …`, each spelling once.
    pub headers: Vec<String>,
    /// The reason why the hit ratio may be lower than expected.
    pub warning: Option<String>,
    pub visitors: Vec<VisitorReport>,
    /// Number of pages of which two visitors' renders differ.
    pub renders_differ: usize,
    pub differences: Vec<Difference>,
    /// The change that would store the pages. None if every page is stored.
    pub remedy: Option<String>,
    /// Tried: with these rules, the pages are stored.
    pub rules: Vec<Rule>,
    pub hit_ratio: f64,
    pub hit_ratio_with_rules: f64,
}

/// A reason not to store a page.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ReasonReport {
    /// The `detail` of `Cache-Status`.
    pub reason: &'static str,
    pub cause: String,
    pub pages: usize,
}

/// A cookie that a page sets.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CookieReport {
    pub name: String,
    /// The rules' judgement of a visitor who has it.
    pub rule: &'static str,
    /// Shared renders do not set it.
    pub is_dropped: bool,
}

/// One visitor at all pages of a kind.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct VisitorReport {
    pub visitor: Visitor,
    /// The cookies that make the visitor personal, unless the shop declares the page shared.
    pub cookies: Vec<String>,
    pub pages: usize,
    pub gets_stored_page: usize,
    /// Number of pages of which the visitor's own differs from the page for everybody.
    pub own_page_differs: usize,
    pub differences: Vec<Difference>,
}
