//! State that all parts of the simulation share.

use std::{cell::RefCell, rc::Rc};

use edgefront::{config::Config, ports::time::Timestamp};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use rand_distr::Exp1;

use crate::{
    catalogue::{Catalogue, Entry, Item},
    origin::Origin,
    ranking::{Ranking, Scores},
    redis::RedisModel,
    scenario::Scenario,
    tally::Tally,
    virtual_time::VirtualClock,
};

/// The moment at which every simulation begins.
pub const START: Timestamp = Timestamp::from_millis(1_795_000_000_000);

/// See the [module](self).
pub struct Shared {
    pub scenario: Scenario,
    /// The product's configuration.
    pub config: Config,
    pub clock: VirtualClock,
    pub catalogue: RefCell<Catalogue>,
    pub redis: RefCell<RedisModel>,
    pub origin: RefCell<Origin>,
    pub random: RefCell<SmallRng>,
    pub tally: RefCell<Tally>,
}

impl Shared {
    /// # Errors
    /// A message about the variables.
    pub fn new(scenario: Scenario) -> Result<Rc<Self>, String> {
        let config = configuration(&scenario.variables)?;
        let mut random = SmallRng::seed_from_u64(scenario.seed);
        let catalogue = Catalogue::new(scenario.shop.items, scenario.shop.exponent, config.page.urls.clone());
        let ranking = if scenario.sample() < 1.0 {
            Ranking::Expected
        } else {
            let mut scores = Scores::new(config.ranking.half_life, config.page.rank_limit, START);
            if !scenario.starts_cold {
                let traffic = (scenario.shop.items, scenario.requests_per_second);
                scores.fill(&catalogue, traffic, &mut random, START);
            }
            Ranking::Exact(scores)
        };
        let redis = RedisModel::new(ranking, config.page.total_bytes, scenario.platform.redis_commands, START);
        Ok(Rc::new(Self {
            clock: VirtualClock::new(START),
            catalogue: RefCell::new(catalogue),
            redis: RefCell::new(redis),
            origin: RefCell::new(Origin::new(&scenario.shop)),
            random: RefCell::new(random),
            tally: RefCell::default(),
            config,
            scenario,
        }))
    }

    pub fn entry(&self, item: Item) -> Rc<Entry> {
        self.catalogue.borrow_mut().entry(item)
    }

    /// The item of a view.
    pub fn draw_item(&self) -> Item {
        self.catalogue.borrow().draw(&mut self.random.borrow_mut())
    }

    /// A number from 0 to 1.
    pub fn chance(&self) -> f64 {
        self.random.borrow_mut().random()
    }

    /// A time with this mean, in seconds, from an exponential distribution.
    pub fn exponential(&self, mean: f64) -> f64 {
        let unit: f64 = self.random.borrow_mut().sample(Exp1);
        unit * mean
    }
}

/// The product's defaults, and what the scenario changes.
fn configuration(variables: &[(String, String)]) -> Result<Config, String> {
    let required = [
        ("UPSTASH_REDIS_REST_URL", "https://redis.example"),
        ("UPSTASH_REDIS_REST_TOKEN", "simulated"),
        ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
        ("ORIGIN_URL", "https://shop.example"),
    ];
    let get = |name: &str| {
        let own = variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        own.or_else(|| required.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned()))
    };
    Config::from_lookup(get).map_err(|errors| errors.to_string())
}
