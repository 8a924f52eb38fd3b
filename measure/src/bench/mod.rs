//! `cargo xtask bench`: edgefront beside what one would write instead (Hono and `@upstash/redis`) and beside Workers that do nothing, in one
//! run. Every candidate runs in raw workerd with a Valkey and a gateway of its own; each round measures all of them, one after the other, in
//! another order each time: so whatever disturbs the machine disturbs all alike, and ratios are taken within a round.
//!
//! - [`candidate`], [`workload`]: who is measured, and with what.
//! - [`worker`], [`backend`], [`origin`], [`process`]: what a candidate runs in and stands on, and what is counted there.
//! - [`rounds`]: who is measured when.
//! - [`load`], [`answer`]: who asks.
//! - [`results`], [`statistics`]: what came of it, and the figures that it gives.
//! - [`report`], [`table`], [`plot`]: these as tables, as JSON and as a picture; [`documents`]: where they are published.

mod answer;
pub mod backend;
pub mod candidate;
mod documents;
mod load;
pub mod origin;
mod plot;
pub mod process;
mod report;
mod results;
mod rounds;
pub mod statistics;
pub mod table;
pub mod worker;
mod workload;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use edgefront::{config::Config, ports::time::Timestamp};
use tokio::try_join;

use self::{
    candidate::{Candidate, Kind, World, variables_of},
    origin::Origin,
    results::Results,
    workload::Workload,
};
use xtask::{
    failure::Failure,
    npm, redis,
    steps::{Done, step},
    tools, variables,
};

/// Measures what the Workers can do in front of a real Redis, next to each other. The first run also compiles this program with
/// optimisation and takes two minutes more.
#[derive(clap::Args, Clone)]
pub struct Arguments {
    /// Rounds; each measures every candidate under every load once. Figures are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds for which one candidate is measured under one load in one round; a third as long before it is not measured.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Only these workloads, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Workload>,
    /// Only these candidates: edgefront, eval, pipelined, book, bare-rust, bare-js, and those of --also.
    #[arg(long, value_delimiter = ',')]
    candidates: Vec<String>,
    /// Another bundle of edgefront as one more candidate, such as one that was built before a change; repeatable.
    #[arg(long, value_name = "NAME=DIRECTORY", value_parser = variables::name_value)]
    also: Vec<(String, String)>,
    /// Milliseconds that each request to Redis takes longer.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 5])]
    latency: Vec<u32>,
    /// Connections that ask at the same time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 32])]
    connections: Vec<usize>,
    /// For a look: two rounds of half a second, without the latency, with all connections only.
    #[arg(long)]
    quick: bool,
    /// Write what was measured into docs/bench.md, docs/bench.svg and the README. Do it on a machine that has nothing else to do.
    #[arg(long)]
    write_docs: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When something can not be built or started, or a candidate answers anything but what it should.
pub async fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.quick {
        arguments.rounds = arguments.rounds.min(2);
        arguments.seconds = arguments.seconds.min(0.5);
        arguments.latency.truncate(1);
        arguments.connections.drain(..arguments.connections.len().saturating_sub(1));
    }
    if arguments.only.is_empty() {
        arguments.only = Workload::ALL.into();
    }
    let candidates = candidates(&arguments)?;
    let (binary, tools, ()) = try_join!(redis::binary(), tools::install(), npm::install())?;
    if candidates.iter().any(|candidate| candidate.name == "edgefront") {
        xtask::worker::build(&tools).await?;
    }
    for candidate in &candidates {
        candidate.build(&tools).await?;
    }

    let origin = Origin::start().await?;
    let now = now();
    let visitors = backend::visitors(&config()?, now)?;
    let world = World { redis: &binary, origin: origin.url(), visitors: &visitors, now };
    let mut running = Vec::new();
    for candidate in candidates {
        let name = candidate.name.clone();
        let started = async |_| {
            let running = candidate.start(&world).await?;
            Ok(Done { what: running.worker.address.to_string(), value: running })
        };
        running.push(step(&name, started).await?);
    }
    let results = rounds::measure(&arguments, &running, &visitors).await?;
    tell(&results)?;
    if arguments.write_docs { documents::write(&results) } else { Ok(()) }
}

/// Prints the tables, the ratios last (that is where one looks in a terminal), and writes the JSON.
fn tell(results: &Results) -> Result<(), Failure> {
    for workload in results.workloads() {
        println!("\n{}\n{}", workload.title(), report::figures(results, workload));
    }
    println!("{}\n\n{}", report::legend(results), report::ratios(results));
    let path = Path::new(candidate::DIRECTORY).join("results.json");
    let text = format!("{:#}\n", report::to_json(results));
    fs::write(&path, text).map_err(|cause| Failure::file(&path, &cause))?;
    println!("all figures: {}", path.display());
    Ok(())
}

fn candidates(arguments: &Arguments) -> Result<Vec<Candidate>, Failure> {
    let mut all = Candidate::all();
    let others = arguments.also.iter();
    all.extend(
        others
            .map(|(name, directory)| Candidate { name: name.clone(), kind: Kind::Edgefront(PathBuf::from(directory)) }),
    );
    let named = &arguments.candidates;
    if let Some(unknown) = named.iter().find(|name| all.iter().all(|candidate| candidate.name != **name)) {
        return Err(Failure::new(format!("--candidates {unknown}: there is none of that name"), "see --help"));
    }
    all.retain(|candidate| named.is_empty() || named.contains(&candidate.name));
    Ok(all)
}

/// The keys that sign the cookies are those that the Worker has.
fn config() -> Result<Config, Failure> {
    let variables: HashMap<_, _> = variables_of("http://127.0.0.1", "http://127.0.0.1").into_iter().collect();
    Config::from_lookup(|name| variables.get(name).cloned()).map_err(|errors| Failure::new(errors.to_string(), ""))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "write a number of seconds")?;
    if (0.1..=60.0).contains(&seconds) { Ok(seconds) } else { Err("0.1 to 60".to_owned()) }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(0))
}
