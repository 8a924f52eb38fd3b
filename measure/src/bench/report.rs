//! The results as tables, ratios first, and as JSON.

use serde_json::{Value, json};

use super::{
    candidate::{Candidate, Kind},
    results::{Best, Cell, Results},
    table::{Table, figure, figure_or_dash},
    workload::Workload,
};

/// Every edgefront beside the best peer, the book written down, and a Worker that does nothing.
pub fn ratios(results: &Results) -> Table {
    let (far, crowd) = (results.latency(), results.connections());
    let mut table = Table::new([
        "",
        "requests/s ÷ best peer",
        "÷ book",
        "÷ bare Rust",
        &format!("p50 at {far} ms ÷ best peer"),
        &format!("with {crowd} connections"),
    ]);
    let edgefronts = results.candidates.iter().filter(|candidate| matches!(candidate.kind, Kind::Edgefront(_)));
    for candidate in edgefronts {
        for workload in results.workloads() {
            let cell =
                |latency, connections, name: &str| Cell { workload, latency, connections, candidate: name.to_owned() };
            let rate = |other: &str| {
                let (own, other) = (cell(0, crowd, &candidate.name), cell(0, crowd, other));
                results.ratio(&own, &other, |round| round.rate)
            };
            let p50 = |connections| {
                let peer = results.best_peer(workload, far, connections, Best::P50)?;
                let (own, other) = (cell(far, connections, &candidate.name), cell(far, connections, &peer));
                Some(named(results.ratio(&own, &other, |round| round.p50)?, &peer)).filter(|_| far > 0)
            };
            let peer = results.best_peer(workload, 0, crowd, Best::Rate);
            let best = peer.and_then(|peer| Some(named(rate(&peer)?, &peer)));
            let dash = || "–".to_owned();
            // A Worker that does nothing is measured once, with the first workload.
            let bare = rate("bare-rust");
            table.row([
                title(results, candidate, workload),
                best.unwrap_or_else(dash),
                figure_or_dash(rate("book")),
                figure_or_dash(bare),
                p50(1).unwrap_or_else(dash),
                p50(crowd).unwrap_or_else(dash),
            ]);
        }
    }
    table
}

fn named(ratio: f64, peer: &str) -> String {
    format!("{} ({peer})", figure(ratio))
}

/// Who is meant is told where there are several edgefronts.
fn title(results: &Results, candidate: &Candidate, workload: Workload) -> String {
    let edgefronts = results.candidates.iter().filter(|candidate| matches!(candidate.kind, Kind::Edgefront(_)));
    if edgefronts.count() > 1 {
        format!("{}: {}", candidate.name, workload.title())
    } else {
        workload.title().to_owned()
    }
}

/// All figures of a workload.
pub fn figures(results: &Results, workload: Workload) -> Table {
    let heads =
        ["Redis, connections", "requests/s", "p50 ms", "p99 ms", "CPU µs", "Redis requests", "commands", "waited for"];
    let mut table = Table::new(heads);
    for (_, latency, connections) in results.loads().into_iter().filter(|load| load.0 == workload) {
        for candidate in &results.candidates {
            let cell = Cell { workload, latency, connections, candidate: candidate.name.clone() };
            let Some(figures) = results.figures(&cell) else { continue };
            table.row([
                format!("{latency} ms, {connections}: {}", candidate.name),
                figure(figures.rate),
                figure(figures.p50),
                figure(figures.p99),
                figure_or_dash(figures.cpu),
                figure(figures.requests),
                figure(figures.commands),
                figure_or_dash(results.waits(workload, &candidate.name).map(|waits| waits.max(0.0))),
            ]);
        }
    }
    table
}

/// What the columns of [`figures`] mean, and what the load costs.
pub fn legend(results: &Results) -> String {
    let load = results.load_cost().map_or_else(String::new, |micros| {
        format!(" The load itself takes {} µs of CPU for each request.", figure(micros))
    });
    format!(
        "CPU: user and system time of the Worker's process, for each request. Redis requests and commands: for each request, also those behind \
         the answer; commands also inside scripts. Waited for: requests to Redis before the answer, one after the other (how much longer one \
         connection waits where Redis is far, in round trips of {} ms).{load}",
        figure(results.round_trip)
    )
}

/// Everything, for programs.
pub fn to_json(results: &Results) -> Value {
    let mut cells = Vec::new();
    for (workload, latency, connections) in results.loads() {
        for candidate in &results.candidates {
            let cell = Cell { workload, latency, connections, candidate: candidate.name.clone() };
            let Some(figures) = results.figures(&cell) else { continue };
            cells.push(json!({
                "workload": workload.name(),
                "candidate": candidate.name,
                "redis_latency_ms": latency,
                "connections": connections,
                "requests_per_second": figures.rate,
                "requests_per_second_by_round": results.rates(&cell),
                "p50_ms": figures.p50,
                "p99_ms": figures.p99,
                "cpu_us_per_request": figures.cpu,
                "load_cpu_us_per_request": figures.own_cpu,
                "redis_requests_per_request": figures.requests,
                "redis_commands_per_request": figures.commands,
                "redis_requests_waited_for": results.waits(workload, &candidate.name),
            }));
        }
    }
    json!({"round_trip_ms": results.round_trip, "cells": cells})
}
