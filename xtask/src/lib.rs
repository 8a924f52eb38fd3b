//! Set-up that the commands of xtask share with the crates `edgefront-measure` and `edgefront-doctor`.
//!
//! - Build: [`worker`] (the Worker and its assets), [`bundle`] (one crate to one Worker bundle), `remap` (the same
//!   bytes in every directory), [`stamp`] (what is up to date).
//! - Installed programs: [`tools`] (wasm target, wasm-bindgen), [`npm`], [`redis`], [`wheel`] (pinned Python wheels),
//!   [`schemathesis`], [`chromium`]; [`program`] checks that one runs.
//! - Execution: [`runner`] (one command), [`steps`] (progress lines), [`process_group`] (child processes), [`file_lock`] (one
//!   process at a time), [`failure`].
//! - [`sample_visitors`]: visitors of the demo shop.
//! - [`storefront`]: third-party storefronts for tests.
//! - [`wrangler_toml`]: the Worker's configuration; [`variables`]: its variables on the command line.

mod assets;
pub mod bundle;
pub mod chromium;
pub mod failure;
pub mod file_lock;
pub mod npm;
pub mod process_group;
pub mod program;
pub mod redis;
mod remap;
pub mod runner;
pub mod sample_visitors;
pub mod schemathesis;
pub mod stamp;
pub mod steps;
pub mod storefront;
pub mod tools;
pub mod variables;
pub mod wheel;
pub mod worker;
pub mod wrangler_toml;
