//! The platform's time. It stands still between I/O, so that nothing can be measured with it.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use worker::Delay;

use crate::time::{Clock, Timestamp};

/// `Date.now` and `setTimeout`.
pub struct PlatformClock;

impl Clock for PlatformClock {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds since 1970 are whole and positive"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(js_sys::Date::now() as u64)
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(Delay::from(duration))
    }
}
