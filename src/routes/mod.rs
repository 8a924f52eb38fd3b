//! HTTP in, HTTP out. `/_edge/` is ours, everything else is the storefront's. Nothing here is a Redis command.

pub mod problem;
