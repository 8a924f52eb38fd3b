//! The gateway over raw HTTP, in front of a real server that the tests start. Every test has a gateway and a database
//! of its own.

mod support;

mod access;
mod batches;
mod client;
mod cluster;
mod commands;
mod connections;
mod encodings;
mod failover;
mod faults;
mod frozen;
mod hostile;
mod life;
mod limits;
mod program;
mod regions;
mod scripts;
mod streams;
mod unavailable;
