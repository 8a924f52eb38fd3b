//! The results as Markdown tables and as JSON.

use serde_json::{Value, json};

use super::{
    candidate::Candidate,
    results::{Criterion, ResultKey, Results},
    workload::{Scenario, Workload},
};
use crate::table::{Table, format_figure, format_figure_or_dash};

/// Compares each edgefront with the best peer, with the book's chapter, and with a Worker that does nothing.
pub fn ratios(results: &Results) -> Table {
    let (far, many) = (results.max_latency_ms(), results.max_connections());
    let mut table = Table::new([
        "",
        "requests/s ÷ best peer",
        "÷ book",
        "÷ bare Rust",
        "CPU ÷ best peer, 1 connection",
        &format!("{many} connections"),
        &format!("p50 at {far} ms ÷ best peer, 1 connection"),
        &format!("{many} connections"),
    ]);
    for candidate in results.candidates.iter().filter(|candidate| candidate.is_edgefront()) {
        for workload in results.workloads() {
            let row = RatioRow { results, candidate, workload };
            let cells = [
                row.title(),
                row.rate_to_best_peer(many).unwrap_or_else(dash),
                format_figure_or_dash(row.rate_to("book", many)),
                // Bare Workers are measured only with the first workload.
                format_figure_or_dash(row.rate_to("bare-rust", many)),
                row.cpu_to_best_peer(1).unwrap_or_else(dash),
                row.cpu_to_best_peer(many).unwrap_or_else(dash),
                row.p50_to_best_peer(far, 1).unwrap_or_else(dash),
                row.p50_to_best_peer(far, many).unwrap_or_else(dash),
            ];
            // No peer has pages with holes.
            if cells.iter().skip(1).any(|cell| *cell != dash()) {
                table.push_row(cells);
            }
        }
    }
    table
}

/// One edgefront under one workload.
struct RatioRow<'a> {
    results: &'a Results,
    candidate: &'a Candidate,
    workload: Workload,
}

impl RatioRow<'_> {
    /// The title names the candidate only if there are several edgefronts.
    fn title(&self) -> String {
        let edgefronts = self.results.candidates.iter().filter(|candidate| candidate.is_edgefront());
        if edgefronts.count() > 1 {
            format!("{}: {}", self.candidate.name, self.workload.title())
        } else {
            self.workload.title().to_owned()
        }
    }

    fn scenario(&self, latency_ms: u32, connections: usize) -> Scenario {
        Scenario { workload: self.workload, latency_ms, connections }
    }

    fn rate_to(&self, other: &str, connections: usize) -> Option<f64> {
        let scenario = self.scenario(0, connections);
        let (own, other) = (ResultKey::new(scenario, &self.candidate.name), ResultKey::new(scenario, other));
        self.results.ratio(&own, &other, |round| round.requests_per_second)
    }

    fn rate_to_best_peer(&self, connections: usize) -> Option<String> {
        let peer = self.results.best_peer(self.scenario(0, connections), Criterion::RequestsPerSecond)?;
        Some(with_name(self.rate_to(&peer, connections)?, &peer))
    }

    /// CPU time of the Worker's process per request.
    fn cpu_to_best_peer(&self, connections: usize) -> Option<String> {
        let scenario = self.scenario(0, connections);
        let peer = self.results.best_peer(scenario, Criterion::Cpu)?;
        let cpu_us = |name: &str| self.results.metrics(&ResultKey::new(scenario, name))?.worker_cpu_us;
        Some(with_name(cpu_us(&self.candidate.name)? / cpu_us(&peer)?, &peer))
    }

    /// `None` without latency.
    fn p50_to_best_peer(&self, latency_ms: u32, connections: usize) -> Option<String> {
        if latency_ms == 0 {
            return None;
        }
        let scenario = self.scenario(latency_ms, connections);
        let peer = self.results.best_peer(scenario, Criterion::P50)?;
        let (own, other) = (ResultKey::new(scenario, &self.candidate.name), ResultKey::new(scenario, &peer));
        Some(with_name(self.results.ratio(&own, &other, |round| round.p50_ms)?, &peer))
    }
}

fn with_name(ratio: f64, peer: &str) -> String {
    format!("{} ({peer})", format_figure(ratio))
}

fn dash() -> String {
    format_figure_or_dash(None)
}

/// All metrics of a workload.
pub fn metrics_table(results: &Results, workload: Workload) -> Table {
    let mut table = Table::new([
        "Redis, connections",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "CPU µs",
        "Redis requests",
        "commands",
        "waited for",
    ]);
    for scenario in results.scenarios().into_iter().filter(|scenario| scenario.workload == workload) {
        for candidate in &results.candidates {
            let Some(metrics) = results.metrics(&ResultKey::new(scenario, &candidate.name)) else { continue };
            let round_trips = results.sequential_round_trips(workload, &candidate.name);
            table.push_row([
                format!("{} ms, {}: {}", scenario.latency_ms, scenario.connections, candidate.name),
                format_figure(metrics.requests_per_second),
                format_figure(metrics.p50_ms),
                format_figure(metrics.p99_ms),
                format_figure_or_dash(metrics.worker_cpu_us),
                format_figure(metrics.redis_requests),
                format_figure(metrics.redis_commands),
                format_figure_or_dash(round_trips.map(|round_trips| round_trips.max(0.0))),
            ]);
        }
    }
    table
}

/// Explains the columns of [`metrics_table`] and names the cost of the load generator.
pub fn legend(results: &Results) -> String {
    let generator = results.generator_cpu_us().map_or_else(String::new, |micros| {
        format!(" The load generator itself uses {} µs of CPU per request.", format_figure(micros))
    });
    format!(
        "Redis, connections: the added latency of Redis, and the number of connections that send requests at the same \
         time. CPU: user and system time of the Worker's process per request. Redis requests, commands: per request, \
         including those after the response; commands include those in scripts. Waited for: sequential round trips to \
         Redis before the response, computed from the p50 of one connection with and without latency (one round trip \
         is {} ms).{generator}",
        format_figure(results.round_trip_ms)
    )
}

/// All metrics for programs.
pub fn to_json(results: &Results) -> Value {
    let mut cells = Vec::new();
    for scenario in results.scenarios() {
        for candidate in &results.candidates {
            let key = ResultKey::new(scenario, &candidate.name);
            let Some(metrics) = results.metrics(&key) else { continue };
            cells.push(json!({
                "workload": scenario.workload.name(),
                "candidate": candidate.name,
                "redis_latency_ms": scenario.latency_ms,
                "connections": scenario.connections,
                "requests_per_second": metrics.requests_per_second,
                "requests_per_second_by_round": results.rates(&key),
                "p50_ms": metrics.p50_ms,
                "p99_ms": metrics.p99_ms,
                "cpu_us_per_request": metrics.worker_cpu_us,
                "load_cpu_us_per_request": metrics.generator_cpu_us,
                "redis_requests_per_request": metrics.redis_requests,
                "redis_commands_per_request": metrics.redis_commands,
                "redis_requests_waited_for": results.sequential_round_trips(scenario.workload, &candidate.name),
            }));
        }
    }
    json!({"round_trip_ms": results.round_trip_ms, "cells": cells})
}
