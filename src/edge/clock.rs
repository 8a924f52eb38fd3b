//! The platform's clock. It stands still between I/O, so it cannot measure CPU time; each step reads it at most once.

use std::{cell::Cell, time::Duration};

use futures_util::{FutureExt, future::LocalBoxFuture};
use wasm_bindgen::JsValue;

use super::{glue, task::Settled};
use crate::ports::time::{Alarm, Clock, Timestamp, Wake};

thread_local! {
    /// The moment of the current step, once it was read.
    static NOW: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// Starts a step: the clock may have moved.
pub fn moved_on() {
    NOW.set(None);
}

/// `Date.now` and `setTimeout`.
pub struct PlatformClock;

impl Clock for PlatformClock {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds since 1970: whole, positive"
    )]
    fn now(&self) -> Timestamp {
        NOW.get().unwrap_or_else(|| {
            let now = Timestamp::from_millis(js_sys::Date::now() as u64);
            NOW.set(Some(now));
            now
        })
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        let (elapsed, ()) = Settled::of(|number| glue::sleep(number, millis(duration)));
        Box::pin(elapsed.map(drop))
    }

    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        Box::pin(Settled::from(glue::turn()).map(drop))
    }

    fn alarm(&self, duration: Duration) -> (Alarm, Wake) {
        let (ended, wake) = Settled::of(|number| glue::alarm(number, millis(duration)));
        // `wake` resolves a promise, so it cannot fail.
        (Box::pin(ended.map(drop)), Box::new(move || drop(wake.call0(&JsValue::UNDEFINED))))
    }
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
