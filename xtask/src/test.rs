//! `cargo xtask test`: all that the tests need, the tests, and as the last line what passed.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{self, PathBuf},
};

use tokio::{process::Command, try_join};

use xtask::{children::Group, failure::Failure, npm, redis, tools, worker};

/// Sets up what the tests need, then runs all of them. The tests get `EDGEFRONT_REDIS_SERVER` (a server's binary), `EDGEFRONT_NODE` (Node 22) and
/// `EDGEFRONT_BUNDLE` (the Worker's directory), absolute paths, and `EDGEFRONT_CHROMIUM` where there is one.
#[derive(clap::Args)]
pub struct Arguments {
    /// Run all tests on Redis Clusters of three servers, and not only those of the sharded layout.
    #[arg(long)]
    cluster: bool,
    /// For cargo test: a part of a test's name, `-p gateway`, or `-- --nocapture`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo_test: Vec<String>,
}

/// Runs the tests.
///
/// # Errors
/// When the set-up or a test fails.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let (server, tools, ()) = try_join!(redis::binary(), tools::install(), npm::install())?;
    worker::build(&tools).await?;

    let chromium = chromium();
    let mut cargo = Command::new("cargo");
    // A suite that fails must not hide what the others say.
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    cargo.args(with_or_without_browser(arguments.cargo_test, chromium.is_some()));
    cargo.env("PATH", npm::path()?);
    cargo.env("EDGEFRONT_REDIS_SERVER", server);
    cargo.env("EDGEFRONT_NODE", npm::node()?);
    cargo.env("EDGEFRONT_BUNDLE", worker::bundle()?);

    if let Some(chromium) = &chromium {
        cargo.env("EDGEFRONT_CHROMIUM", chromium);
    }
    if arguments.cluster {
        let list = empty(ON_CLUSTERS).map_err(|cause| Failure::file(ON_CLUSTERS, &cause))?;
        cargo.env("EDGEFRONT_TEST_CLUSTER", list);
    }

    let mut summary = Summary::default();
    let mut group = Group::start(cargo)?;
    while let Some(line) = group.line().await {
        println!("{line}");
        summary.read(&line);
    }
    let succeeded = group.wait().await.is_ok_and(|status| status.success());
    println!();
    for suite in &summary.suites {
        println!("{:>5} passed, {} failed  {}", suite.passed, suite.failed, suite.name);
    }
    let (passed, failed) = summary.totals();
    // A suite that does not compile, or is killed, counts no failure of its own.
    let unfinished = if !succeeded && failed == 0 { ", and a suite did not compile or did not finish" } else { "" };
    let left_out = if chromium.is_some() { "" } else { NO_BROWSER };
    let names = arguments.cluster.then(|| fs::read_to_string(ON_CLUSTERS).unwrap_or_default());
    let clusters = names.as_deref().map(on_clusters).unwrap_or_default();
    println!("{passed} passed, {failed} failed{unfinished}{clusters}{left_out}");
    if succeeded { Ok(()) } else { Err(Failure::default()) }
}

/// Where the tests on clusters leave their names.
const ON_CLUSTERS: &str = "target/on-clusters";
const NO_BROWSER: &str =
    "; the browser's tests were left out: install Chromium, or name a browser of its kind by the variable CHROMIUM";

/// Makes a file, and empty; its absolute path.
fn empty(path: &str) -> io::Result<PathBuf> {
    fs::create_dir_all("target")?;
    fs::write(path, "")?;
    path::absolute(path)
}

/// How many tests were on a cluster; one with two stores left its name twice.
fn on_clusters(names: &str) -> String {
    let names: BTreeSet<_> = names.lines().collect();
    format!("; {} on clusters of three servers, the others on a Redis that they name, or on none", names.len())
}

/// Chromium or a browser of its kind: `CHROMIUM`, or what has one of its names on the PATH.
fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
    let path = env::var_os("PATH")?;
    names
        .iter()
        .find_map(|name| env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file()))
}

/// What cargo test is told; without a browser, the module that needs one is skipped.
fn with_or_without_browser(mut arguments: Vec<String>, has_browser: bool) -> Vec<String> {
    if !has_browser {
        if !arguments.iter().any(|argument| argument == "--") {
            arguments.push("--".to_owned());
        }
        arguments.extend(["--skip".to_owned(), "browser::".to_owned()]);
    }
    arguments
}

/// What cargo test said, suite by suite.
#[derive(Debug, Default)]
struct Summary {
    suites: Vec<Suite>,
    running: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Suite {
    name: String,
    passed: u32,
    failed: u32,
}

impl Summary {
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some(binary) = line.strip_prefix("Running ") {
            self.running = suite_name(binary);
        } else if let Some(package) = line.strip_prefix("Doc-tests ") {
            self.running = format!("{package}, documentation");
        } else if let Some(result) = line.strip_prefix("test result: ") {
            let count = |what: &str| {
                let words: Vec<_> = result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
                words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
            };
            let suite = Suite { name: self.running.clone(), passed: count("passed"), failed: count("failed") };
            // The suites without tests (every binary has one) say nothing.
            if suite.passed + suite.failed > 0 {
                self.suites.push(suite);
            }
        }
    }

    fn totals(&self) -> (u32, u32) {
        self.suites.iter().fold((0, 0), |(passed, failed), suite| (passed + suite.passed, failed + suite.failed))
    }
}

/// `tests/a.rs (target/debug/deps/a-0123)` is `a`, and so is `unittests src/lib.rs (…/a-0123)`, as `a, unit`.
fn suite_name(binary: &str) -> String {
    let file = binary.rsplit(['/', '(']).next().unwrap_or(binary).trim_end_matches(')');
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    if binary.starts_with("unittests") { format!("{name}, unit") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_browser_its_tests_are_skipped() {
        let told = |arguments: &[&str], has_browser| {
            with_or_without_browser(arguments.iter().map(|&word| word.to_owned()).collect(), has_browser)
        };
        assert_eq!(told(&["cart"], true), ["cart"]);
        assert_eq!(told(&["cart"], false), ["cart", "--", "--skip", "browser::"]);
        assert_eq!(told(&["--", "--nocapture"], false), ["--", "--nocapture", "--skip", "browser::"]);
    }

    #[test]
    fn a_test_on_two_clusters_is_one() {
        assert!(on_clusters("cart::a\ncart::b\ncart::a\n").starts_with("; 2 on clusters"));
    }

    #[test]
    fn what_passed_is_added_up_over_all_suites() {
        let said = "   Compiling edgefront v0.1.0\n\
            \x20    Running unittests src/lib.rs (target/debug/deps/edgefront-0a1b)\n\nrunning 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            \x20    Running tests/storefront/main.rs (target/debug/deps/storefront-2c3d)\n\
            test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.12s\n\
            \x20    Running unittests src/main.rs (target/debug/deps/edgefront_gateway-4e5f)\n\
            test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            \x20  Doc-tests edgefront\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s\n";
        let mut summary = Summary::default();
        said.lines().for_each(|line| summary.read(line));
        let suite = |name: &str, passed, failed| Suite { name: name.to_owned(), passed, failed };
        assert_eq!(
            summary.suites,
            [suite("edgefront, unit", 2, 0), suite("storefront", 10, 3), suite("edgefront, documentation", 1, 0)]
        );
        assert_eq!(summary.totals(), (13, 3));
    }
}
