//! The platform's time. It stands still between I/O, so that nothing can be measured with it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, future::LocalBoxFuture};
use js_sys::{Function, Promise};
use wasm_bindgen::{JsValue, prelude::wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

use super::glue;
use crate::time::{Alarm, Bell, Clock, Timestamp};

#[wasm_bindgen]
extern "C" {
    /// Its handle is a number, or an object since the runtime has Node's timers; `worker::Delay` takes it for a number.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(call: &Function, millis: f64) -> JsValue;
    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(timer: &JsValue);
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
        Timestamp::from_millis(js_sys::Date::now() as u64)
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(Sleep::new(duration))
    }

    fn turn(&self) -> LocalBoxFuture<'static, ()> {
        Box::pin(JsFuture::from(glue::turn()).map(drop))
    }

    fn alarm(&self, duration: Duration) -> (Alarm, Bell) {
        let alarm = glue::alarm(duration.as_secs_f64() * 1000.0);
        let over = JsFuture::from(alarm.over());
        (Box::pin(over.map(drop)), Box::new(move || alarm.ring()))
    }
}

/// Resolves after a while; dropped before, it leaves no timer behind.
pub struct Sleep {
    timer: JsValue,
    over: JsFuture,
}

impl Sleep {
    pub fn new(duration: Duration) -> Self {
        let mut timer = JsValue::UNDEFINED;
        let over = Promise::new(&mut |resolve, _| timer = set_timeout(&resolve, duration.as_secs_f64() * 1000.0));
        Self { timer, over: over.into() }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.over.poll_unpin(context).map(drop)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        clear_timeout(&self.timer);
    }
}
