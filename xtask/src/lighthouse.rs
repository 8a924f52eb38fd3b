//! `cargo xtask lighthouse`: the scores of Lighthouse (mobile) for pages of a running shop.

use std::{env::temp_dir, fs, process};

use serde_json::Value;
use tokio::process::Command;
use xtask::{
    chromium,
    failure::Failure,
    npm,
    steps::{done, run_step},
};

/// Not in package.json: it would add 114 packages to each installation.
const PACKAGE: &str = "lighthouse@13.5.0";
const PATHS: [&str; 4] = ["/", "/categories/kitchen", "/products/enamel-mug-sage", "/search?q=mug"];
/// Category and lowest score in percent.
const LOWEST: [(&str, f64); 4] =
    [("performance", 99.0), ("accessibility", 100.0), ("best-practices", 100.0), ("seo", 100.0)];
const CHROME_FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync";

/// Measures the demo shop that `cargo xtask dev --visitors 0` serves, on a machine that does nothing else.
#[derive(clap::Args)]
pub struct LighthouseArguments {
    /// The address of the shop.
    #[arg(long, default_value = "http://localhost:8787")]
    url: String,
}

/// Prints the scores of each page.
///
/// # Errors
/// When Lighthouse fails, or a score is too low.
pub async fn run(arguments: LighthouseArguments) -> Result<(), Failure> {
    npm::install_if_missing().await?;
    let chromium = chromium::find().ok_or_else(|| Failure::new("no Chromium", "install it, or set CHROMIUM"))?;
    let report = temp_dir().join(format!("lighthouse-{}.json", process::id()));
    for path in PATHS {
        run_step(path, async |step| {
            let mut lighthouse = Command::new("npx");
            lighthouse.args(["--yes", PACKAGE, &format!("{}{path}", arguments.url), "--quiet", "--output=json"]);
            lighthouse.arg(format!("--output-path={}", report.display()));
            lighthouse.arg(format!("--chrome-flags={CHROME_FLAGS}"));
            lighthouse.env("PATH", npm::search_path()?).env("CHROME_PATH", &chromium);
            step.run_program(lighthouse, "start the shop with `cargo xtask dev`").await?;
            let text =
                fs::read_to_string(&report).map_err(|cause| Failure::file(report.display().to_string(), &cause))?;
            let _ = fs::remove_file(&report);
            judge(&serde_json::from_str(&text).unwrap_or_default()).map(done)
        })
        .await?;
    }
    Ok(())
}

/// The scores of a report as one line.
fn judge(report: &Value) -> Result<String, Failure> {
    let scores = LOWEST.map(|(name, lowest)| {
        let score = report["categories"][name]["score"].as_f64().unwrap_or_default() * 100.0;
        (format!("{name} {score:.0}"), score.round() >= lowest)
    });
    let line = scores.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(", ");
    if scores.iter().all(|(_, is_enough)| *is_enough) {
        return Ok(line);
    }
    Err(Failure::new(format!("a score is too low: {line}"), "measure again on an idle machine, then find the change"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_score_below_the_lowest_fails() {
        let report = |performance: f64| {
            let whole = json!({"score": 1});
            let performance = json!({"score": performance});
            json!({"categories": {"performance": performance, "accessibility": whole, "best-practices": whole, "seo": whole}})
        };
        assert_eq!(
            judge(&report(0.99)).ok().unwrap(),
            "performance 99, accessibility 100, best-practices 100, seo 100"
        );
        assert!(judge(&report(0.98)).is_err() && judge(&Value::Null).is_err());
    }
}
