//! `cargo xtask bench`: compares edgefront with alternatives (Hono and `@upstash/redis`) and with Workers that do
//! nothing, in one run. Every candidate runs in raw workerd with its own Valkey and gateway. Each round measures all
//! candidates one at a time, in rotating order. So a disturbance of the machine affects all of them, and ratios are
//! taken within a round.
//!
//! - [`candidate`], [`workload`]: the measured programs, and what they are asked.
//! - [`backend`], [`dataset`], [`visitor_session`]: the Redis of a candidate, its data, and its signed-in visitors.
//! - [`rounds`], [`redis_accounting`]: the order of the measurements, and the Redis usage of each.
//! - [`load_generator`], [`request_stream`], [`response_parser`]: one measurement.
//! - [`results`]: all measurements and the metrics computed from them.
//! - [`memory`], [`start`]: other measurements, of an isolate's memory and of its start.
//! - [`report`], [`bar_chart`], [`documents`]: tables, JSON, the chart, and the published pages.

mod backend;
mod bar_chart;
mod candidate;
mod dataset;
mod documents;
mod load_generator;
mod memory;
mod redis_accounting;
mod report;
mod request_stream;
mod response_parser;
mod results;
mod rounds;
mod start;
mod visitor_session;
mod workload;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tokio::try_join;
use xtask::{
    failure::Failure,
    npm, redis,
    steps::{Done, run_step},
    tools,
    variables::parse_name_value,
    worker,
};

use self::{
    candidate::{Candidate, CandidateKind, Environment},
    results::Results,
    workload::{SESSIONS, Workload},
};
use crate::{origin::Origin, worker_variables::worker_variables};

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub struct BenchArguments {
    /// Rounds. Each measures every candidate once in every scenario; the results are medians over the rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of one measurement. Before it, the candidate warms up for a third of this time.
    #[arg(long, default_value_t = 1.0, value_parser = parse_seconds)]
    seconds: f64,
    /// Measure only these workloads, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Workload>,
    /// Measure only these candidates: edgefront, eval, pipelined, book, bare-rust, bare-js, and those of --also.
    #[arg(long, value_delimiter = ',')]
    candidates: Vec<String>,
    /// Add another bundle of edgefront as a candidate, for example one built before a change; repeatable.
    #[arg(long, value_name = "NAME=DIRECTORY", value_parser = parse_name_value)]
    also: Vec<(String, String)>,
    /// Added latencies of a request to Redis, milliseconds, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5])]
    latency: Vec<u32>,
    /// Numbers of connections that send requests at the same time, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32])]
    connections: Vec<usize>,
    /// Take a quick look: at most two rounds of half a second, only the first latency and the last number of
    /// connections.
    #[arg(long)]
    quick: bool,
    /// Measure the memory of one isolate that serves so many pages of 100 KB, and nothing else.
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(4..))]
    memory: Option<u32>,
    /// Measure the CPU time of so many starts of the Worker and of a one-line Worker, and nothing else.
    #[arg(long, value_name = "STARTS", value_parser = clap::value_parser!(u32).range(1..))]
    start: Option<u32>,
    /// Write the results into docs/bench.md, docs/bench.svg and README.md. The machine should be otherwise idle.
    #[arg(long)]
    write_docs: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When something cannot be built or started, or a response of a candidate is incorrect.
pub async fn run(mut arguments: BenchArguments) -> Result<(), Failure> {
    if let Some(pages) = arguments.memory {
        return memory::run(pages).await;
    }
    if let Some(starts) = arguments.start {
        return start::run(starts).await;
    }
    if arguments.quick {
        arguments.rounds = arguments.rounds.min(2);
        arguments.seconds = arguments.seconds.min(0.5);
        arguments.latency.truncate(1);
        arguments.connections.drain(..arguments.connections.len().saturating_sub(1));
    }
    if arguments.only.is_empty() {
        arguments.only = Workload::ALL.into();
    }
    let candidates = selected_candidates(&arguments)?;
    let (redis_binary, tools, ()) = try_join!(redis::server_binary(), tools::install(), npm::install())?;
    if candidates.iter().any(|candidate| candidate.name == "edgefront") {
        worker::build(&tools).await?;
    }
    for candidate in &candidates {
        candidate.build(&tools).await?;
    }

    let origin = Origin::start().await?;
    let now = unix_time();
    // The cookies do not depend on the addresses.
    let sessions = visitor_session::create(SESSIONS, &worker_variables("http://127.0.0.1", "http://127.0.0.1"), now)?;
    let environment = Environment { redis_binary: &redis_binary, origin_url: origin.url(), sessions: &sessions, now };
    let mut running = Vec::new();
    for candidate in candidates {
        let name = candidate.name.clone();
        let start = async |_| {
            let running = candidate.start(&environment).await?;
            Ok(Done { summary: running.worker.address.to_string(), value: running })
        };
        running.push(run_step(&name, start).await?);
    }
    let results = rounds::measure(&arguments, &running, &sessions).await?;
    print(&results)?;
    if arguments.write_docs { documents::write(&results) } else { Ok(()) }
}

/// Prints the tables and writes the JSON. The ratios come last, because the end of the output is visible in a terminal.
fn print(results: &Results) -> Result<(), Failure> {
    for workload in results.workloads() {
        println!("\n{}\n{}", workload.title(), report::metrics_table(results, workload));
    }
    println!("{}\n\n{}", report::legend(results), report::ratios(results));
    let path = Path::new(candidate::DIRECTORY).join("results.json");
    let text = format!("{:#}\n", report::to_json(results));
    fs::write(&path, text).map_err(|cause| Failure::file(&path, &cause))?;
    println!("all figures: {}", path.display());
    Ok(())
}

/// The candidates of `--candidates` and `--also`.
fn selected_candidates(arguments: &BenchArguments) -> Result<Vec<Candidate>, Failure> {
    let mut all = Candidate::all();
    all.extend(arguments.also.iter().map(|(name, directory)| Candidate {
        name: name.clone(),
        kind: CandidateKind::Edgefront(PathBuf::from(directory)),
    }));
    let selected = &arguments.candidates;
    if let Some(unknown) = selected.iter().find(|name| all.iter().all(|candidate| candidate.name != **name)) {
        return Err(Failure::new(
            format!("--candidates {unknown}: there is no such candidate"),
            "`cargo xtask bench --help` lists the candidates",
        ));
    }
    all.retain(|candidate| selected.is_empty() || selected.contains(&candidate.name));
    Ok(all)
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "write a number of seconds")?;
    if (0.1..=60.0).contains(&seconds) { Ok(seconds) } else { Err("write a number from 0.1 to 60".to_owned()) }
}

/// The time since the Unix epoch.
fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
