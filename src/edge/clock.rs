//! The platform's time. It stands still between I/O, so that nothing can be measured with it, and each step asks for it once at the most.

use std::{cell::Cell, time::Duration};

use futures_util::{FutureExt, future::LocalBoxFuture};
use wasm_bindgen::JsValue;

use super::{glue, task::Settled};
use crate::ports::time::{Alarm, Bell, Clock, Timestamp};

thread_local! {
    /// The moment of this step, once somebody asked.
    static NOW: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// Says that another step begins: the clock may have moved.
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
        let (over, ()) = Settled::of(|number| glue::sleep(number, millis(duration)));
        Box::pin(over.map(drop))
    }

    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        Box::pin(Settled::from(glue::turn()).map(drop))
    }

    fn alarm(&self, duration: Duration) -> (Alarm, Bell) {
        let (over, ring) = Settled::of(|number| glue::alarm(number, millis(duration)));
        // It resolves a promise, which never fails.
        (Box::pin(over.map(drop)), Box::new(move || drop(ring.call0(&JsValue::UNDEFINED))))
    }
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
