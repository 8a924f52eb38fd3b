//! `cargo xtask test`: one suite of tests. Edgefront's own suite sets up what the tests need, runs them, and prints the
//! totals in its last line.

mod clients;
mod edgefront;
mod integrations;
mod summary;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{self, PathBuf},
    process::ExitCode,
};

use tokio::{process::Command, try_join};
use xtask::{chromium, failure::Failure, npm, process_group::ProcessGroup, redis, runner, schemathesis, tools, worker};

use self::summary::Summary;
use crate::delegated::{self, Program};

/// The file in which each test that ran on a cluster leaves its name.
const CLUSTER_TESTS: &str = "target/on-clusters";
const NO_PYTHON: &str =
    "; schemathesis, prometheus and the lines for Python were skipped: install Python 3.11 or later, with pip";
const NO_BROWSER: &str =
    "; the browser tests were skipped: install Chromium, or set CHROMIUM to the path of a Chromium-based browser";

/// Sets up what the tests need, then runs all of them. The tests get `EDGEFRONT_REDIS_SERVER` (a server binary),
/// `EDGEFRONT_NODE` (Node.js 22) and `EDGEFRONT_BUNDLE` (the Worker's directory) as absolute paths,
/// `EDGEFRONT_CHROMIUM` if there is a browser, and `EDGEFRONT_SCHEMATHESIS` (its packages) if there is Python.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct TestArguments {
    /// Run all tests on Redis Clusters of three servers; without this, only the tests of the sharded layout do.
    #[arg(long, group = "suite")]
    cluster: bool,
    /// Test third-party storefronts behind edgefront instead; the names and options follow, and -- --help lists them.
    #[arg(long, group = "suite")]
    storefronts: bool,
    /// Test the published clients of Upstash against the gateway instead; parts of test names follow.
    #[arg(long, group = "suite")]
    clients: bool,
    /// Test the packages in integrations/ with the real frameworks instead: all of them, or those whose names follow.
    #[arg(long, group = "suite")]
    integrations: bool,
    /// Arguments for cargo test: a part of a test's name, `-p edgefront-gateway`, or `-- --nocapture`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo_test: Vec<OsString>,
}

/// A suite of tests. The options of the command line select one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suite {
    /// Edgefront's own tests.
    Own { cluster: bool },
    /// Upstash's clients in front of the gateway.
    Clients,
    /// The packages in `integrations/`.
    Integrations,
    /// Third-party storefronts behind edgefront.
    Storefronts,
}

impl TestArguments {
    const fn suite(&self) -> Suite {
        match self {
            Self { clients: true, .. } => Suite::Clients,
            Self { integrations: true, .. } => Suite::Integrations,
            Self { storefronts: true, .. } => Suite::Storefronts,
            Self { cluster, .. } => Suite::Own { cluster: *cluster },
        }
    }
}

/// Runs a suite. The exit code is that of a failure if the set-up or a test fails.
pub fn run(arguments: TestArguments) -> ExitCode {
    let (suite, rest) = (arguments.suite(), arguments.cargo_test);
    match suite {
        Suite::Own { cluster } => runner::run(run_own(cluster, rest)),
        Suite::Clients => runner::run(clients::run(&rest)),
        Suite::Integrations => runner::run(integrations::run(&rest)),
        Suite::Storefronts => runner::exit_code(delegated::exec(Program::Storefronts, &rest)),
    }
}

/// Runs edgefront's own tests.
///
/// # Errors
/// When the set-up or a test fails.
async fn run_own(cluster: bool, cargo_test: Vec<OsString>) -> Result<(), Failure> {
    let (server, tools, (), schemathesis) =
        try_join!(redis::server_binary(), tools::install(), npm::install(), schemathesis::packages())?;
    worker::build(&tools).await?;

    let chromium = chromium::find();
    let mut environment = vec![
        ("PATH", npm::search_path()?),
        ("EDGEFRONT_REDIS_SERVER", server.into()),
        ("EDGEFRONT_NODE", npm::node()?.into()),
        ("EDGEFRONT_BUNDLE", worker::directory()?.into()),
    ];
    environment.extend(chromium.clone().map(|path| ("EDGEFRONT_CHROMIUM", path.into())));
    environment.extend(schemathesis.clone().map(|path| ("EDGEFRONT_SCHEMATHESIS", path.into())));
    if cluster {
        let names = create_empty(CLUSTER_TESTS).map_err(|cause| Failure::file(CLUSTER_TESTS, &cause))?;
        environment.push(("EDGEFRONT_TEST_CLUSTER", names.into()));
    }

    let selections = selections(&cargo_test);
    let skipped_modules = [
        (chromium.is_none(), "browser::"),
        (schemathesis.is_none(), "schemathesis::"),
        (schemathesis.is_none(), "prometheus::"),
        (schemathesis.is_none(), "packages::python::"),
    ];
    let skipped_modules = skipped_modules.into_iter().filter_map(|(skip, module)| skip.then_some(module));
    let cargo_test = skip_modules(&skipped_modules.collect::<Vec<_>>(), cargo_test);
    let (summary, has_succeeded) = run_suites(selections, &cargo_test, &environment).await?;

    let names = cluster.then(|| fs::read_to_string(CLUSTER_TESTS).unwrap_or_default());
    let clusters = names.as_deref().map(cluster_summary).unwrap_or_default();
    let no_browser = if chromium.is_some() { "" } else { NO_BROWSER };
    let no_python = if schemathesis.is_some() { "" } else { NO_PYTHON };
    print_summary(&summary, has_succeeded, &[&clusters, no_browser, no_python].concat());
    if has_succeeded { Ok(()) } else { Err(Failure::already_printed()) }
}

/// Runs the tests of each selection of packages. Returns false beside the totals if a suite failed, did not compile or did
/// not finish.
async fn run_suites(
    selections: &[&[&str]],
    cargo_test: &[OsString],
    environment: &[(&str, OsString)],
) -> Result<(Summary, bool), Failure> {
    let (mut summary, mut has_succeeded) = (Summary::default(), true);
    for packages in selections {
        let mut cargo = Command::new("cargo");
        // A failed suite must not keep the others from running.
        cargo.args(["test", "--no-fail-fast"]).args(*packages).args(cargo_test).envs(environment.iter().cloned());
        let mut group = ProcessGroup::start(cargo)?;
        while let Some(line) = group.next_line().await {
            println!("{line}");
            summary.read(&line);
        }
        has_succeeded &= group.wait().await.is_ok_and(|status| status.success());
    }
    Ok((summary, has_succeeded))
}

/// Prints the suites, the failures and the totals. `notes` ends the last line.
fn print_summary(summary: &Summary, has_succeeded: bool, notes: &str) {
    println!();
    for suite in &summary.suites {
        println!("{:>5} passed, {} failed  {}", suite.passed, suite.failed, suite.name);
    }
    for lines in &summary.failures {
        println!("\n{}\n", lines.join("\n"));
    }
    let (passed, failed) = summary.totals();
    // A suite that does not compile or is killed reports no failed test.
    let is_incomplete = !has_succeeded && failed == 0;
    let incomplete = if is_incomplete { ", and a suite did not compile or did not finish" } else { "" };
    println!("{passed} passed, {failed} failed{incomplete}{notes}");
}

/// The packages of each run of cargo. Cargo compiles a dependency once for all packages of a run, with the features of
/// all of them. In a single run, the HTTPS of the second group would change the HTTP client of all other tests.
fn selections(cargo_test: &[OsString]) -> &'static [&'static [&'static str]] {
    let mut options = cargo_test.iter().take_while(|argument| *argument != "--");
    if options.any(|option| option == "-p" || option == "--package") {
        return &[&[]];
    }
    &[
        &[
            "--workspace",
            "--exclude",
            "edgefront-doctor",
            "--exclude",
            "edgefront-contract",
            "--exclude",
            "edgefront-carry-over",
        ],
        &["--package", "edgefront-doctor", "--package", "edgefront-contract", "--package", "edgefront-carry-over"],
    ]
}

/// Creates or truncates a file and returns its absolute path.
fn create_empty(path: &str) -> io::Result<PathBuf> {
    fs::create_dir_all("target")?;
    fs::write(path, "")?;
    path::absolute(path)
}

/// The number of tests that ran on a cluster. A test with two stores has left its name twice.
fn cluster_summary(names: &str) -> String {
    let names: BTreeSet<_> = names.lines().collect();
    format!("; {} on clusters of three servers, the others on a single Redis or on none", names.len())
}

/// The arguments for `cargo test`, so that it skips `modules`.
fn skip_modules(modules: &[&str], mut cargo_test: Vec<OsString>) -> Vec<OsString> {
    if !modules.is_empty() && !cargo_test.iter().any(|argument| argument == "--") {
        cargo_test.push("--".into());
    }
    cargo_test.extend(modules.iter().flat_map(|module| ["--skip".into(), (*module).into()]));
    cargo_test
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct CommandLine {
        #[command(flatten)]
        test: TestArguments,
    }

    fn suite(options: &[&str]) -> Option<Suite> {
        let line = CommandLine::try_parse_from([&["test"], options].concat()).ok()?;
        Some(line.test.suite())
    }

    #[test]
    fn options_select_one_suite() {
        assert_eq!(suite(&["cart"]), Some(Suite::Own { cluster: false }));
        assert_eq!(suite(&["--cluster", "cart"]), Some(Suite::Own { cluster: true }));
        assert_eq!(suite(&["--clients"]), Some(Suite::Clients));
        assert_eq!(suite(&["--integrations", "python"]), Some(Suite::Integrations));
        assert_eq!(suite(&["--storefronts", "evershop", "--help"]), Some(Suite::Storefronts));
        for other in ["--clients", "--integrations", "--storefronts"] {
            assert_eq!(suite(&[other, "--cluster"]), None, "{other}");
        }
        assert_eq!(suite(&["--storefronts", "--clients"]), None);
    }

    #[test]
    fn tests_without_their_program_are_skipped() {
        let arguments =
            |modules: &[&str], given: &[&str]| skip_modules(modules, given.iter().map(OsString::from).collect());
        assert_eq!(arguments(&[], &["cart"]), ["cart"]);
        assert_eq!(arguments(&["browser::"], &["cart"]), ["cart", "--", "--skip", "browser::"]);
        let both = arguments(&["browser::", "schemathesis::"], &["--", "--nocapture"]);
        assert_eq!(both, ["--", "--nocapture", "--skip", "browser::", "--skip", "schemathesis::"]);
    }

    #[test]
    fn https_is_compiled_apart_unless_the_packages_are_named() {
        let runs = |given: &[&str]| selections(&given.iter().map(OsString::from).collect::<Vec<_>>()).len();
        assert_eq!([runs(&[]), runs(&["cart"]), runs(&["-p", "gateway"]), runs(&["--", "-p"])], [2, 2, 1, 2]);
    }

    #[test]
    fn a_test_on_two_clusters_counts_once() {
        assert!(cluster_summary("cart::a\ncart::b\ncart::a\n").starts_with("; 2 on clusters"));
    }
}
