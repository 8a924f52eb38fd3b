//! `cargo xtask bench` and `cargo xtask soak`: xtask runs this program with their arguments.

mod bench;
mod soak;

use std::process::ExitCode;

use clap::Parser;
use xtask::runner;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Measure edgefront beside what one would write instead, in one run.
    Bench(bench::Arguments),
    /// Let visitors shop while Redis and the Worker are killed again and again, and see that nothing is lost.
    Soak(soak::Arguments),
}

fn main() -> ExitCode {
    let command = Command::parse();
    let work = async {
        match command {
            Command::Bench(arguments) => bench::run(arguments).await,
            Command::Soak(arguments) => soak::run(arguments).await,
        }
    };
    runner::run(work, Err(runner::stopped_by_signal()))
}
