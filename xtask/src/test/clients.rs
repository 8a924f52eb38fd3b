//! `cargo xtask test --clients`: calls each method of Upstash's published clients against the gateway. The tests are in
//! `clients/`; the packages of the clients contain none.

use std::{
    ffi::OsString,
    fs,
    path::{self, Path},
    time::Duration,
};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use tokio::{process::Command, time::timeout, try_join};
use xtask::{
    failure::Failure,
    npm,
    process_group::ProcessGroup,
    redis,
    steps::{Done, run_step},
    wheel::Wheels,
};

const SUITES: &str = "clients";
const TOKEN: &str = "full-token";
const READ_ONLY_TOKEN: &str = "read-only-token";
/// One gateway for each suite, and one for each region of a rate limit.
const DATABASES: u32 = 5;
/// A suite takes seconds. A client that waits forever must not.
const SUITE_TIMEOUT: Duration = Duration::from_mins(5);

/// The exit code of Python 3.12 and newer when no test has the name.
const NO_TESTS: Option<i32> = Some(5);

/// `upstash-redis` and what it needs.
const PYTHON_CLIENT: Wheels<'static> = Wheels {
    requirements: include_str!("../../../clients/python/requirements.txt"),
    directory: ".cache/tools/upstash-redis-1.8.0",
    remedy: "check the network, and install Python 3.10 or newer with pip",
};

/// Passed and failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u32,
    failed: u32,
}

/// Runs the tests whose names contain `filter`; all of them if it is empty.
///
/// # Errors
/// When the set-up or a test fails.
pub async fn run(filter: &[OsString]) -> Result<(), Failure> {
    let (binary, (), python_path) = try_join!(redis::server_binary(), npm::install(), install_python_client())?;
    let server = Server::start(ServerOptions { binary: Some(binary), ..ServerOptions::default() })
        .map_err(|error| Failure::new(error.to_string(), "follow the message above"))?;
    let mut gateways = Vec::new();
    for database in 0..DATABASES {
        gateways.push(start_gateway(format!("{}/{database}", server.url())).await?);
    }
    let [npm_gateway, regions @ .., python_gateway] = gateways.as_slice() else {
        return Err(Failure::new("no gateways", ""));
    };
    let regions = regions.iter().map(Gateway::url).collect::<Vec<_>>().join(",");

    let mut node = Command::new(npm::node()?);
    // One process for all files, and so one test at a time: tests count keys, and flush the database.
    node.args(["--test", "--test-reporter=spec", "--experimental-test-isolation=none", "--test-timeout=60000"]);
    node.args(filter.iter().flat_map(|part| [OsString::from("--test-name-pattern"), part.clone()]));
    node.args(npm_suites()?).env("EDGEFRONT_REGION_URLS", regions);
    let npm_totals = run_suite("npm", node, npm_gateway).await?;

    let mut python = Command::new("python3");
    // The asynchronous client closes its connections at the end of the process.
    python.args(["-B", "-W", "ignore", "-m", "unittest", "discover", "--start-directory"]);
    python.arg(Path::new(SUITES).join("python")).env("PYTHONPATH", python_path);
    python.args(filter.iter().flat_map(|part| [OsString::from("-k"), part.clone()]));
    let python_totals = run_suite("PyPI", python, python_gateway).await?;

    for (name, totals) in [("npm", npm_totals), ("PyPI", python_totals)] {
        println!("{:>5} passed, {} failed  {name}", totals.passed, totals.failed);
    }
    let (passed, failed) = (npm_totals.passed + python_totals.passed, npm_totals.failed + python_totals.failed);
    println!("{passed} passed, {failed} failed");
    if passed + failed == 0 {
        return Err(Failure::new("no test has such a name", "run `cargo xtask test --clients` without a name"));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::already_printed()) }
}

/// Unpacks the client, unless it is there. Returns its directory.
async fn install_python_client() -> Result<OsString, Failure> {
    let Wheels { requirements, directory, .. } = PYTHON_CLIENT;
    let marker = Path::new(directory).join("installed");
    run_step("upstash-redis", async |step| {
        let directory = path::absolute(directory).map_err(|cause| Failure::file(directory, &cause))?;
        if fs::read_to_string(&marker).is_ok_and(|installed| installed == requirements) {
            return Ok(Done { summary: "up to date".to_owned(), value: directory.into() });
        }
        step.note("installing from PyPI, 1 MB");
        PYTHON_CLIENT.install(&step).await?;
        fs::write(&marker, requirements).map_err(|cause| Failure::file(&marker, &cause))?;
        Ok(Done { summary: "installed".to_owned(), value: directory.into() })
    })
    .await
}

async fn start_gateway(redis_url: String) -> Result<Gateway, Failure> {
    let options = Options { read_only_token: Some(READ_ONLY_TOKEN.to_owned()), ..Options::new(redis_url, TOKEN) };
    Gateway::start(options).await.map_err(|error| Failure::new(error.to_string(), ""))
}

/// The files `clients/*.test.mjs`, sorted.
fn npm_suites() -> Result<Vec<path::PathBuf>, Failure> {
    let entries = fs::read_dir(SUITES).map_err(|cause| Failure::file(SUITES, &cause))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    Ok(files)
}

/// Runs a suite against a gateway. Prints what it prints, except the tests that pass.
async fn run_suite(name: &str, mut command: Command, gateway: &Gateway) -> Result<Totals, Failure> {
    run_step(&format!("clients from {name}"), async |step| {
        command.env("UPSTASH_REDIS_REST_URL", gateway.url()).env("UPSTASH_REDIS_REST_TOKEN", TOKEN);
        command.env("UPSTASH_REDIS_REST_READONLY_TOKEN", READ_ONLY_TOKEN);
        let mut group = ProcessGroup::start(command)?;
        let mut totals = Totals::default();
        let finish = async {
            while let Some(line) = group.next_line().await {
                totals.read(&line);
                if is_passed_test(&line) {
                    step.report(line.trim());
                } else {
                    println!("{line}");
                }
            }
            group.wait().await
        };
        let ended = timeout(SUITE_TIMEOUT, finish).await;
        let has_succeeded = matches!(ended, Ok(Ok(status)) if status.success() || status.code() == NO_TESTS);
        if !has_succeeded && totals.failed == 0 {
            let cause = format!("the tests of the clients from {name} did not finish");
            return Err(Failure::new(cause, "read the output above"));
        }
        Ok(Done { summary: format!("{} passed, {} failed", totals.passed, totals.failed), value: totals })
    })
    .await
}

/// True for the line of a test that passed, and for the dots of Python's tests.
fn is_passed_test(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('✔') || (!line.is_empty() && line.bytes().all(|byte| byte == b'.'))
}

impl Totals {
    /// Reads a line of the summary of Node.js (`ℹ pass 3`) or of Python (`Ran 3 tests in 1s`, `FAILED (errors=1)`).
    fn read(&mut self, line: &str) {
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        let words: Vec<_> = line.split([' ', '(', ')', ',']).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            ["ℹ", "pass", passed] => self.passed += number(passed),
            ["ℹ", "fail" | "cancelled", failed] => self.failed += number(failed),
            ["Ran", count, "tests" | "test", "in", _] => self.passed += number(count),
            ["FAILED", counts @ ..] => {
                let failed: u32 = counts.iter().filter_map(|count| count.split_once('=')).map(|(_, n)| number(n)).sum();
                self.failed += failed;
                self.passed = self.passed.saturating_sub(failed);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_those_of_the_summaries() {
        for (output, passed, failed) in [
            ("✔ get (1ms)\nℹ tests 5\nℹ pass 3\nℹ fail 1\nℹ cancelled 1\nℹ skipped 0\n", 3, 2),
            ("...\n-----\nRan 3 tests in 1.200s\n\nOK\n", 3, 0),
            ("F.E\nRan 3 tests in 1.200s\n\nFAILED (failures=1, errors=1)\n", 1, 2),
            ("Traceback (most recent call last):\n", 0, 0),
        ] {
            let mut totals = Totals::default();
            output.lines().for_each(|line| totals.read(line));
            assert_eq!(totals, Totals { passed, failed }, "{output}");
        }
    }

    #[test]
    fn only_tests_that_passed_are_left_out() {
        assert!(["✔ get (1ms)", "  ✔ get (1ms)", "....."].into_iter().all(is_passed_test));
        assert!(!["✖ get (1ms)", "..F..", "", "ℹ pass 3"].into_iter().any(is_passed_test));
    }
}
