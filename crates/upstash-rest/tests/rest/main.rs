//! The client against a real server behind the gateway: the requests that it sends, and the results that it gives.
//! Every test has a database and a gateway of its own.

mod support;

mod batching;
mod errors;
mod meter;
mod replies;
mod retries;
mod scripts;
mod sync;
mod transactions;
mod typed;
mod wire;
