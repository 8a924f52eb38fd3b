//! The model of the storefront behind edgefront. What may be stored, and for how long, decides the product's policy.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use edgefront::{
    config::PageConfig,
    page_cache::{
        Reason, StoredPage,
        policy::{
            CacheControl, Heuristic, VaryFields,
            freshness::{Arrival, Popularity, freshness},
        },
    },
    ports::time::Timestamp,
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rand::{RngExt, rngs::SmallRng};

use crate::scenario::Shop;

/// See the [module](self).
pub struct Origin {
    headers: HeaderMap,
    body: Bytes,
    /// Time for a page.
    render: Duration,
    renders: u64,
}

impl Origin {
    #[must_use]
    pub fn new(shop: &Shop) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        let stated = shop.cache_control.as_deref().and_then(|value| value.parse().ok());
        headers.extend(stated.map(|value| (header::CACHE_CONTROL, value)));
        Self { headers, body: vec![b'a'; shop.page_bytes].into(), render: shop.render, renders: 0 }
    }

    /// When the response to a request at `asked` arrives. Half of the mean time is constant, the rest is random.
    pub fn arrival(&self, asked: Timestamp, random: &mut SmallRng) -> Timestamp {
        let chance: f64 = random.random();
        asked + self.render.mul_f64(0.5 - 0.5 * (1.0 - chance).ln())
    }

    /// The page to store, as it arrives.
    ///
    /// # Errors
    /// The reason why it must not be stored.
    pub fn page(
        &mut self,
        popularity: Popularity,
        arrived: Timestamp,
        config: &PageConfig,
        random: &mut SmallRng,
    ) -> Result<StoredPage, Reason> {
        let at = UNIX_EPOCH + Duration::from_millis(arrived.as_millis());
        let heuristic = Heuristic { popularity, fresh: config.ttl, stale: config.stale, overrides: false };
        let arrival = Arrival { at, delay: Duration::ZERO };
        let freshness = freshness(StatusCode::OK, &self.headers, arrival, &heuristic)?.jittered(random.random());
        self.renders += 1;
        let fresh_until = arrived + freshness.fresh;
        Ok(StoredPage {
            stamp: 0,
            render: format!("{:016x}", self.renders),
            stored: arrived,
            fresh_until,
            stale_until: fresh_until + freshness.stale,
            error_until: fresh_until + freshness.on_error,
            dies: arrived + freshness.lives,
            strict: freshness.strict,
            is_declared_shared: CacheControl::of_response(&self.headers).is_declared_shared(),
            vary: VaryFields::of(&self.headers).unwrap_or_default(),
            variant: String::new(),
            has_generated_etag: true,
            item: None,
            tags: Vec::new(),
            status: StatusCode::OK,
            headers: self.headers.clone(),
            body: self.body.clone().into(),
            holes: Vec::new(),
        })
    }
}
