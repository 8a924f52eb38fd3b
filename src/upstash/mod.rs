//! Redis over REST, as Upstash defines it: one HTTP request for a command, a pipeline or a transaction.
//!
//! Knows nothing of shops. Which form when: independent commands share one [`Redis::pipeline`], whoever else's are in it; a fixed set of writes that
//! must happen together is one [`Redis::transaction`]; a write that depends on a read is one [`Script`]. There is no WATCH
//! over REST.
//!
//! - [`command`]: a command and its arguments, and how it is written as JSON.
//! - [`script`]: a Lua script that is sent by its hash.
//! - [`reply`]: what came back, and the types it is read as.
//! - [`batch`]: what concurrent requests send together.
//! - [`client`]: one request, one deadline, and a retry where that is harmless.
//! - [`meter`]: how much is sent, and whether somebody waits for it.
//! - [`error`]: what can go wrong; never with a key or a value in it.

mod batch;
mod client;
mod command;
mod error;
mod meter;
mod reply;
mod script;

pub use client::{Credentials, Redis};
pub use command::Command;
pub use error::Error;
pub use meter::{Meter, Sent, Waits};
pub use reply::{FromReply, Pairs, Reply, number};
pub use script::Script;
pub(crate) use script::{dense, script};
