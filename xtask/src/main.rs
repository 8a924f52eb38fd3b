//! `cargo xtask dev`, `cargo xtask test` and `cargo xtask bench`, each with all of its own set-up; `cargo xtask build` is what wrangler calls.
//! `cargo xtask soak` lets it run while parts of it are killed; `cargo xtask size` holds the Worker small.
//!
//! Reading order: the commands (`dev`, `test`, `bench`, `soak`, `worker`, `size`, `deny`), what they set up (`tools`, `npm`, `redis`, `wheel`, `dev_vars`, `settings`), what they run
//! (`wrangler`, `crons`, `sale`), and below that processes, steps, stamps and failures.

mod assets;
mod bench;
mod children;
mod crons;
mod deny;
mod dev;
mod dev_vars;
mod failure;
mod npm;
mod redis;
mod sale;
mod settings;
mod size;
mod soak;
mod stamp;
mod steps;
mod test;
mod tools;
mod visitors;
mod wheel;
mod worker;
mod wrangler;

use std::{env, path::Path, process::ExitCode};

use clap::{Parser, Subcommand};
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::failure::Failure;

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
    Bench(bench::Arguments),
    /// Let visitors shop while Redis and the Worker are killed again and again, and see that nothing is lost.
    Soak(soak::Arguments),
    /// Build the Worker into build/; `wrangler dev` and `wrangler deploy` call this.
    Build(worker::Arguments),
    /// Build the Worker without the demo shop, and hold its size.
    Size,
}

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    match start(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure != Failure::default() {
                eprintln!("{failure}");
            }
            ExitCode::FAILURE
        }
    }
}

fn start(command: Command) -> Result<(), Failure> {
    // All paths are relative to the workspace.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    env::set_current_dir(&root).map_err(|cause| Failure::file(&root, &cause))?;
    let failed = |cause: std::io::Error| Failure::new(format!("this system refuses: {cause}"), "");
    // One thread for us, others for the gateway and its connections.
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [interrupt, terminate, hangup] = &mut signals;
        // Ctrl-C is how the shop is closed; a test that is stopped has not passed.
        let stopped =
            if matches!(command, Command::Dev(_)) { Ok(()) } else { Err(Failure::new("stopped by a signal", "")) };
        let work = async {
            match command {
                Command::Dev(arguments) => dev::run(arguments).await,
                Command::Test(arguments) => test::run(arguments).await,
                Command::Deny => deny::run().await,
                Command::Bench(arguments) => bench::run(arguments).await,
                Command::Soak(arguments) => soak::run(arguments).await,
                Command::Build(arguments) => worker::build_alone(arguments).await,
                Command::Size => size::run().await,
            }
        };
        // Whichever ends first drops the work, and with it every process it started.
        tokio::select! {
            result = work => result,
            () = received(interrupt) => stopped,
            () = received(terminate) => stopped,
            () = received(hangup) => stopped,
        }
    })
}

async fn received(signal: &mut std::io::Result<Signal>) {
    match signal {
        Ok(signal) => {
            signal.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}
