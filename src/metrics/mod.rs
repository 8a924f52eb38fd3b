//! Measurements for operators: traffic counters, storage statistics, and the log.

pub mod journal;
pub mod stats;
pub mod traffic;
