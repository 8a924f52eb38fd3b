//! Examines a storefront before edgefront is deployed in front of it. `cargo xtask doctor` runs this program with its
//! arguments.
//!
//! It never repeats a rule of the page cache. It renders pages with [`edgefront::page_cache::render`], the code of the
//! Worker, and asks the Worker's cookie and URL rules which visitors may get them.
//!
//! In reading order:
//! - [`arguments`]: the command line. [`settings`]: the Worker's configuration for this shop.
//! - [`shop`]: one polite HTTP client. [`robots`], [`links`]: which pages it may ask for.
//! - [`crawl`]: the sample. [`kinds`]: pages with the same path pattern. [`tell_tales`]: the software of the shop.
//! - [`visitor`]: the four visitors. [`render`]: one page, rendered for everybody.
//! - [`difference`], [`changes`], [`pieces`], [`tokens`]: the differences between two renders of one page.
//! - [`examine`]: one page for all visitors. [`chance`]: pages with several versions by chance. [`random`]: content
//!   that changes at each request. [`advice`]: the rule for a page
//!   that is not stored; [`parameters`]: its query. [`personal`]: names of personal pages. [`trial`]: tries rules. [`carts`]: the paths of carts.
//! - [`cookies`]: the rules for cookies that pages set for new visitors. [`login`]: the pages at which visitors sign in.
//! - [`siblings`], [`template`]: joins kinds whose few pages have one template.
//! - [`hole_trial`], [`elements`]: the personal parts of shared pages. [`fragments`]: those that the shop marks itself (ESI).
//! - [`negotiation`]: the languages, devices and formats for which the shop sends pages of their own. A shop keeps a visitor's
//!   preference in a cookie or in the session.
//!   [`variants`]: the rules for all of them.
//! - [`files`]: scripts that start the session which the rules keep away from the pages.
//! - [`danger`]: personal pages that would be shared. [`diagnosis`]: all steps. [`proposals`]: the
//!   rules for a kind of pages. [`report`]: the result as text or JSON.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod advice;
mod arguments;
mod carts;
mod chance;
mod changes;
mod cookies;
mod crawl;
mod danger;
mod diagnosis;
mod difference;
mod elements;
mod examine;
mod files;
mod fragments;
mod groups;
mod hole_trial;
mod kinds;
mod links;
mod login;
mod negotiation;
mod parameters;
mod personal;
mod pieces;
mod proposals;
mod random;
mod render;
mod report;
mod robots;
mod settings;
mod shop;
mod siblings;
mod tell_tales;
mod template;
mod tokens;
mod trial;
mod variants;
mod visitor;

use std::process::ExitCode;

use xtask::runner;

fn main() -> ExitCode {
    runner::parse().map_or_else(|code| code, |arguments| runner::run(diagnosis::run(arguments)))
}
