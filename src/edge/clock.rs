//! The platform's clock and timers.

use std::time::Duration;

use futures_util::{FutureExt, future::LocalBoxFuture};
use wasm_bindgen::JsValue;

use super::{glue, step_time, task::Settled};
use crate::ports::time::{Alarm, Clock, Timestamp, Wake};

/// `Date.now` and `setTimeout`.
pub struct PlatformClock;

impl Clock for PlatformClock {
    fn now(&self) -> Timestamp {
        step_time::now()
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
