//! The rounds: in each, every candidate is measured once under every load, one candidate after the other, each time another one first.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time;

use super::{
    Arguments,
    backend::{Counts, Visitor},
    candidate::Running,
    load::{self, Load, Measured},
    results::{Cell, Results},
    workload::{Visits, Workload},
};
use xtask::failure::Failure;

/// How long a candidate runs unmeasured under each workload, with 32 connections, before the first round: until its code is compiled well
/// and its process has grown. workerd holds what an answer was made of until V8 collects all garbage, so that takes some 100,000 pages;
/// on the way there a page waits for fresh memory as long as for anything else.
const WARM_UP: Duration = Duration::from_secs(5);
/// The same, for a look.
const QUICK_WARM_UP: Duration = Duration::from_secs(1);
/// How long popular pages are asked for before they are measured.
const STORE_AGAIN: Duration = Duration::from_millis(500);

/// Runs all rounds.
///
/// # Errors
/// When a candidate answers anything but what it should.
pub async fn measure(arguments: &Arguments, running: &[Running], visitors: &[Visitor]) -> Result<Results, Failure> {
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
    let warm_up = if arguments.quick { QUICK_WARM_UP } else { WARM_UP };
    for workload in &arguments.only {
        println!("...  warming up: {}", workload.title());
        for running in running {
            run.load(running, *workload, 0, 32, warm_up).await?;
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
            if is_first && matches!(workload, Workload::Hot | Workload::Guest) {
                // The cold pages of the last round took the popular ones along: stored again, and counted to nobody.
                for running in running {
                    run.counters.settle(running, &mut run.results).await?;
                    run.load(running, workload, 0, 32, STORE_AGAIN).await?;
                }
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
