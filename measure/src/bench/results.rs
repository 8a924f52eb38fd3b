//! The measurements of a run and the metrics computed from them. Rates and response times are medians over the rounds.
//! CPU time and Redis usage are totals over all rounds, divided by the number of requests.

use std::collections::BTreeMap;

use super::{
    backend::RedisUsage,
    candidate::{Candidate, CandidateKind},
    load_generator::Measurement,
    workload::{Scenario, Workload},
};
use crate::statistics::{median, to_f64};

/// One candidate in one scenario.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultKey {
    pub scenario: Scenario,
    /// The name of the candidate.
    pub candidate: String,
}

impl ResultKey {
    pub fn new(scenario: Scenario, candidate: &str) -> Self {
        Self { scenario, candidate: candidate.to_owned() }
    }
}

/// All results of a run.
pub struct Results {
    pub candidates: Vec<Candidate>,
    /// The measured effect of the largest latency on a request to Redis, milliseconds.
    pub round_trip_ms: f64,
    samples: BTreeMap<ResultKey, Samples>,
}

/// The measurements of all rounds.
#[derive(Default)]
struct Samples {
    measurements: Vec<Measurement>,
    /// The requests that caused `redis`.
    sent: u64,
    redis: RedisUsage,
}

/// The metrics of one candidate in one scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metrics {
    pub requests_per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// CPU time of the Worker's process per request, microseconds.
    pub worker_cpu_us: Option<f64>,
    /// CPU time of the load generator per request, microseconds.
    pub generator_cpu_us: f64,
    /// HTTP requests to Redis per request.
    pub redis_requests: f64,
    /// Redis commands per request, including those in scripts.
    pub redis_commands: f64,
}

/// The metric by which the best peer is chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    RequestsPerSecond,
    /// The least CPU time of the Worker's process per request.
    Cpu,
    P50,
}

impl Results {
    pub fn new(candidates: Vec<Candidate>) -> Self {
        Self { candidates, round_trip_ms: 0.0, samples: BTreeMap::new() }
    }

    pub fn add(&mut self, key: ResultKey, measurement: Measurement) {
        self.samples.entry(key).or_default().measurements.push(measurement);
    }

    /// Adds the Redis usage between `before` and `after`, which `sent` requests have caused.
    pub fn add_redis_usage(&mut self, key: &ResultKey, sent: u64, before: RedisUsage, after: RedisUsage) {
        if let Some(samples) = self.samples.get_mut(key) {
            samples.sent += sent;
            samples.redis.requests += after.requests - before.requests;
            samples.redis.commands += after.commands - before.commands;
        }
    }

    /// The measured scenarios.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios: Vec<_> = self.samples.keys().map(|key| key.scenario).collect();
        scenarios.dedup();
        scenarios
    }

    /// The measured workloads.
    pub fn workloads(&self) -> Vec<Workload> {
        let mut workloads: Vec<_> = self.samples.keys().map(|key| key.scenario.workload).collect();
        workloads.dedup();
        workloads
    }

    /// The largest latency, milliseconds.
    pub fn max_latency_ms(&self) -> u32 {
        self.samples.keys().map(|key| key.scenario.latency_ms).max().unwrap_or(0)
    }

    /// The largest number of connections.
    pub fn max_connections(&self) -> usize {
        self.samples.keys().map(|key| key.scenario.connections).max().unwrap_or(0)
    }

    /// CPU time of the load generator per request, microseconds: the median over the whole run.
    pub fn generator_cpu_us(&self) -> Option<f64> {
        median(self.samples.keys().filter_map(|key| self.metrics(key)).map(|metrics| metrics.generator_cpu_us))
    }

    /// Requests per second in each round.
    pub fn rates(&self, key: &ResultKey) -> Vec<f64> {
        let samples = self.samples.get(key).into_iter();
        samples.flat_map(|samples| &samples.measurements).map(|round| round.requests_per_second).collect()
    }

    /// `None` for a scenario that was not measured.
    pub fn metrics(&self, key: &ResultKey) -> Option<Metrics> {
        let Samples { measurements, sent, redis } = self.samples.get(key)?;
        let median_of = |field: fn(&Measurement) -> f64| median(measurements.iter().map(field)).unwrap_or_default();
        let completed: u64 = measurements.iter().map(|round| round.completed).sum();
        let per_request = |sum: f64, requests: u64| sum / to_f64(requests.max(1));
        let worker_cpu_us: Option<f64> = measurements.iter().map(|round| round.worker_cpu_us).sum();
        Some(Metrics {
            requests_per_second: median_of(|round| round.requests_per_second),
            p50_ms: median_of(|round| round.p50_ms),
            p99_ms: median_of(|round| round.p99_ms),
            worker_cpu_us: worker_cpu_us.map(|sum| per_request(sum, completed)),
            generator_cpu_us: per_request(measurements.iter().map(|round| round.generator_cpu_us).sum(), completed),
            redis_requests: per_request(to_f64(redis.requests), *sent),
            redis_commands: per_request(to_f64(redis.commands), *sent),
        })
    }

    /// The number of sequential round trips to Redis before the response: the increase of the p50 of one connection
    /// from no latency to the largest latency, divided by [`Results::round_trip_ms`]. `None` without both measurements.
    pub fn sequential_round_trips(&self, workload: Workload, candidate: &str) -> Option<f64> {
        let scenarios = self.scenarios().into_iter().filter(|scenario| scenario.workload == workload);
        let latencies: Vec<_> = scenarios.map(|scenario| scenario.latency_ms).collect();
        let (near, far) = (latencies.iter().min().copied()?, latencies.iter().max().copied()?);
        if near > 0 || far == 0 {
            return None;
        }
        let p50_ms = |latency_ms| {
            let scenario = Scenario { workload, latency_ms, connections: 1 };
            self.metrics(&ResultKey::new(scenario, candidate)).map(|metrics| metrics.p50_ms)
        };
        Some((p50_ms(far)? - p50_ms(near)?) / self.round_trip_ms)
    }

    /// The median over the rounds of `one`'s figure divided by `other`'s. A disturbance of the machine affects both
    /// figures of a round.
    pub fn ratio(&self, one: &ResultKey, other: &ResultKey, figure: fn(&Measurement) -> f64) -> Option<f64> {
        let (one, other) = (self.samples.get(one)?, self.samples.get(other)?);
        median(one.measurements.iter().zip(&other.measurements).map(|(one, other)| figure(one) / figure(other)))
    }

    /// The name of the best peer in this scenario.
    pub fn best_peer(&self, scenario: Scenario, criterion: Criterion) -> Option<String> {
        let peers = self.candidates.iter().filter(|candidate| candidate.kind == CandidateKind::Peer);
        let scores = peers.filter_map(|peer| {
            let metrics = self.metrics(&ResultKey::new(scenario, &peer.name))?;
            let score = match criterion {
                Criterion::RequestsPerSecond => metrics.requests_per_second,
                Criterion::Cpu => -metrics.worker_cpu_us?,
                Criterion::P50 => -metrics.p50_ms,
            };
            Some((peer.name.clone(), score))
        });
        scores.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(name, _)| name)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Two rounds, the second on a machine with half the speed. In the first, edgefront has 3,000 requests per second,
    /// `eval` 1,000 with one round trip to Redis, `book` 500 with two, and `bare-js` 9,000 with none.
    pub fn sample_results() -> Results {
        let all = Candidate::all();
        let candidates = ["edgefront", "eval", "book", "bare-js"];
        let by_name = |name: &str| all.iter().find(|candidate| candidate.name == name).cloned();
        let mut results = Results::new(candidates.iter().filter_map(|name| by_name(name)).collect());
        results.round_trip_ms = 5.0;
        for (name, rate, round_trips) in
            [("edgefront", 3_000.0, 0.0), ("eval", 1_000.0, 1.0), ("book", 500.0, 2.0), ("bare-js", 9_000.0, 0.0)]
        {
            for speed in [1.0, 0.5] {
                for latency_ms in [0, 5] {
                    let measurement = Measurement {
                        completed: 10,
                        requests_per_second: rate * speed,
                        p50_ms: 1.0 + f64::from(latency_ms) * round_trips,
                        worker_cpu_us: Some(400.0),
                        ..Measurement::default()
                    };
                    results.add(key(name, latency_ms), measurement);
                }
            }
        }
        results
    }

    fn scenario(workload: Workload, latency_ms: u32) -> Scenario {
        Scenario { workload, latency_ms, connections: 1 }
    }

    fn key(candidate: &str, latency_ms: u32) -> ResultKey {
        ResultKey::new(scenario(Workload::Hot, latency_ms), candidate)
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let results = sample_results();
        let ratio = |peer| results.ratio(&key("edgefront", 0), &key(peer, 0), |round| round.requests_per_second);
        assert_eq!(ratio("eval"), Some(3.0));
        assert_eq!(ratio("pipelined"), None);
        let metrics = results.metrics(&key("edgefront", 0));
        assert_eq!(metrics.map(|metrics| metrics.requests_per_second), Some(2_250.0));
    }

    #[test]
    fn redis_usage_is_divided_by_the_requests_that_caused_it() {
        let mut results = sample_results();
        let usage = |requests, commands| RedisUsage { requests, commands };
        results.add_redis_usage(&key("eval", 0), 10, usage(5, 5), usage(15, 95));
        let metrics = results.metrics(&key("eval", 0)).unwrap();
        assert_eq!((metrics.redis_requests, metrics.redis_commands), (1.0, 9.0));
        assert_eq!(metrics.worker_cpu_us, Some(40.0));
    }

    #[test]
    fn sequential_round_trips_follow_from_the_effect_of_latency() {
        let results = sample_results();
        let round_trips = ["edgefront", "eval", "book"].map(|name| results.sequential_round_trips(Workload::Hot, name));
        assert_eq!(round_trips, [Some(0.0), Some(1.0), Some(2.0)]);
        assert_eq!(results.sequential_round_trips(Workload::Row, "eval"), None);
    }

    #[test]
    fn the_best_peer_is_neither_edgefront_nor_a_bare_worker() {
        let results = sample_results();
        let best = |workload, latency_ms, criterion| results.best_peer(scenario(workload, latency_ms), criterion);
        assert_eq!(best(Workload::Hot, 0, Criterion::RequestsPerSecond).as_deref(), Some("eval"));
        assert_eq!(best(Workload::Hot, 5, Criterion::P50).as_deref(), Some("eval"));
        assert_eq!(best(Workload::Row, 0, Criterion::RequestsPerSecond), None);
    }
}
