//! Runs the cron jobs every few seconds, because raw workerd has no cron triggers. The next run repairs a failed one.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::shop::ShopHandle;
use crate::worker_variables::SERVICE_KEY;

/// Not a divisor of the time between two kills of Redis, so that some runs fall into its downtime.
const PERIOD: Duration = Duration::from_secs(7);
const RUN_TIMEOUT: Duration = Duration::from_secs(20);

/// Runs the jobs repeatedly until `end`.
pub async fn tick_until(end: Instant, shop: ShopHandle) {
    while Instant::now() < end {
        for job in ["clean-sessions", "refresh-rows", "rescale", "roll-up"] {
            let url = format!("{}/_edge/v1/jobs/{job}", shop.url());
            let response = shop.http.post(url).bearer_auth(SERVICE_KEY).timeout(RUN_TIMEOUT).send().await;
            shop.tally().job(response.is_ok_and(|response| response.status().is_success()));
        }
        time::sleep(PERIOD).await;
    }
}
