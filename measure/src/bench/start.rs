//! `cargo xtask bench --start`: the CPU time from the start of workerd to its first response, with edgefront and with a
//! one-line Worker.

use std::path::Path;

use tokio::try_join;
use xtask::{failure::Failure, npm, tools, worker};

use super::candidate::DIRECTORY;
use crate::{
    statistics::{median, to_f64},
    table::Table,
    worker_variables::required_variables,
    workerd::{RunningWorker, WorkerModule},
};

/// The first request. It asks neither Redis nor the origin.
const PATH: &str = "/_edge/v1/healthz";
/// The directory of the Worker without the demo shop. `cargo xtask size` builds it there, too.
const WITHOUT_DEMO: &str = "target/without-demo";
/// Nothing listens there.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Starts each Worker so many times, in turn.
///
/// # Errors
/// When a Worker cannot be built or started, or on a system without `/proc/*/sched`.
pub async fn run(starts: u32) -> Result<(), Failure> {
    let (tools, ()) = try_join!(tools::install(), npm::install())?;
    worker::build(&tools).await?;
    worker::bundle_without_demo(&tools, WITHOUT_DEMO).await?;
    let workers = [
        ("one-line Worker", vec![WorkerModule::in_directory(Path::new("benches"), "one_line.js")]),
        ("edgefront without the demo shop", WorkerModule::wasm_bundle(Path::new(WITHOUT_DEMO))),
        ("edgefront", WorkerModule::wasm_bundle(Path::new("build"))),
    ];
    let mut times = workers.each_ref().map(|_| Vec::new());
    for _ in 0..starts {
        for ((name, modules), times) in workers.iter().zip(&mut times) {
            times.push(start(name, modules).await?);
        }
    }
    let medians = times.map(|times| median(times).unwrap_or_default());
    let mut table = Table::new(["CPU time until the first response", "ms", "ratio"]);
    for ((name, _), time) in workers.iter().zip(medians) {
        table.push_row([(*name).to_owned(), format!("{time:.1}"), format!("{:.2}", time / medians[0])]);
    }
    println!("{table}\nMedians of {starts} starts.");
    Ok(())
}

/// Starts a Worker, requests [`PATH`] and returns the CPU time of workerd, ms.
async fn start(name: &str, modules: &[WorkerModule]) -> Result<f64, Failure> {
    let directory = Path::new(DIRECTORY).join("start").join(name.replace(' ', "-"));
    let worker = RunningWorker::start(&directory, modules, &required_variables(NOWHERE, NOWHERE)).await?;
    let url = format!("http://{}{PATH}", worker.address);
    let failed =
        |cause: String| Failure::new(format!("{name} does not answer: {cause}"), "see log.txt in target/bench");
    let response = reqwest::get(&url).await.map_err(|error| failed(error.to_string()))?;
    if !response.status().is_success() {
        return Err(failed(response.status().to_string()));
    }
    let no_time = || Failure::new("there is no /proc/*/sched", "measure on Linux with CONFIG_SCHED_DEBUG");
    let micros = worker.process.cpu_micros().ok_or_else(no_time)?;
    Ok(to_f64(micros) / 1e3)
}
