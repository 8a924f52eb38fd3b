//! Runs one command until it ends or a signal arrives.

use std::{env, io, path::Path, process::ExitCode};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::failure::Failure;

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
/// # Errors
/// When the directory does not exist any more.
pub fn enter_workspace() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    env::set_current_dir(&root).map_err(|cause| Failure::file(&root, &cause))
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
