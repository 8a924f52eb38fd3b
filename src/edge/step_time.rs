//! The time of the current step. The platform's clock advances only at I/O. So each step reads it at most once, and the
//! clock cannot measure CPU time.

use std::cell::Cell;

use crate::ports::time::Timestamp;

thread_local! {
    /// The moment of the current step; None before its first read.
    static NOW: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// Starts a step: the clock may have moved.
pub fn begin_step() {
    NOW.set(None);
}

/// The moment of the current step.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds since 1970: whole, positive")]
pub fn now() -> Timestamp {
    NOW.get().unwrap_or_else(|| {
        let now = Timestamp::from_millis(js_sys::Date::now() as u64);
        NOW.set(Some(now));
        now
    })
}
