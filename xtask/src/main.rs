//! The commands of `cargo xtask`. Each does its own set-up; the library of this package holds what they share.
//!
//! - [`dev`], [`test`]: local development and all tests; [`run_storefront`]: a third-party storefront behind edgefront.
//! - [`delegated`]: `bench`, `soak`, `simulate`, `doctor`, `contract`, `carry-over` and `test --storefronts`,
//!   which crates of their own implement.
//! - [`build_worker`], [`size`], [`deny`], [`sbom`]: the Worker, its size, and the dependencies.
//! - [`tiers`]: the configurations of two tiers.
//! - [`lighthouse`]: the scores of the shop's pages and of the dashboard.
//!
//! Several commands use [`settings`] (the Worker's variables), [`dev_vars`] (its secrets on this machine) and
//! [`edgefront_crate`] (the items of the crate `edgefront`).

mod build_worker;
mod delegated;
mod deny;
mod dev;
mod dev_vars;
mod edgefront_crate;
mod lighthouse;
mod run_storefront;
mod sbom;
mod settings;
mod size;
mod test;
mod tiers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::runner;

use self::delegated::Program;

/// Local development, tests and measurements of edgefront.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run edgefront on this machine with Redis and crons, in front of the demo shop or of --origin.
    Dev(dev::DevArguments),
    /// Run a third-party storefront on this machine behind edgefront with its preset.
    Storefront(run_storefront::StorefrontArguments),
    /// Run all tests with a real Redis and workerd; with --storefronts, --clients or --integrations, the tests with
    /// third-party software.
    Test(test::TestArguments),
    /// Check licences, duplicates and sources of all dependencies, and known vulnerabilities if their database is
    /// reachable.
    Deny,
    /// Compare the speed of edgefront with alternatives (`cargo xtask bench --help` lists the options).
    Bench(delegated::ForwardedArguments),
    /// Kill Redis and the Worker while visitors shop, and check that nothing is lost (`cargo xtask soak --help` lists
    /// the options).
    Soak(delegated::ForwardedArguments),
    /// Simulate the page cache and Redis from ten to a million requests a second (`cargo xtask simulate --help` lists
    /// the options).
    Simulate(delegated::ForwardedArguments),
    /// Examine a shop: which of its pages edgefront would share, and which rules it needs (`cargo xtask doctor --help`
    /// lists the options).
    Doctor(delegated::ForwardedArguments),
    /// Check an origin against the contract of the Edge-* headers (`cargo xtask contract --help` lists the options).
    Contract(delegated::ForwardedArguments),
    /// Move the keys that all visitors share while SHARDS changes (`cargo xtask carry-over --help` lists the options).
    CarryOver(delegated::ForwardedArguments),
    /// Build the Worker into build/; `wrangler dev` and `wrangler deploy` call this.
    Build(build_worker::BuildArguments),
    /// Build the Worker without the demo shop and check its size.
    Size,
    /// Measure pages of a running shop and its dashboard with Lighthouse.
    Lighthouse(lighthouse::LighthouseArguments),
    /// Write wrangler.edge.json and wrangler.home.json from wrangler.toml, to deploy an edge tier and a home tier.
    Tiers,
    /// Write software bills of materials of the Worker's crates and of the npm packages, for dependency scanners.
    Sbom,
}

fn main() -> ExitCode {
    match CommandLine::parse().command {
        Command::Dev(arguments) => runner::run_until_stopped(dev::run(arguments)),
        Command::Storefront(arguments) => runner::run_until_stopped(run_storefront::run(arguments)),
        Command::Test(arguments) => test::run(arguments),
        Command::Deny => runner::run(deny::run()),
        Command::Bench(arguments) => runner::exit_code(delegated::exec(Program::Bench, &arguments.options)),
        Command::Soak(arguments) => runner::exit_code(delegated::exec(Program::Soak, &arguments.options)),
        Command::Simulate(arguments) => runner::exit_code(delegated::exec(Program::Simulate, &arguments.options)),
        Command::Doctor(arguments) => runner::exit_code(delegated::exec(Program::Doctor, &arguments.options)),
        Command::Contract(arguments) => runner::exit_code(delegated::exec(Program::Contract, &arguments.options)),
        Command::CarryOver(arguments) => runner::exit_code(delegated::exec(Program::CarryOver, &arguments.options)),
        Command::Build(arguments) => runner::run(build_worker::run(arguments)),
        Command::Size => runner::run(size::run()),
        Command::Lighthouse(arguments) => runner::run(lighthouse::run(arguments)),
        Command::Tiers => runner::run(async { tiers::run() }),
        Command::Sbom => runner::run(sbom::run()),
    }
}
