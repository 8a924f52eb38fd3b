//! What was measured, and the figures that it gives: medians over the rounds; what is counted (CPU, Redis), over all of them together.

use std::collections::BTreeMap;

use super::{
    backend::Counts,
    candidate::{Candidate, Kind},
    load::Measured,
    statistics::median,
    workload::Workload,
};

/// One candidate under one load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub workload: Workload,
    /// Milliseconds that a request to Redis takes longer.
    pub latency: u32,
    pub connections: usize,
    pub candidate: String,
}

/// All of a run.
pub struct Results {
    pub candidates: Vec<Candidate>,
    /// Milliseconds that the largest latency really makes of a request to Redis.
    pub round_trip: f64,
    cells: BTreeMap<Cell, Rounds>,
}

#[derive(Default)]
struct Rounds {
    measured: Vec<Measured>,
    sent: u64,
    redis: Counts,
}

/// The figures of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Requests a second.
    pub rate: f64,
    /// Milliseconds.
    pub p50: f64,
    pub p99: f64,
    /// CPU of the Worker's process for each request, microseconds.
    pub cpu: Option<f64>,
    /// CPU of the load for each request, microseconds.
    pub own_cpu: f64,
    /// HTTP requests to Redis for each request, and commands in them, also inside scripts.
    pub requests: f64,
    pub commands: f64,
}

impl Results {
    pub fn new(candidates: Vec<Candidate>) -> Self {
        Self { candidates, round_trip: 0.0, cells: BTreeMap::new() }
    }

    pub fn add(&mut self, cell: Cell, measured: Measured) {
        self.cells.entry(cell).or_default().measured.push(measured);
    }

    /// What Redis saw of `sent` requests of `cell`.
    pub fn count(&mut self, cell: &Cell, sent: u64, before: Counts, after: Counts) {
        if let Some(rounds) = self.cells.get_mut(cell) {
            rounds.sent += sent;
            rounds.redis.requests += after.requests - before.requests;
            rounds.redis.commands += after.commands - before.commands;
        }
    }

    /// Every load that was run, once.
    pub fn loads(&self) -> Vec<(Workload, u32, usize)> {
        let mut loads: Vec<_> = self.cells.keys().map(|cell| (cell.workload, cell.latency, cell.connections)).collect();
        loads.dedup();
        loads
    }

    /// Every workload that was run.
    pub fn workloads(&self) -> Vec<Workload> {
        let mut workloads: Vec<_> = self.cells.keys().map(|cell| cell.workload).collect();
        workloads.dedup();
        workloads
    }

    /// The largest latency, milliseconds.
    pub fn latency(&self) -> u32 {
        self.cells.keys().map(|cell| cell.latency).max().unwrap_or(0)
    }

    /// Most connections.
    pub fn connections(&self) -> usize {
        self.cells.keys().map(|cell| cell.connections).max().unwrap_or(0)
    }

    /// What the load itself takes of the CPU for each request, microseconds: the median over all that was run.
    pub fn load_cost(&self) -> Option<f64> {
        median(self.cells.keys().filter_map(|cell| self.figures(cell)).map(|figures| figures.own_cpu))
    }

    /// Requests a second, round by round.
    pub fn rates(&self, cell: &Cell) -> Vec<f64> {
        self.cells.get(cell).into_iter().flat_map(|rounds| &rounds.measured).map(|round| round.rate).collect()
    }

    /// None for what was not measured.
    pub fn figures(&self, cell: &Cell) -> Option<Figures> {
        let rounds = self.cells.get(cell)?;
        let of = |figure: fn(&Measured) -> f64| median(rounds.measured.iter().map(figure)).unwrap_or_default();
        let answered: u64 = rounds.measured.iter().map(|round| round.answered).sum();
        let each = |sum: f64, requests: u64| sum / to_number(requests.max(1));
        let cpu: Option<f64> = rounds.measured.iter().map(|round| round.cpu).sum();
        Some(Figures {
            rate: of(|round| round.rate),
            p50: of(|round| round.p50),
            p99: of(|round| round.p99),
            cpu: cpu.map(|cpu| each(cpu, answered)),
            own_cpu: each(rounds.measured.iter().map(|round| round.own_cpu).sum(), answered),
            requests: each(to_number(rounds.redis.requests), rounds.sent),
            commands: each(to_number(rounds.redis.commands), rounds.sent),
        })
    }

    /// How often one after the other a visitor of this candidate waits for Redis: what one connection waits longer for with the largest
    /// latency than without, in round trips.
    pub fn waits(&self, workload: Workload, candidate: &str) -> Option<f64> {
        let latencies = || self.loads().into_iter().filter(|load| load.0 == workload).map(|load| load.1);
        let (near, far) = (latencies().min()?, latencies().max()?);
        let p50 = |latency| {
            let cell = Cell { workload, latency, connections: 1, candidate: candidate.to_owned() };
            self.figures(&cell).map(|figures| figures.p50)
        };
        (near == 0 && far > 0).then(|| Some((p50(far)? - p50(near)?) / self.round_trip))?
    }

    /// The median of `one`'s figure divided by `other`'s, round by round.
    pub fn ratio(&self, one: &Cell, other: &Cell, figure: fn(&Measured) -> f64) -> Option<f64> {
        let (one, other) = (self.cells.get(one)?, self.cells.get(other)?);
        median(one.measured.iter().zip(&other.measured).map(|(one, other)| figure(one) / figure(other)))
    }

    /// The peer that is best at this load.
    pub fn best_peer(&self, workload: Workload, latency: u32, connections: usize, by: Best) -> Option<String> {
        let peers = self.candidates.iter().filter(|candidate| candidate.kind == Kind::Peer);
        let figure = |candidate: &&Candidate| {
            let cell = Cell { workload, latency, connections, candidate: candidate.name.clone() };
            let figures = self.figures(&cell)?;
            Some((candidate.name.clone(), if by == Best::Rate { figures.rate } else { -figures.p50 }))
        };
        let figures = peers.filter_map(|candidate| figure(&candidate));
        figures.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(name, _)| name)
    }
}

/// By which figure a peer is the best.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Best {
    Rate,
    P50,
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn to_number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// edgefront with 3,000 requests a second, a peer with 1,000 that waits once for Redis, one with 500 that waits twice, and a Worker that
    /// does nothing; two rounds, the second on a machine half as fast.
    pub fn run() -> Results {
        let all = Candidate::all();
        let candidates = ["edgefront", "eval", "book", "bare-js"];
        let of_name = |name: &str| all.iter().find(|candidate| candidate.name == name).cloned();
        let mut results = Results::new(candidates.iter().filter_map(|name| of_name(name)).collect());
        results.round_trip = 5.0;
        for (name, rate, waits) in
            [("edgefront", 3_000.0, 0.0), ("eval", 1_000.0, 1.0), ("book", 500.0, 2.0), ("bare-js", 9_000.0, 0.0)]
        {
            for speed in [1.0, 0.5] {
                for latency in [0, 5] {
                    let p50 = 1.0 + f64::from(latency) * waits;
                    let measured =
                        Measured { answered: 10, rate: rate * speed, p50, cpu: Some(400.0), ..Measured::default() };
                    results.add(cell(name, latency), measured);
                }
            }
        }
        results
    }

    fn cell(candidate: &str, latency: u32) -> Cell {
        Cell { workload: Workload::Hot, latency, connections: 1, candidate: candidate.to_owned() }
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let results = run();
        assert_eq!(results.ratio(&cell("edgefront", 0), &cell("eval", 0), |round| round.rate), Some(3.0));
        assert_eq!(results.ratio(&cell("edgefront", 0), &cell("pipelined", 0), |round| round.rate), None);
        assert_eq!(results.figures(&cell("edgefront", 0)).map(|figures| figures.rate), Some(2_250.0));
    }

    #[test]
    fn what_redis_saw_is_told_for_each_request_that_was_sent() {
        let mut results = run();
        let counts = |requests, commands| Counts { requests, commands };
        results.count(&cell("eval", 0), 10, counts(5, 5), counts(15, 95));
        let figures = results.figures(&cell("eval", 0)).unwrap();
        assert_eq!((figures.requests, figures.commands, figures.cpu), (1.0, 9.0, Some(40.0)));
    }

    #[test]
    fn who_waits_how_often_shows_in_the_time_that_a_far_redis_costs() {
        let results = run();
        let waits = ["edgefront", "eval", "book"].map(|name| results.waits(Workload::Hot, name));
        assert_eq!(waits, [Some(0.0), Some(1.0), Some(2.0)]);
        assert_eq!(results.waits(Workload::Row, "eval"), None);
    }

    #[test]
    fn the_best_peer_is_none_of_us() {
        let results = run();
        assert_eq!(results.best_peer(Workload::Hot, 0, 1, Best::Rate).as_deref(), Some("eval"));
        assert_eq!(results.best_peer(Workload::Hot, 5, 1, Best::P50).as_deref(), Some("eval"));
        assert_eq!(results.best_peer(Workload::Row, 0, 1, Best::Rate), None);
    }
}
