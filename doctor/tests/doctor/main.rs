//! The doctor in front of small shops, each a real HTTP server in the test's process.
//!
//! - [`decisions`]: stored or not, the rules, the variables to paste.
//! - [`at_top`]: products at the top of the site.
//! - [`cookies`]: the rules for cookies that each page sets.
//! - [`dangers`]: shops that would show a visitor's page to another one.
//! - [`noise`]: content that changes at each request.
//! - [`crawl`]: which pages are requested.
//! - [`negotiation`]: languages and devices.
//! - [`countries`]: shops that know the visitor's country.
//! - [`random`]: random products.
//! - [`parameters`]: products that a query parameter names.
//! - [`choices_by_effect`]: links that choose without a name that says so.
//! - [`session_choices`]: sessions that keep the language.
//! - [`session_ids`]: links with the id of a session.
//! - [`siblings`]: kinds of few pages with one template.
//! - [`holes`]: pages that differ for a visitor in a few elements.
//! - [`esi`]: pages whose shop marks the parts of visitors.
//! - [`events`]: pages with carts and forms of their own below them.
//! - [`errors`]: shops that the doctor cannot examine.

mod at_top;
mod choices_by_effect;
mod cookies;
mod countries;
mod crawl;
mod dangers;
mod decisions;
mod errors;
mod esi;
mod events;
mod holes;
mod negotiation;
mod noise;
mod parameters;
mod random;
mod session_choices;
mod session_ids;
mod siblings;
mod support;
