//! The metrics. Their names are the fields of the stream `traffic:` and of the API.

macro_rules! metrics {
    ($($(#[$doc:meta])* $metric:ident $name:literal,)*) => {
        /// A counter.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Metric {
            $($(#[$doc])* $metric,)*
        }

        impl Metric {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$metric),*];

            /// The name in the stream and in the API.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$metric => $name,)*
                }
            }
        }
    };
}

metrics! {
    // Origins of responses: each response to a visitor counts under one of these.
    /// A fresh stored page, or a page that another visitor's request was rendering.
    Hit "hit",
    /// A stale stored page, revalidated after the response.
    Stale "stale",
    /// A page that was rendered and stored.
    Stored "stored",
    /// A page that was rendered and not stored: it is uncacheable, or another request stores it.
    Miss "miss",
    /// A page of an item that ranks too low.
    Unpopular "unpopular",
    /// A URL that names no item.
    NoItem "no_item",
    /// A page rendered for one request: its URL has the parameter `_`.
    Dynamic "dynamic",
    /// A URL with unknown or repeated parameters.
    Parameters "parameters",
    /// A method other than GET and HEAD.
    Method "method",
    /// A request header that rules out a stored page.
    Header "header",
    /// The origin's response, because Redis did not answer.
    RedisDown "redis_down",
    /// A response of the API.
    Api "api",
    /// A response with status 5xx, from the origin or because Redis failed.
    Failed "failed",

    // Actions of visitors.
    /// A view of an item's page: a GET answered 200, from the cache or not, or a reported view.
    View "views",
    /// An addition to a cart.
    CartAddition "additions",
    /// An addition to an empty cart.
    CartStart "carts",
    /// An order; each order id counts once.
    Order "orders",

    // The location's cache.
    /// A page from the location's cache, which Redis then confirms instead of sending it.
    LocationHit "location_hits",
    /// A request to the location's cache without an answer.
    LocationFailure "location_failures",

    // Cost in Redis.
    /// Requests to Redis before a response.
    RedisRequests "redis_requests",
    /// Commands in those requests; a script counts as one.
    RedisCommands "redis_commands",
    /// Requests to Redis after a response.
    BackgroundRequests "later_requests",
    /// Commands in those requests.
    BackgroundCommands "later_commands",
    /// Requests of both kinds without a reply.
    RedisFailures "redis_failures",
    /// Entries of isolates that write at a reduced [`pace`](crate::ranking::activity::pace).
    ReducedPace "reduced_pace",
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricCounts([u64; Metric::ALL.len()]);

impl MetricCounts {
    pub fn add(&mut self, metric: Metric, count: u64) {
        if let Some(sum) = self.0.get_mut(metric as usize) {
            *sum = sum.saturating_add(count);
        }
    }

    pub fn add_all(&mut self, other: &Self) {
        for (metric, count) in other.iter() {
            self.add(metric, count);
        }
    }

    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        self.0.get(metric as usize).copied().unwrap_or_default()
    }

    /// The counts in the order of [`Metric::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Metric, u64)> {
        Metric::ALL.into_iter().zip(self.0)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_own_name_and_count() {
        let mut counts = MetricCounts::default();
        for metric in Metric::ALL {
            assert_eq!(Metric::ALL.into_iter().filter(|other| other.name() == metric.name()).count(), 1);
            counts.add(metric, 1);
        }
        assert_eq!(counts, MetricCounts([1; Metric::ALL.len()]));
    }
}
