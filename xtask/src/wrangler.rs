//! wrangler: the migrations of the local D1, and the Worker in workerd. It runs on the packages' own Node and asks the network for nothing.

use std::{collections::BTreeMap, time::Duration};

use tokio::{process::Command, time};

use xtask::{
    children::Group,
    failure::Failure,
    npm,
    stamp::Stamp,
    steps::{self, step},
};

/// It answers in seconds; a file that changes meanwhile makes wrangler build once more first, on a small machine for minutes.
const READY_DEADLINE: Duration = Duration::from_mins(5);

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

/// Brings the local D1 (in .wrangler) up to date; each migration is applied once.
///
/// # Errors
/// When a migration fails.
pub async fn migrate() -> Result<(), Failure> {
    step("database", async |step| {
        let stamp = Stamp::new(".wrangler/migrations.stamp", &["migrations"])?;
        if stamp.is_current() {
            return Ok(steps::done("up to date"));
        }
        let remedy = "mend the migration; rm -r .wrangler/state begins with an empty database";
        step.run(command(&["d1", "migrations", "apply", "edgefront", "--local"])?, remedy).await?;
        stamp.set()?;
        Ok(steps::done("migrations applied"))
    })
    .await
}

/// A running `wrangler dev`.
pub struct Dev {
    group: Group,
    noise: Noise,
}

impl Dev {
    /// Starts it on `port`, with `vars` over those of wrangler.toml and .dev.vars.
    ///
    /// # Errors
    /// When it can not be started.
    pub fn start(port: u16, vars: &BTreeMap<String, String>) -> Result<Self, Failure> {
        let mut wrangler =
            command(&["dev", "--ip", "127.0.0.1", "--inspector-port", "0", "--port", &port.to_string()])?;
        for (name, value) in vars {
            wrangler.arg("--var").arg(format!("{name}:{value}"));
        }
        Ok(Self { group: Group::start(wrangler)?, noise: Noise::default() })
    }

    /// Passes on what it prints until the Worker answers at `origin`.
    ///
    /// # Errors
    /// When it ends, or does not answer in time.
    pub async fn ready(&mut self, origin: &str) -> Result<(), Failure> {
        let health = format!("{origin}/_edge/v1/healthz");
        tokio::select! {
            ended = self.follow() => Err(ended),
            () = answers(&health) => Ok(()),
            () = time::sleep(READY_DEADLINE) => Err(Failure::new(
                format!("the Worker did not answer within {} s", READY_DEADLINE.as_secs()),
                "its own words are above; its log is in .wrangler/logs",
            )),
        }
    }

    /// Passes on what it prints until it ends; the answer is why. Safe to cancel and to call again.
    pub async fn follow(&mut self) -> Failure {
        while let Some(line) = self.group.line().await {
            if self.noise.passes(&line) {
                println!("{line}");
            }
        }
        let status = self.group.wait().await.map_or_else(|cause| cause.to_string(), |status| status.to_string());
        Failure::new(format!("wrangler dev ended ({status})"), "its own words are above; its log is in .wrangler/logs")
    }
}

/// Waits until `url` answers with a success.
async fn answers(url: &str) {
    let client = reqwest::Client::new();
    loop {
        let answer = client.get(url).timeout(Duration::from_secs(5)).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
        time::sleep(Duration::from_millis(100)).await;
    }
}

/// Leaves out what wrangler says in vain: that it could not ask its maker's servers for `request.cf` (with a stack), that nobody fires the crons,
/// the table of all variables, the steps of a build that are up to date, and our own question whether the Worker answers.
#[derive(Default)]
struct Noise {
    skipping: bool,
}

impl Noise {
    fn passes(&mut self, line: &str) -> bool {
        let begins = [
            "Unable to fetch the `Request.cf`",
            "Scheduled Workers are not automatically triggered",
            "Your Worker has access to the following bindings",
        ];
        let continues =
            ["Error:", "at ", "[errno", "}", "To manually", "curl \"", "For more details", "Binding ", "env."];
        let text = line.trim_start();
        if begins.iter().any(|begin| line.contains(begin)) {
            self.skipping = true;
        } else if self.skipping {
            self.skipping = text.is_empty() || continues.iter().any(|part| text.starts_with(part));
        }
        let is_step = |said: &str| {
            let done = ["Finished", "Running", "`", "ok "].iter().any(|part| said.trim_start().starts_with(part));
            said.is_empty() || (done && !said.contains(": built"))
        };
        let is_vain =
            line.contains("GET /_edge/v1/healthz ") || line.strip_prefix("[custom build] ").is_some_and(is_step);
        !self.skipping && !is_vain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_noise_is_left_out() {
        let said = "[custom build] Running: cargo xtask build\n[custom build] \n[custom build] ok   worker: up to date (0.0 s)\n\
            [custom build] ok   worker: built (9.0 s)\n\
            Your Worker has access to the following bindings:\nBinding      Resource    Mode\nenv.DB       D1 Database local\n\n\
            [wrangler:warn] Unable to fetch the `Request.cf` object! Falling back to a default placeholder...\n\
            Error: getaddrinfo ENOTFOUND example.com\n    at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:122:26)\n\
            ⎔ Starting local server...\n\
            ▲ [WARNING] Scheduled Workers are not automatically triggered during local development.\n\n\
            \x20 To manually trigger a scheduled event, run:\n    curl \"http://127.0.0.1:8899/cdn-cgi/local/scheduled\"\n\
            \x20 For more details, see https://example.com\n\n\n\
            [wrangler:info] Ready on http://127.0.0.1:8899\n[wrangler:info] GET /_edge/v1/healthz 200 OK (9ms)\nError: a failure of our own\n    at index.js\n";
        let mut noise = Noise::default();
        let shown: Vec<_> = said.lines().filter(|line| noise.passes(line)).collect();
        assert_eq!(
            shown,
            [
                "[custom build] ok   worker: built (9.0 s)",
                "⎔ Starting local server...",
                "[wrangler:info] Ready on http://127.0.0.1:8899",
                "Error: a failure of our own",
                "    at index.js",
            ]
        );
    }
}
