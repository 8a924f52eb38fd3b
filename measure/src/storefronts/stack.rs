//! A storefront behind edgefront: the storefront's own servers, a Valkey, the gateway, and the Worker in raw workerd.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use xtask::{
    failure::Failure,
    steps::{Done, run_step},
    storefront::{RunningStorefront, Storefront, free_port},
    variables::{LOCAL_REDIS_TIMEOUT, Variables},
};

use super::shops::Shop;
use crate::{
    rest_redis::RestRedis,
    worker_variables::{owned, required_variables},
    workerd::{RunningWorker, WorkerModule},
};

/// A running storefront behind edgefront. Dropping it ends all its processes.
pub struct Stack {
    pub shop: Shop,
    /// The address of edgefront, without a slash at its end.
    pub url: String,
    /// The address of the storefront itself.
    pub origin: String,
    /// The time of the start, Unix seconds.
    pub started: u64,
    _storefront: RunningStorefront,
    _worker: RunningWorker,
    _redis: RestRedis,
}

impl Stack {
    /// Installs and starts the storefront and everything before it. `overrides` are variables of the Worker.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(shop: Shop, redis_binary: &Path, overrides: &[(String, String)]) -> Result<Self, Failure> {
        let storefront = Storefront::install(shop.name()).await?;
        run_step("start", async |_| {
            let redis = RestRedis::start(redis_binary, None).await?;
            let port = free_port()?;
            let origin = format!("http://127.0.0.1:{port}");
            let directory = Path::new("target/storefronts").join(shop.name());
            let mut variables = variables(shop, &redis.gateway.url(), &origin);
            variables.extend(overrides.iter().cloned());
            let worker = RunningWorker::start(&directory, &modules(), &variables).await?;
            // The name, not the IP address: browsers accept `Secure` cookies over plain HTTP from `localhost`.
            let url = format!("http://localhost:{}", worker.address.port());
            let running = storefront.start(port, &url).await?;
            let summary = format!("{} on {origin}, edgefront on {url}", shop.name());
            let value = Self {
                shop,
                url,
                origin,
                started: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
                _storefront: running,
                _worker: worker,
                _redis: redis,
            };
            Ok(Done { summary, value })
        })
        .await
    }
}

/// The Worker, and the script with which browsers fill holes.
fn modules() -> Vec<WorkerModule> {
    let holes =
        WorkerModule { name: "holes.txt".to_owned(), file: Path::new("build/assets/_edge/assets/holes.js").into() };
    let mut modules = vec![WorkerModule::in_directory(Path::new("storefronts"), "worker.js"), holes];
    modules.extend(WorkerModule::wasm_bundle(Path::new("build")));
    modules
}

/// The variables of a deployment: the preset, and the variables that it asks the operator to add.
fn variables(shop: Shop, gateway_url: &str, origin: &str) -> Variables {
    let mut variables = required_variables(gateway_url, origin);
    variables.extend(owned([("PRESET", shop.name()), LOCAL_REDIS_TIMEOUT]));
    variables.extend(owned(shop.variables()));
    variables
}
