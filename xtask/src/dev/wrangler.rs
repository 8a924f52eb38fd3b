//! wrangler: the migrations of the local D1 database, and the Worker in workerd. wrangler runs on the packages' Node.js
//! and makes no network requests of its own.

use std::{path::Path, time::Duration};

use tokio::{process::Command, time};
use xtask::{
    failure::Failure,
    npm,
    process_group::ProcessGroup,
    stamp::{BuildResult, Stamp},
    steps::{self, run_step},
    variables::Variables,
    wrangler_toml::{self, WranglerToml},
};

use super::noise_filter::NoiseFilter;

/// The Worker answers within seconds. But if a source changes meanwhile, wrangler first builds again, which takes
/// minutes on a small machine.
const READY_TIMEOUT: Duration = Duration::from_mins(5);
/// The directory of the local state.
const STATE: &str = ".wrangler/state";
/// The directory of the local D1 databases.
const DATABASES: &str = ".wrangler/state/v3/d1/miniflare-D1DatabaseObject";
/// The stamp of the migrations, inside the state that it describes.
const STAMP: &str = ".wrangler/state/v3/d1/migrations.stamp";
const LOG_HINT: &str = "see wrangler's output above and its log in .wrangler/logs";

fn command(arguments: &[&str]) -> Result<Command, Failure> {
    let mut wrangler = npm::command("wrangler")?;
    wrangler
        .args(arguments)
        .env("WRANGLER_SEND_METRICS", "false")
        .env("WRANGLER_HIDE_BANNER", "true")
        .env("WRANGLER_LOG_PATH", ".wrangler/logs")
        .env("NO_COLOR", "1");
    Ok(wrangler)
}

/// Applies the new migrations to the local D1 database in .wrangler, if wrangler.toml has one.
///
/// # Errors
/// When a migration fails.
pub async fn migrate() -> Result<(), Failure> {
    run_step("database", async |step| {
        if !WranglerToml::read()?.has_database() {
            return Ok(steps::done("none in wrangler.toml"));
        }
        // A new `database_id` in wrangler.toml is a new, empty database.
        let stamp = Stamp::new(STAMP, &["migrations", wrangler_toml::FILE], BuildResult::Databases(DATABASES.into()))?;
        if stamp.is_current() {
            return Ok(steps::done("up to date"));
        }
        let remedy = "fix the migration; to start with an empty database, move .wrangler/state elsewhere";
        step.run_program(command(&["d1", "migrations", "apply", "edgefront", "--local"])?, remedy).await?;
        stamp.write()?;
        Ok(steps::done("migrations applied"))
    })
    .await
}

pub struct WranglerDev {
    group: ProcessGroup,
    noise: NoiseFilter,
}

impl WranglerDev {
    /// Starts it on `port`. `variables` override those of wrangler.toml and .dev.vars.
    ///
    /// # Errors
    /// When wrangler cannot be started.
    pub fn start(port: u16, variables: &Variables) -> Result<Self, Failure> {
        let mut wrangler = dev(port)?;
        for (name, value) in variables {
            wrangler.arg("--var").arg(format!("{name}:{value}"));
        }
        Ok(Self { group: ProcessGroup::start(wrangler)?, noise: NoiseFilter::default() })
    }

    /// Starts it on `port` with this configuration, on the local state of wrangler.toml.
    ///
    /// # Errors
    /// When wrangler cannot be started.
    pub fn start_with(port: u16, config: &Path) -> Result<Self, Failure> {
        let mut wrangler = dev(port)?;
        wrangler.arg("--persist-to").arg(STATE).arg("--config").arg(config);
        Ok(Self { group: ProcessGroup::start(wrangler)?, noise: NoiseFilter::default() })
    }

    /// Prints the output until the Worker answers at `worker_url`.
    ///
    /// # Errors
    /// When wrangler ends, or the Worker does not answer within [`READY_TIMEOUT`].
    pub async fn wait_until_ready(&mut self, worker_url: &str) -> Result<(), Failure> {
        let health = format!("{worker_url}/_edge/v1/healthz");
        tokio::select! {
            ended = self.print_output() => Err(ended),
            () = wait_for_success(&health) => Ok(()),
            () = time::sleep(READY_TIMEOUT) => Err(Failure::new(
                format!("the Worker did not answer within {} s", READY_TIMEOUT.as_secs()),
                LOG_HINT,
            )),
        }
    }

    /// Runs `work`, and prints the output meanwhile without the requests that `work` sends.
    ///
    /// # Errors
    /// Those of `work`, and when wrangler ends.
    pub async fn print_during(&mut self, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
        self.noise.hides_requests = true;
        let result = tokio::select! {
            ended = self.print_output() => Err(ended),
            result = work => result,
        };
        self.noise.hides_requests = false;
        result
    }

    /// Prints the output until wrangler ends, and returns the reason. Cancelling the future loses nothing: a later call
    /// goes on.
    pub async fn print_output(&mut self) -> Failure {
        while let Some(line) = self.group.next_line().await {
            if self.noise.passes(&line) {
                println!("{line}");
            }
        }
        let status = self.group.wait().await.map_or_else(|cause| cause.to_string(), |status| status.to_string());
        Failure::new(format!("wrangler dev ended ({status})"), LOG_HINT)
    }
}

fn dev(port: u16) -> Result<Command, Failure> {
    command(&["dev", "--ip", "127.0.0.1", "--inspector-port", "0", "--port", &port.to_string()])
}

/// Polls `url` until its response has a success status.
async fn wait_for_success(url: &str) {
    let client = reqwest::Client::new();
    loop {
        let response = client.get(url).timeout(Duration::from_secs(5)).send().await;
        if response.is_ok_and(|response| response.status().is_success()) {
            return;
        }
        time::sleep(Duration::from_millis(100)).await;
    }
}
