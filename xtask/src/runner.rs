//! Runs one command until it ends or a signal arrives.

use std::{env, io, path::Path, process::ExitCode};

use clap::Parser;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::failure::Failure;

/// Parses the arguments of the command line.
///
/// # Errors
/// The exit code, after the message is printed: 1 for every failure (clap uses 2), 0 for `--help`.
pub fn parse<A: Parser>() -> Result<A, ExitCode> {
    A::try_parse().map_err(|error| {
        let _ = error.print();
        ExitCode::from(u8::from(error.use_stderr()))
    })
}

/// Runs `command` in the directory of the workspace and prints its failure. SIGINT, SIGTERM or SIGHUP is a failure.
#[must_use]
pub fn run(command: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    exit_code(run_until_signal(command, Err(Failure::new("stopped by a signal", ""))))
}

/// As [`run`], for a command without an end of its own: Ctrl-C is its normal end.
#[must_use]
pub fn run_until_stopped(command: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    exit_code(run_until_signal(command, Ok(())))
}

/// Changes to the directory of the workspace. The paths in all commands are relative to it.
///
/// The directory is found at run time, because cargo runs the program of a copied target/ without compiling it again.
///
/// # Errors
/// When the program runs outside of a workspace.
pub fn enter_workspace() -> Result<(), Failure> {
    // cargo sets the variable for the programs that it runs. Without cargo, the working directory counts.
    let start = env::var_os("CARGO_MANIFEST_DIR").map_or_else(env::current_dir, |package| Ok(package.into()));
    let start = start.map_err(|cause| Failure::file("the working directory", &cause))?;
    let root = start.ancestors().find(|directory| is_workspace(directory)).ok_or_else(|| {
        let cause = format!("no workspace at or above {}", start.display());
        Failure::new(cause, "change to the directory of edgefront, then run `cargo xtask`")
    })?;
    env::set_current_dir(root).map_err(|cause| Failure::file(root, &cause))
}

/// True for the directory that holds this package. fuzz/ is a workspace of its own.
fn is_workspace(directory: &Path) -> bool {
    directory.join("Cargo.toml").is_file() && directory.join("xtask/Cargo.toml").is_file()
}

/// Prints a failure to standard error.
#[must_use]
pub fn exit_code(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_already_printed() {
                eprintln!("{failure}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run_until_signal(
    command: impl Future<Output = Result<(), Failure>>,
    on_signal: Result<(), Failure>,
) -> Result<(), Failure> {
    enter_workspace()?;
    let failed = |cause: io::Error| Failure::new(format!("cannot start the async runtime: {cause}"), "");
    // One thread for the command, one for the gateway and its connections.
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [interrupt, terminate, hangup] = &mut signals;
        // A signal drops the command, and so ends every process that the command started.
        tokio::select! {
            result = command => result,
            () = received(interrupt) => on_signal,
            () = received(terminate) => on_signal,
            () = received(hangup) => on_signal,
        }
    })
}

async fn received(signal: &mut io::Result<Signal>) {
    match signal {
        Ok(signal) => {
            signal.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}
