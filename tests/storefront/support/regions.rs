//! A database with read replicas: a real primary, two real replicas, and an edgefront beside each of them.

use std::time::Duration;

use edgefront_gateway::server::{Server, ServerOptions};

use super::{Shop, Store};

/// Longer than any test, so the replication stands still.
const STOPPED: Duration = Duration::from_hours(1);

/// The shops of three locations. Each has an origin of its own.
pub struct Regions {
    /// The shop beside the primary.
    pub home: Shop,
    /// The shops beside the replicas.
    pub far: [Shop; 2],
    _servers: [Server; 3],
}

impl Regions {
    /// Starts servers and shops, and loads all scripts. A read waits at most `sync_wait` for a replica, then the
    /// primary replies.
    ///
    /// Panics if a server does not start.
    pub async fn start(variables: &[(&str, &str)], sync_wait: Duration) -> Self {
        let servers: [Server; 3] =
            std::array::from_fn(|_| Server::start(ServerOptions::default()).unwrap_or_else(|error| panic!("{error}")));
        let variables = [&[("READ_REGIONS", "1")], variables].concat();
        let [primary, one, other] = &servers;
        let shop = async |near| Shop::native_on(Store::in_region(near, primary, sync_wait).await, &variables);
        let (home, far) = (shop(primary).await, [shop(one).await, shop(other).await]);
        let regions = Self { home, far, _servers: servers };
        // Each gateway must know the scripts.
        for shop in regions.all() {
            shop.store.load_scripts().await;
        }
        regions
    }

    /// All shops. That of the primary is the first.
    pub fn all(&self) -> [&Shop; 3] {
        let [one, other] = &self.far;
        [&self.home, one, other]
    }

    /// Stops the replication. The replicas keep their state.
    pub fn stop_replication(&self) {
        self.set_lag(STOPPED);
    }

    /// Lets the replicas catch up.
    pub fn replicate(&self) {
        self.set_lag(Duration::ZERO);
    }

    fn set_lag(&self, lag: Duration) {
        self.far.iter().for_each(|shop| shop.store.gateway.set_lag(lag));
    }
}
