//! Captures edgefront's log for a test. A failed test prints the lines.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, Once, PoisonError},
};

use edgefront::metrics::event_log;

/// The log lines of one shop.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub fn push(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Prints the lines if the test fails.
impl Drop for Lines {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.all().iter().for_each(|line| println!("shop: {line}"));
        }
    }
}

thread_local! {
    static LINES: RefCell<Option<Lines>> = const { RefCell::new(None) };
}

/// Appends this thread's log to `lines` from now on. Each native shop has a thread of its own.
pub fn keep_this_threads(lines: Lines) {
    static SET: Once = Once::new();
    SET.call_once(|| {
        log::set_logger(&Logger).expect("the only logger");
        log::set_max_level(log::LevelFilter::Info);
    });
    LINES.set(Some(lines));
}

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        LINES.with_borrow(|lines| {
            if let Some(lines) = lines {
                lines.push(format!("{}: {}", record.level().as_str().to_lowercase(), event_log::line(record)));
            }
        });
    }

    fn flush(&self) {}
}
