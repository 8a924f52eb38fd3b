//! The throughput of one hot product page: edgefront and the storefront alone, alternating in the same run.

use std::{
    fmt,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use reqwest::Client;
use xtask::failure::Failure;

use super::stack::Stack;
use crate::statistics::median;

const CONNECTIONS: usize = 8;
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(4);

/// Requests per second, medians of the rounds.
pub struct Throughput {
    edgefront: f64,
    storefront: f64,
    /// See [`Shop::min_speedup`](super::shops::Shop::min_speedup).
    min_ratio: f64,
}

impl Throughput {
    /// Measures both.
    ///
    /// # Errors
    /// When an answer is not 200.
    pub async fn measure(stack: &Stack) -> Result<Self, Failure> {
        let path = stack.shop.products().into_iter().next().unwrap_or_default();
        let (mut edgefront, mut storefront) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            edgefront.push(rate(&format!("{}{path}", stack.url)).await?);
            storefront.push(rate(&format!("{}{path}", stack.origin)).await?);
        }
        Ok(Self {
            edgefront: median(edgefront).unwrap_or_default(),
            storefront: median(storefront).unwrap_or_default(),
            min_ratio: stack.shop.min_speedup(),
        })
    }

    /// A sentence if edgefront is too slow.
    pub fn failure(&self) -> Option<String> {
        (self.ratio() < self.min_ratio).then(|| format!("{self}, wanted {} times", self.min_ratio))
    }

    fn ratio(&self) -> f64 {
        self.edgefront / self.storefront
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { edgefront, storefront, .. } = self;
        write!(f, "{edgefront:.0} requests/s, the storefront alone {storefront:.0}: {:.1} times", self.ratio())
    }
}

/// Requests per second of all connections together.
async fn rate(url: &str) -> Result<f64, Failure> {
    let begin = Instant::now();
    let counts = join_all((0..CONNECTIONS).map(|_| request_until(url, begin + ROUND))).await;
    let total: u32 = counts.into_iter().sum::<Result<u32, Failure>>()?;
    Ok(f64::from(total) / begin.elapsed().as_secs_f64())
}

async fn request_until(url: &str, end: Instant) -> Result<u32, Failure> {
    let http = Client::new();
    let mut count = 0;
    while Instant::now() < end {
        let failed = |cause: String| Failure::new(format!("{url}: {cause}"), "");
        let answer = http.get(url).send().await.map_err(|cause| failed(cause.to_string()))?;
        if !answer.status().is_success() {
            return Err(failed(answer.status().to_string()));
        }
        answer.bytes().await.map_err(|cause| failed(cause.to_string()))?;
        count += 1;
    }
    Ok(count)
}
