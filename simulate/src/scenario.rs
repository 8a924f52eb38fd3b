//! The scenario: the traffic, the shop, the platform and the tiers. The defaults are assumptions about an ordinary
//! international shop; docs/simulation.md lists them.

use std::time::Duration;

/// Where edgefront runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One Worker beside Redis.
    OneTier,
    /// An edge tier near the visitors, a home tier beside Redis.
    TwoTiers,
    /// As [`Layout::TwoTiers`], with a read replica and a home tier in several regions.
    Regions,
}

impl Layout {
    pub const ALL: [Self; 3] = [Self::OneTier, Self::TwoTiers, Self::Regions];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneTier => "one tier",
            Self::TwoTiers => "two tiers",
            Self::Regions => "two tiers, 5 regions",
        }
    }
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub struct Scenario {
    pub seed: u64,
    pub layout: Layout,
    /// Requests of all visitors a second.
    pub requests_per_second: f64,
    /// Largest number of requests that are simulated; more traffic is sampled.
    pub simulated_requests: f64,
    pub traffic: Traffic,
    pub shop: Shop,
    pub platform: Platform,
    /// Variables of edgefront that differ from their defaults.
    pub variables: Vec<(String, String)>,
    /// The length of the run. None: by the traffic.
    pub duration: Option<Duration>,
    /// The run begins with an empty Redis, and its first minutes count.
    pub starts_cold: bool,
    /// All visitors and one isolate of each tier are in one place, as on a developer's machine.
    pub is_local: bool,
}

/// The behaviour of visitors.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// Pages of a visit, on average.
    pub views: f64,
    /// Time between two pages, on average.
    pub pause: Duration,
    /// The share of the visitors who are signed in when they arrive.
    pub signed_in: f64,
    /// The share of the views that are followed by an addition to the cart.
    pub additions: f64,
    /// The share of the visitors with a cart who buy.
    pub buyers: f64,
    /// The time between two purges of one of the hundred most viewed pages.
    pub purge_every: Option<Duration>,
    /// For five seconds, this many visitors for each usual one open the page of one item and reserve a piece.
    pub flash_sale: f64,
}

/// The storefront behind edgefront.
#[derive(Debug, Clone)]
pub struct Shop {
    pub items: u32,
    /// The exponent of Zipf's law.
    pub exponent: f64,
    pub page_bytes: usize,
    pub render: Duration,
    /// `Cache-Control` of its pages. None: popularity decides.
    pub cache_control: Option<String>,
}

/// The platform and Redis.
#[derive(Debug, Clone)]
pub struct Platform {
    /// Requests a second at which a location starts another isolate.
    pub isolate_requests: f64,
    /// An isolate without a request for this time is gone.
    pub isolate_idle: Duration,
    /// How long an isolate lives on average if it is busy.
    pub isolate_life: Duration,
    /// Time that the location's cache takes to answer.
    pub location_cache: Duration,
    /// Commands that Redis executes in a second.
    pub redis_commands: f64,
}

impl Scenario {
    /// The defaults, with this layout and this number of requests a second.
    #[must_use]
    pub fn new(layout: Layout, requests_per_second: f64) -> Self {
        Self {
            seed: 1,
            layout,
            requests_per_second,
            simulated_requests: 20_000.0,
            traffic: Traffic {
                views: 8.0,
                pause: Duration::from_secs(15),
                signed_in: 0.25,
                additions: 0.02,
                buyers: 0.3,
                purge_every: Some(Duration::from_secs(7)),
                flash_sale: 0.5,
            },
            shop: Shop {
                items: 1_000_000,
                exponent: 0.9,
                page_bytes: 20_000,
                render: Duration::from_millis(150),
                cache_control: None,
            },
            platform: Platform {
                isolate_requests: 50.0,
                isolate_idle: Duration::from_secs(30),
                isolate_life: Duration::from_mins(30),
                location_cache: Duration::from_millis(3),
                redis_commands: f64::INFINITY,
            },
            variables: Vec::new(),
            duration: None,
            starts_cold: false,
            is_local: false,
        }
    }

    /// Visitors of one isolate on this machine, beginning with an empty Redis: `requests_per_second` for `duration`. A
    /// real Worker can get the same requests ([`Summary::trace`](crate::summary::Summary::trace)).
    #[must_use]
    pub fn local(requests_per_second: f64, duration: Duration, variables: &[(&str, &str)]) -> Self {
        let mut scenario = Self::new(Layout::OneTier, requests_per_second);
        scenario.traffic = Traffic {
            pause: Duration::from_secs(5),
            additions: 0.1,
            buyers: 0.0,
            purge_every: None,
            flash_sale: 0.0,
            ..scenario.traffic
        };
        scenario.shop.items = 500;
        scenario.shop.render = Duration::ZERO;
        scenario.duration = Some(duration);
        scenario.variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { starts_cold: true, is_local: true, ..scenario }
    }

    /// The length of the run: long enough for its requests, from half a minute to half an hour.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let seconds = (self.simulated_requests / self.requests_per_second).clamp(30.0, 1_800.0);
        self.duration.unwrap_or(Duration::from_secs_f64(seconds))
    }

    /// The time before the measurement, in which the isolates fill.
    #[must_use]
    pub fn warm_up(&self) -> Duration {
        if self.starts_cold { Duration::ZERO } else { self.duration() / 3 }
    }

    /// The time that counts.
    #[must_use]
    pub fn measured(&self) -> Duration {
        self.duration().saturating_sub(self.warm_up())
    }

    /// The share of the traffic that is simulated request by request.
    #[must_use]
    pub fn sample(&self) -> f64 {
        (self.simulated_requests / (self.requests_per_second * self.duration().as_secs_f64())).min(1.0)
    }

    /// Requests of a visit, on average.
    #[must_use]
    pub fn requests_of_visit(&self) -> f64 {
        let Traffic { views, additions, buyers, .. } = self.traffic;
        // An addition is a write and a session check; an order is a page and a request.
        let has_cart = 1.0 - (1.0 + additions * (views - 1.0)).recip();
        views * (1.0 + 2.0 * additions) + 2.0 * has_cart * buyers
    }
}
