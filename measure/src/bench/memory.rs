//! `cargo xtask bench --memory`: the memory of one isolate under load. `benches/memory.mjs` is the origin and the load,
//! and reads the figures.

use std::path::Path;

use tokio::{process::Command, try_join};
use xtask::{failure::Failure, npm, redis, tools, worker};

use crate::{
    rest_redis::RestRedis,
    worker_variables::worker_variables,
    workerd::{self, WorkerModule},
};

/// The directory for all files of a run.
const DIRECTORY: &str = "target/memory";
/// The script replaces this address by that of its origin.
const ORIGIN: &str = "http://origin.invalid";

/// Measures the memory of a Worker that serves so many pages of 100 KB.
///
/// # Errors
/// When something cannot be built or started, or the script fails.
pub async fn run(pages: u32) -> Result<(), Failure> {
    let (redis_binary, tools, ()) = try_join!(redis::server_binary(), tools::install(), npm::install())?;
    worker::build(&tools).await?;
    let redis = RestRedis::start(&redis_binary, None).await?;
    let directory = Path::new(DIRECTORY);
    let variables = worker_variables(&redis.gateway.url(), ORIGIN);
    workerd::write_configuration(directory, &WorkerModule::wasm_bundle(Path::new("build")), &variables)?;
    let mut script = Command::new(npm::node()?);
    script.arg("benches/memory.mjs").arg(workerd::workerd_binary()?).arg(directory).arg(pages.to_string());
    let failed = |cause: String| Failure::new(format!("benches/memory.mjs: {cause}"), "see its output above");
    let status = script.status().await.map_err(|cause| failed(cause.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(status.to_string())) }
}
