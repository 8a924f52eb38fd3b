#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

// In reading order: what is sent, how it is sent, what comes back, what can go wrong.
pub mod cmd;
mod command;
mod script;

mod batch;
mod client;
mod meter;
mod sync;
mod transport;

mod error;
mod reply;

pub use client::{Client, Credentials, CredentialsError};
pub use command::{Command, CommandList, Typed};
pub use error::{Error, TransportError};
pub use meter::{Attribution, Meter, Totals, Troubles, Usage};
pub use reply::{Expiry, FromReply, Pairs, Reply, next_reply, parse_f64};
pub use script::Script;
pub use sync::SyncScope;
#[cfg(all(feature = "reqwest", not(target_arch = "wasm32")))]
pub use transport::ReqwestTransport;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
pub use transport::WebTransport;
pub use transport::{Alarm, ExchangeTerms, Transport, Wake};

/// For the macro [`script!`] only.
#[doc(hidden)]
pub mod __private {
    pub use crate::script::{equal, sha1_hex, strip_comments};
}
