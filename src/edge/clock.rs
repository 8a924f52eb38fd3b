//! The platform's time. It stands still between I/O, so that nothing can be measured with it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, future::LocalBoxFuture};
use wasm_bindgen_futures::JsFuture;

use super::glue;
use crate::time::{Alarm, Bell, Clock, Timestamp};

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
        let alarm = glue::alarm(millis(duration));
        let over = JsFuture::from(alarm.over());
        (Box::pin(over.map(drop)), Box::new(move || alarm.ring()))
    }
}

/// Resolves after a while, or when it is dropped: what waits for a promise is freed only when that resolves.
pub struct Sleep {
    alarm: glue::Alarm,
    over: JsFuture,
}

impl Sleep {
    pub fn new(duration: Duration) -> Self {
        let alarm = glue::alarm(millis(duration));
        Self { over: alarm.over().into(), alarm }
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
        self.alarm.ring();
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
