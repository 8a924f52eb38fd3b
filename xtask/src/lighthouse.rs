//! `cargo xtask lighthouse`: the scores of Lighthouse (mobile) for pages of a running shop, and for the unlocked
//! dashboard. `lighthouse.mjs` measures one page.

use std::{env::temp_dir, fs, path::PathBuf, process, time::Duration};

use serde_json::Value;
use tokio::process::Command;
use xtask::{
    chromium,
    failure::Failure,
    npm,
    steps::{Step, done, run_step},
};

use crate::settings;

/// Not in package.json: it would add 114 packages to each installation.
const PACKAGE: &str = "lighthouse@13.5.0";
const SCRIPT: &str = "xtask/src/lighthouse.mjs";
const SHOP_PATHS: [&str; 5] =
    ["/", "/categories/kitchen", "/products/enamel-mug-sage", "/search?q=mug", "/flash/cast-iron-casserole-sage"];
const DASHBOARD_PATH: &str = "/_edge/";
/// Category and lowest score in percent.
type Lowest = (&'static str, f64);
const LOWEST_IN_SHOP: &[Lowest] =
    &[("performance", 99.0), ("accessibility", 100.0), ("best-practices", 100.0), ("seo", 100.0)];
/// Search engines must not list the dashboard.
const LOWEST_IN_DASHBOARD: &[Lowest] = &[("performance", 95.0), ("accessibility", 100.0), ("best-practices", 100.0)];
const MAX_LAYOUT_SHIFT: f64 = 0.05;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Measures the demo shop that `cargo xtask dev --visitors 0` serves, on a machine that does nothing else.
#[derive(clap::Args)]
pub struct LighthouseArguments {
    /// The address of the shop.
    #[arg(long, default_value = "http://localhost:8787")]
    url: String,
}

/// Runs Lighthouse in Chromium.
struct Lighthouse {
    chromium: PathBuf,
    /// The file for the report of a page.
    report: PathBuf,
}

impl Lighthouse {
    /// The report of a page. `service_key` unlocks the dashboard; empty for other pages.
    async fn measure(&self, step: &Step, url: &str, service_key: &str) -> Result<Value, Failure> {
        let mut npx = Command::new("npx");
        npx.args(["--yes", &format!("--package={PACKAGE}"), "--", "node", SCRIPT, url]).arg(&self.report);
        npx.env("PATH", npm::search_path()?).env("CHROMIUM", &self.chromium).env("SERVICE_KEY", service_key);
        step.run_program(npx, "start the shop with `cargo xtask dev`").await?;
        let text = fs::read_to_string(&self.report)
            .map_err(|cause| Failure::file(self.report.display().to_string(), &cause))?;
        let _ = fs::remove_file(&self.report);
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

/// Prints the scores and the layout shift of each page.
///
/// # Errors
/// When Lighthouse fails, or a result is too bad.
pub async fn run(arguments: LighthouseArguments) -> Result<(), Failure> {
    check_shop(&arguments.url).await?;
    npm::install_if_missing().await?;
    let variables = settings::read(&[])?;
    let service_key = variables.get("SERVICE_KEY").map_or("", String::as_str);
    let chromium = chromium::find().ok_or_else(|| Failure::new("no Chromium", "install it, or set CHROMIUM"))?;
    let lighthouse = Lighthouse { chromium, report: temp_dir().join(format!("lighthouse-{}.json", process::id())) };
    let pages = SHOP_PATHS.map(|path| (path, "", LOWEST_IN_SHOP));
    for (path, service_key, lowest) in pages.into_iter().chain([(DASHBOARD_PATH, service_key, LOWEST_IN_DASHBOARD)]) {
        run_step(path, async |step| {
            let url = format!("{}{path}", arguments.url);
            judge(&lighthouse.measure(&step, &url, service_key).await?, lowest).map(done)
        })
        .await?;
    }
    Ok(())
}

/// Checks that a shop runs at `url`.
async fn check_shop(url: &str) -> Result<(), Failure> {
    // xtask has no TLS, so Lighthouse itself reports an https shop that does not answer.
    if !url.starts_with("http://") {
        return Ok(());
    }
    let answer = reqwest::Client::new().get(url).timeout(ANSWER_TIMEOUT).send().await;
    answer.map(drop).map_err(|_| {
        let advice = "start `cargo xtask dev` first, or set --url.";
        Failure::new(format!("{url} does not answer: {advice}"), "")
    })
}

/// The results of a report as one line.
fn judge(report: &Value, lowest: &[Lowest]) -> Result<String, Failure> {
    let scores = lowest.iter().map(|(name, lowest)| {
        let score = report["categories"][name]["score"].as_f64().unwrap_or_default() * 100.0;
        (format!("{name} {score:.0}"), score.round() >= *lowest)
    });
    let shift = report["audits"]["cumulative-layout-shift"]["numericValue"].as_f64().unwrap_or(f64::INFINITY);
    let shift = (format!("layout shift {shift:.3}"), shift < MAX_LAYOUT_SHIFT);
    let (texts, verdicts): (Vec<_>, Vec<_>) = scores.chain([shift]).unzip();
    let line = texts.join(", ");
    if verdicts.into_iter().all(|is_enough| is_enough) {
        return Ok(line);
    }
    Err(Failure::new(format!("a result is too bad: {line}"), "measure again on an idle machine, then find the change"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_shop_that_does_not_run_is_named() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let failure = check_shop(&url).await.unwrap_err();
        assert_eq!(failure.cause, format!("{url} does not answer: start `cargo xtask dev` first, or set --url."));
    }

    #[test]
    fn a_result_that_is_too_bad_fails() {
        let report = |performance: f64, shift: f64| {
            let whole = json!({"score": 1});
            let performance = json!({"score": performance});
            json!({
                "categories": {"performance": performance, "accessibility": whole, "best-practices": whole, "seo": whole},
                "audits": {"cumulative-layout-shift": {"numericValue": shift}},
            })
        };
        let shop = |performance, shift| judge(&report(performance, shift), LOWEST_IN_SHOP);
        assert_eq!(
            shop(0.99, 0.049).ok().unwrap(),
            "performance 99, accessibility 100, best-practices 100, seo 100, layout shift 0.049"
        );
        assert!(shop(0.98, 0.0).is_err() && shop(1.0, 0.05).is_err());
        assert!(judge(&report(0.95, 0.0), LOWEST_IN_DASHBOARD).is_ok());
        assert!(judge(&Value::Null, LOWEST_IN_DASHBOARD).is_err());
    }
}
