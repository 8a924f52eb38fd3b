//! The log, on the console: `wrangler tail` and the dashboard show it by level.

use log::{Level, LevelFilter, Log, Metadata, Record};
use worker::{console_error, console_log, console_warn};

use crate::metrics::event_log;

struct Console;

impl Log for Console {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.level() <= Level::Info
    }

    fn log(&self, record: &Record) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = event_log::line(record);
        match record.level() {
            Level::Error => console_error!("{line}"),
            Level::Warn => console_warn!("{line}"),
            _ => console_log!("{line}"),
        }
    }

    fn flush(&self) {}
}

/// Installs the log. It also logs the place of a panic, because the platform reports a panic only as `unreachable`.
pub fn install() {
    // Fails only if a log is installed already.
    if log::set_logger(&Console).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
    std::panic::set_hook(Box::new(|panic| log::error!("{panic}")));
}
