//! `cargo xtask dev`, `cargo xtask test` and `cargo xtask bench`, each with all of its own set-up; `cargo xtask build` is what wrangler calls.
//! `cargo xtask soak` lets it run while parts of it are killed; `cargo xtask size` holds the Worker small.
//!
//! Reading order: the commands (`dev`, `test`, `bench`, `soak`, `worker`, `size`, `deny`), what they set up (`tools`, `npm`, `redis`, `wheel`, `dev_vars`, `settings`), what they run
//! (`wrangler`, `crons`, `sale`), and below that processes, steps, stamps and failures.

mod crons;
mod deny;
mod dev;
mod dev_vars;
mod measure;
mod sale;
mod settings;
mod size;
mod test;
mod visitors;
mod wrangler;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{failure::Failure, runner, worker};

/// Set-up, local development and tests of edgefront.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the shop on this machine, in front of a real Redis, with the crons ticking.
    Dev(dev::Arguments),
    /// Run all tests, on a real Redis and in workerd.
    Test(test::Arguments),
    /// Check what comes into the build: licences, duplicates, sources, and known vulnerabilities where their list can be reached.
    Deny,
    /// Measure edgefront beside what one would write instead, in one run.
    Bench(measure::Arguments),
    /// Let visitors shop while Redis and the Worker are killed again and again, and see that nothing is lost.
    Soak(measure::Arguments),
    /// Build the Worker into build/; `wrangler dev` and `wrangler deploy` call this.
    Build(worker::Arguments),
    /// Build the Worker without the demo shop, and hold its size.
    Size,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(arguments) => runner::finish(measure::replace("bench", arguments)),
        Command::Soak(arguments) => runner::finish(measure::replace("soak", arguments)),
        // Ctrl-C is how the shop is closed; a test that is stopped has not passed.
        Command::Dev(arguments) => runner::run(dev::run(arguments), Ok(())),
        Command::Test(arguments) => run(test::run(arguments)),
        Command::Deny => run(deny::run()),
        Command::Build(arguments) => run(worker::build_alone(arguments)),
        Command::Size => run(size::run()),
    }
}

fn run(command: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    runner::run(command, Err(runner::stopped_by_signal()))
}
