//! What the platform's crons do each minute, here every few seconds, since raw workerd has none. A run that fails is the next one's to repair.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::shop::Door;
use crate::bench::candidate::SERVICE_KEY;

/// Not a divisor of the time between two kills: some runs fall into them.
const PERIOD: Duration = Duration::from_secs(7);
/// What a run may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the three jobs again and again until `end`.
pub async fn tick_until(end: Instant, door: Door) {
    while Instant::now() < end {
        for job in ["clean-sessions", "refresh-rows", "rescale"] {
            let url = format!("{}/_edge/v1/jobs/{job}", door.url());
            let ran = door.client.post(url).bearer_auth(SERVICE_KEY).timeout(PATIENCE).send().await;
            door.tally().job(ran.is_ok_and(|answer| answer.status().is_success()));
        }
        time::sleep(PERIOD).await;
    }
}
