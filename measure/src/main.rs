//! The benchmark, the soak test and the storefront tests of edgefront. `cargo xtask bench`, `cargo xtask soak` and
//! `cargo xtask test --storefronts` run this program with their arguments. It is apart from xtask, so that the other
//! commands do not compile it.
//!
//! - [`mod@bench`], [`soak`], [`storefronts`]: the commands.
//! - [`workerd`], [`process`], [`rest_redis`], [`origin`], [`worker_variables`]: a Worker, the programs around it, and
//!   its variables.
//! - [`statistics`], [`table`]: their output.

mod bench;
mod origin;
mod process;
mod rest_redis;
mod soak;
mod statistics;
mod storefronts;
mod table;
mod worker_variables;
mod workerd;

use std::process::ExitCode;

use clap::Parser;
use xtask::runner;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Compare the speed of edgefront with alternatives.
    ///
    /// One run measures all candidates in front of a real Redis. The alternatives are the same shop in JavaScript, and
    /// Workers that do nothing. The first run compiles the load generator with optimisation, which takes two minutes.
    Bench(bench::BenchArguments),
    /// Kill Redis and the Worker while visitors shop, and check that nothing is lost.
    Soak(soak::SoakArguments),
    /// Test unchanged third-party storefronts behind edgefront with their presets.
    Storefronts(storefronts::StorefrontsArguments),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Bench(arguments) => runner::run(bench::run(arguments)),
        Command::Soak(arguments) => runner::run(soak::run(arguments)),
        Command::Storefronts(arguments) => runner::run(storefronts::run(arguments)),
    }
}
