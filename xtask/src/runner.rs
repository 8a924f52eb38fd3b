//! Runs one command to its end, or until a signal.

use std::{env, path::Path, process::ExitCode};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::failure::Failure;

/// Runs `command` in the workspace's directory and prints its failure. `stopped` is the result if a signal ends it.
pub fn run(command: impl Future<Output = Result<(), Failure>>, stopped: Result<(), Failure>) -> ExitCode {
    finish(enter_workspace().and_then(|()| start(command, stopped)))
}

/// All paths are relative to the workspace.
///
/// # Errors
/// When its directory is gone.
pub fn enter_workspace() -> Result<(), Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    env::set_current_dir(&root).map_err(|cause| Failure::file(&root, &cause))
}

/// Prints a failure.
#[must_use]
pub fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure != Failure::default() {
                eprintln!("{failure}");
            }
            ExitCode::FAILURE
        }
    }
}

/// What a signal makes of every command that has not ended by then, except the shop, which is closed that way.
#[must_use]
pub fn stopped_by_signal() -> Failure {
    Failure::new("stopped by a signal", "")
}

fn start(command: impl Future<Output = Result<(), Failure>>, stopped: Result<(), Failure>) -> Result<(), Failure> {
    let failed = |cause: std::io::Error| Failure::new(format!("this system refuses: {cause}"), "");
    // One thread for us, others for the gateway and its connections.
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let mut signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [interrupt, terminate, hangup] = &mut signals;
        // Whichever ends first drops the work, and with it every process it started.
        tokio::select! {
            result = command => result,
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
