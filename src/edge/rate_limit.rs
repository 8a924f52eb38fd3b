//! Rate limiting bindings as [`RateLimiter`].

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use js_sys::Reflect;
use wasm_bindgen::JsValue;

use super::{glue, task::Settled};
use crate::ports::rate_limit::{RateLimit, RateLimiter, RateLimits};

/// The bindings' names in `wrangler.toml`.
const LOGINS: &str = "LOGIN_LIMIT";
const WRITES: &str = "WRITE_LIMIT";
const VIEWS: &str = "VIEW_LIMIT";

/// A binding.
struct PlatformRateLimiter(JsValue);

impl RateLimiter for PlatformRateLimiter {
    fn count(&self, key: String) -> LocalBoxFuture<'_, bool> {
        Box::pin(async move {
            let counted = Settled::from(glue::count(&self.0, &key)).await;
            let Ok(is_within) = counted else {
                log::warn!("a rate limit does not answer, and lets everybody through");
                return true;
            };
            is_within.is_truthy()
        })
    }
}

/// The rate limits of the bindings in `env`. A missing binding limits nothing.
pub fn of(env: &JsValue) -> RateLimits {
    let limit = |name: &str| {
        let binding = Reflect::get(env, &name.into()).ok().filter(JsValue::is_object);
        RateLimit::new(binding.map(|binding| Rc::new(PlatformRateLimiter(binding)) as _))
    };
    RateLimits::new(limit(LOGINS), limit(WRITES), limit(VIEWS))
}
