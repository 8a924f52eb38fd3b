//! [`LocationCache`] by the platform's Cache API.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::{JsCast, prelude::wasm_bindgen};

use super::{clock::millis, task::Settled};
use crate::ports::location_cache::{LocationCache, NoAnswer};

#[wasm_bindgen(module = "/src/edge/location_cache.js")]
extern "C" {
    fn find(name: &str, known: &str, millis: f64) -> Promise;
    fn keep(name: &str, stamp: &str, head: &[u8], body: &[u8], seconds: f64) -> Promise;
}

/// The Cache API. It fails where the platform has none.
pub struct CacheApi;

impl LocationCache for CacheApi {
    fn get<'a>(
        &'a self,
        name: &'a str,
        known: &'a str,
        deadline: Duration,
    ) -> LocalBoxFuture<'a, Result<Option<Bytes>, NoAnswer>> {
        Box::pin(async move {
            let found = Settled::from(find(name, known, millis(deadline))).await.map_err(|_| NoAnswer)?;
            Ok(found.dyn_ref().map(|bytes: &Uint8Array| bytes.to_vec().into()))
        })
    }

    fn put<'a>(
        &'a self,
        name: &'a str,
        stamp: &'a str,
        [head, body]: [&'a [u8]; 2],
        lifetime: Duration,
    ) -> LocalBoxFuture<'a, Result<(), NoAnswer>> {
        let stored = Settled::from(keep(name, stamp, head, body, lifetime.as_secs_f64().floor()));
        Box::pin(async move { stored.await.map(drop).map_err(|_| NoAnswer) })
    }
}
