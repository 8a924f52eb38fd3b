//! `cargo xtask bench`: edgefront beside what one would write instead (Hono and `@upstash/redis`) and beside Workers that do nothing, in one
//! run. Every candidate runs in raw workerd with a Valkey and a gateway of its own; each round measures all of them, one after the other, in
//! another order each time: so whatever disturbs the machine disturbs all alike, and ratios are taken within a round.
//!
//! - [`candidate`], [`workload`]: who is measured, and with what.
//! - [`worker`], [`backend`], [`origin`], [`process`]: what a candidate runs in and stands on, and what is counted there.
//! - [`load`], [`answer`]: who asks.
//! - [`results`], [`statistics`]: what came of it, and the figures that it gives.
//! - [`report`], [`table`], [`plot`]: these as tables, as JSON and as a picture; [`documents`]: where they are published.

mod answer;
mod backend;
mod candidate;
mod documents;
mod load;
mod origin;
mod plot;
mod process;
mod report;
mod results;
mod statistics;
mod table;
mod worker;
mod workload;

use std::{
    collections::HashMap,
    env, fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use edgefront::{config::Config, time::Timestamp};
use tokio::{time, try_join};

use self::{
    backend::{Counts, Visitor},
    candidate::{Candidate, Kind, Running, World, variables_of},
    load::{Load, Measured},
    origin::Origin,
    results::{Cell, Results},
    workload::{Visits, Workload},
};
use crate::{
    failure::Failure,
    npm, redis, settings,
    steps::{Done, step},
    tools,
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
    #[arg(long, value_name = "NAME=DIRECTORY", value_parser = settings::name_value)]
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
    if cfg!(debug_assertions) {
        return Err(optimised());
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
    let candidates = candidates(&arguments)?;
    let (binary, tools, ()) = try_join!(redis::binary(), tools::install(), npm::install())?;
    if candidates.iter().any(|candidate| candidate.name == "edgefront") {
        crate::worker::build(&tools).await?;
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
    let results = measure(&arguments, &running, &visitors).await?;
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

/// Becomes the optimised program; the failure is why not. The load, the gateway and the origin share the machine with what is measured.
fn optimised() -> Failure {
    println!("...  bench: this program once more, optimised");
    let mut cargo = std::process::Command::new("cargo");
    cargo.args(["run", "--quiet", "--profile", "measure", "--package", "xtask", "--"]).args(env::args_os().skip(1));
    Failure::new(format!("cargo can not be started: {}", cargo.exec()), "install Rust with rustup")
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

async fn measure(arguments: &Arguments, running: &[Running], visitors: &[Visitor]) -> Result<Results, Failure> {
    let mut run = Run {
        arguments,
        visits: HashMap::new(),
        counters: Counters::default(),
        results: Results::new(running.iter().map(|running| running.candidate.clone()).collect()),
    };
    for workload in &arguments.only {
        for running in running {
            let cookies = visitors.iter().map(|visitor| visitor.cookie.clone()).collect();
            run.visits.insert((running.candidate.name.clone(), *workload), Arc::new(Visits::new(*workload, cookies)));
        }
    }
    run.results.round_trip = round_trip(arguments, running).await?;
    let cells = cells(arguments);
    println!("...  warming up");
    // Wasm and JavaScript are compiled better while they run: a candidate that was not asked yet would be measured half compiled.
    for workload in &arguments.only {
        for running in running {
            run.load(running, *workload, 0, 32, Duration::from_secs(1)).await?;
        }
    }
    let started = Instant::now();
    for round in 0..arguments.rounds {
        for (number, &(workload, latency, connections)) in cells.iter().enumerate() {
            let is_first = number == 0 || cells.get(number - 1).is_some_and(|cell| cell.0 != workload);
            if is_first {
                let (round, rounds, seconds) = (round + 1, arguments.rounds, started.elapsed().as_secs());
                println!("...  round {round} of {rounds}, after {seconds} s: {}", workload.title());
            }
            for running in rotated(running, round as usize + number) {
                run.measure(running, workload, latency, connections).await?;
            }
        }
    }
    // What they do behind their last answers is theirs, too.
    time::sleep(Duration::from_secs(3)).await;
    for running in running {
        run.counters.settle(running, &mut run.results).await?;
    }
    Ok(run.results)
}

/// A run under way.
struct Run<'a> {
    arguments: &'a Arguments,
    /// By candidate and workload: each goes on where it left off.
    visits: HashMap<(String, Workload), Arc<Visits>>,
    counters: Counters,
    results: Results,
}

impl Run<'_> {
    /// One candidate under one load, in one round.
    async fn measure(
        &mut self,
        running: &Running,
        workload: Workload,
        latency: u32,
        connections: usize,
    ) -> Result<(), Failure> {
        self.counters.settle(running, &mut self.results).await?;
        let length = Duration::from_secs_f64(self.arguments.seconds);
        let Some(measured) = self.load(running, workload, latency, connections, length).await? else { return Ok(()) };
        let cell = Cell { workload, latency, connections, candidate: running.candidate.name.clone() };
        self.counters.begin(&cell, &measured);
        self.results.add(cell, measured);
        Ok(())
    }

    /// None: this candidate does not answer that.
    async fn load(
        &self,
        running: &Running,
        workload: Workload,
        latency: u32,
        connections: usize,
        length: Duration,
    ) -> Result<Option<Measured>, Failure> {
        let name = &running.candidate.name;
        let Some(visits) = self.visits.get(&(name.clone(), workload)) else { return Ok(None) };
        if !running.candidate.serves(workload) {
            return Ok(None);
        }
        if let Some(backend) = &running.backend {
            backend.set_latency(Duration::from_millis(latency.into()));
        }
        let load = Load {
            address: running.worker.address,
            process: running.worker.process,
            visits: visits.clone(),
            connections,
            warm_up: length / 3,
            length,
        };
        let named = |failure: Failure| Failure::new(format!("{name}: {}", failure.cause), failure.remedy);
        let measured = load::run(load).await.map_err(named)?;
        if let (Workload::Cold, Some(backend)) = (workload, &running.backend) {
            backend.forget_pages().await?;
        }
        Ok(Some(measured))
    }
}

/// Every load, in the order in which they are run.
fn cells(arguments: &Arguments) -> Vec<(Workload, u32, usize)> {
    let loads = arguments.only.iter().flat_map(|workload| {
        arguments.latency.iter().flat_map(move |latency| {
            arguments.connections.iter().map(move |connections| (*workload, *latency, *connections))
        })
    });
    loads.collect()
}

fn rotated(running: &[Running], by: usize) -> impl Iterator<Item = &Running> {
    running.iter().cycle().skip(by % running.len().max(1)).take(running.len())
}

/// What Redis had seen of each candidate when its last load began. It is read again when its next load begins: so what a candidate does
/// behind its answers, also seconds later, is counted to the load that caused it.
#[derive(Default)]
struct Counters(HashMap<String, (Counts, Option<(Cell, u64)>)>);

impl Counters {
    async fn settle(&mut self, running: &Running, results: &mut Results) -> Result<(), Failure> {
        let Some(backend) = &running.backend else { return Ok(()) };
        let now = backend.counts().await?;
        if let Some((before, Some((cell, sent)))) = self.0.insert(running.candidate.name.clone(), (now, None)) {
            results.count(&cell, sent, before, now);
        }
        Ok(())
    }

    fn begin(&mut self, cell: &Cell, measured: &Measured) {
        if let Some((_, load)) = self.0.get_mut(&cell.candidate) {
            *load = Some((cell.clone(), measured.sent));
        }
    }
}

/// How much longer a request to Redis takes with the largest latency than without, milliseconds: timers are late, always.
async fn round_trip(arguments: &Arguments, running: &[Running]) -> Result<f64, Failure> {
    let latency = arguments.latency.iter().max().copied().unwrap_or(0);
    let Some(backend) = running.iter().find_map(|running| running.backend.as_ref()) else { return Ok(0.0) };
    let near = backend.round_trip(Duration::ZERO).await?;
    let far = backend.round_trip(Duration::from_millis(latency.into())).await?;
    Ok(far - near)
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "write a number of seconds")?;
    if (0.1..=60.0).contains(&seconds) { Ok(seconds) } else { Err("0.1 to 60".to_owned()) }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(0))
}
