//! The rounds. Each round measures every candidate once in every scenario, one candidate at a time. The order of the
//! candidates rotates.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time;
use xtask::failure::Failure;

use super::{
    BenchArguments,
    candidate::RunningCandidate,
    load_generator::{self, Load, Measurement},
    redis_accounting::RedisAccounting,
    request_stream::RequestStream,
    results::{ResultKey, Results},
    visitor_session::VisitorSession,
    workload::{Scenario, Workload},
};

/// The time for which each candidate runs under each workload before the first round. It lets V8 optimise the code and
/// the process reach its full size. workerd keeps the objects of responses until V8's major garbage collection, which
/// takes some 100,000 pages. Until then, a page waits for fresh memory as long as for everything else together.
const WARM_UP: Duration = Duration::from_secs(5);
/// As [`WARM_UP`], with `--quick`.
const QUICK_WARM_UP: Duration = Duration::from_secs(1);
/// The connections of all loads that are not measured.
const WARM_UP_CONNECTIONS: usize = 32;
/// The time for which a candidate stores popular pages again before they are measured.
const REFILL: Duration = Duration::from_millis(500);
/// The time after the last load in which the candidates send their remaining commands.
const COOL_DOWN: Duration = Duration::from_secs(3);

/// Runs all rounds.
///
/// # Errors
/// When a response of a candidate is incorrect.
pub async fn measure(
    arguments: &BenchArguments,
    candidates: &[RunningCandidate],
    sessions: &[VisitorSession],
) -> Result<Results, Failure> {
    let mut results = Results::new(candidates.iter().map(|running| running.candidate.clone()).collect());
    results.round_trip_ms = round_trip_ms(arguments, candidates).await?;
    let duration = Duration::from_secs_f64(arguments.seconds);
    let requests = request_streams(arguments, candidates, sessions);
    let mut run = Run { duration, requests, accounting: RedisAccounting::default(), results };
    let warm_up = if arguments.quick { QUICK_WARM_UP } else { WARM_UP };
    for &workload in &arguments.only {
        println!("...  warming up: {}", workload.title());
        for running in candidates {
            run.load(running, unmeasured(workload), warm_up).await?;
        }
    }
    let scenarios = scenarios(arguments);
    let started = Instant::now();
    for round in 0..arguments.rounds {
        for (number, &scenario) in scenarios.iter().enumerate() {
            let previous = number.checked_sub(1).and_then(|previous| scenarios.get(previous));
            if previous.is_none_or(|previous| previous.workload != scenario.workload) {
                let (round, rounds, seconds) = (round + 1, arguments.rounds, started.elapsed().as_secs());
                println!("...  round {round} of {rounds}, after {seconds} s: {}", scenario.workload.title());
                run.refill(candidates, scenario.workload).await?;
            }
            for running in rotated(candidates, round as usize + number) {
                run.measure(running, scenario).await?;
            }
        }
    }
    time::sleep(COOL_DOWN).await;
    run.settle(candidates).await?;
    Ok(run.results)
}

/// A run in progress.
struct Run {
    /// The duration of one measurement.
    duration: Duration,
    /// By candidate and workload. Each stream goes on where the last load stopped.
    requests: HashMap<(String, Workload), Arc<RequestStream>>,
    accounting: RedisAccounting,
    results: Results,
}

impl Run {
    /// Measures one candidate in one scenario.
    async fn measure(&mut self, running: &RunningCandidate, scenario: Scenario) -> Result<(), Failure> {
        self.accounting.settle(running, &mut self.results).await?;
        let Some(measurement) = self.load(running, scenario, self.duration).await? else { return Ok(()) };
        let key = ResultKey::new(scenario, &running.candidate.name);
        self.accounting.attribute(&key, measurement.sent);
        self.results.add(key, measurement);
        Ok(())
    }

    /// Lets the candidates store the popular pages again, which the cold workload of the last round has deleted. The
    /// Redis usage of this load belongs to no scenario.
    async fn refill(&mut self, candidates: &[RunningCandidate], workload: Workload) -> Result<(), Failure> {
        if !matches!(workload, Workload::Hot | Workload::Guest | Workload::Holes) {
            return Ok(());
        }
        self.settle(candidates).await?;
        for running in candidates {
            self.load(running, unmeasured(workload), REFILL).await?;
        }
        Ok(())
    }

    async fn settle(&mut self, candidates: &[RunningCandidate]) -> Result<(), Failure> {
        for running in candidates {
            self.accounting.settle(running, &mut self.results).await?;
        }
        Ok(())
    }

    /// `None` if the candidate does not serve the workload.
    async fn load(
        &self,
        running: &RunningCandidate,
        scenario: Scenario,
        duration: Duration,
    ) -> Result<Option<Measurement>, Failure> {
        let RunningCandidate { candidate, worker, backend } = running;
        let Some(requests) = self.requests.get(&(candidate.name.clone(), scenario.workload)) else { return Ok(None) };
        if !candidate.serves(scenario.workload) {
            return Ok(None);
        }
        if let Some(backend) = backend {
            backend.set_latency(Duration::from_millis(scenario.latency_ms.into()));
        }
        let load = Load {
            address: worker.address,
            process: worker.process,
            requests: requests.clone(),
            connections: scenario.connections,
            warm_up: duration / 3,
            duration,
        };
        let named = |failure: Failure| Failure::new(format!("{}: {}", candidate.name, failure.cause), failure.remedy);
        let measurement = load_generator::run(load).await.map_err(named)?;
        if let (Workload::Cold, Some(backend)) = (scenario.workload, backend) {
            backend.delete_pages().await?;
        }
        Ok(Some(measurement))
    }
}

/// The scenario of a load whose measurement is discarded.
fn unmeasured(workload: Workload) -> Scenario {
    Scenario { workload, latency_ms: 0, connections: WARM_UP_CONNECTIONS }
}

fn request_streams(
    arguments: &BenchArguments,
    candidates: &[RunningCandidate],
    sessions: &[VisitorSession],
) -> HashMap<(String, Workload), Arc<RequestStream>> {
    let names = candidates.iter().map(|running| &running.candidate.name);
    let keys = names.flat_map(|name| arguments.only.iter().map(|workload| (name.clone(), *workload)));
    keys.map(|(name, workload)| {
        let cookies = sessions.iter().map(|session| session.cookie.clone()).collect();
        ((name, workload), Arc::new(RequestStream::new(workload, cookies)))
    })
    .collect()
}

/// All scenarios, in the order of their measurement.
fn scenarios(arguments: &BenchArguments) -> Vec<Scenario> {
    let scenarios = arguments.only.iter().flat_map(|&workload| {
        arguments.latency.iter().flat_map(move |&latency_ms| {
            let connections = arguments.connections.iter();
            connections.map(move |&connections| Scenario { workload, latency_ms, connections })
        })
    });
    scenarios.collect()
}

fn rotated(candidates: &[RunningCandidate], by: usize) -> impl Iterator<Item = &RunningCandidate> {
    candidates.iter().cycle().skip(by % candidates.len().max(1)).take(candidates.len())
}

/// The measured increase of a request to Redis from no latency to the largest latency, milliseconds. It exceeds the
/// configured latency, because timers are always late.
async fn round_trip_ms(arguments: &BenchArguments, candidates: &[RunningCandidate]) -> Result<f64, Failure> {
    let latency_ms = arguments.latency.iter().max().copied().unwrap_or(0);
    let Some(backend) = candidates.iter().find_map(|running| running.backend.as_ref()) else { return Ok(0.0) };
    let near = backend.round_trip_ms(Duration::ZERO).await?;
    let far = backend.round_trip_ms(Duration::from_millis(latency_ms.into())).await?;
    Ok(far - near)
}
