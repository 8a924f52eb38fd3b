//! Measurements for operators.
//!
//! - [`event_log`]: the log, one line of JSON for each event.
//! - [`prometheus`]: the measurements in the text format of Prometheus.
//! - [`storage`]: counts and sizes of the data in Redis.
//! - [`traffic`]: counters, latencies and errors of responses, visitors' actions and Redis requests.
//! - [`write_probe`]: checks that Redis accepts writes.

pub mod event_log;
pub mod prometheus;
pub mod storage;
pub mod traffic;
pub mod write_probe;
