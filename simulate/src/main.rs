//! `cargo xtask simulate`.

use std::process::ExitCode;

use clap::Parser;
use edgefront_simulate::{
    document,
    report::{FULL_REDIS, TABLES, Table},
    saturation,
    scenario::{Layout, Scenario},
    summary::Summary,
    world::World,
};

/// Simulate edgefront from ten to a million requests a second, with the product's own policy code.
#[derive(Parser)]
#[command(name = "cargo xtask simulate", bin_name = "cargo xtask simulate")]
struct Arguments {
    /// Requests of all visitors a second, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000,10000,100000,1000000")]
    requests: Vec<f64>,
    /// Repeats a run exactly.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Requests that are simulated in each run. More traffic is sampled.
    #[arg(long, default_value_t = 20_000.0)]
    simulated: f64,
    /// A variable of edgefront, NAME=VALUE.
    #[arg(long = "var", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Commands that Redis executes in a second. A further table shows the requests that it does not answer in time.
    /// Without it, Redis has no limit, and the tables show what it would need.
    #[arg(long, value_name = "N", value_parser = above_zero)]
    redis_commands: Option<f64>,
    /// Write docs/simulation.md and its charts.
    #[arg(long, conflicts_with = "redis_commands")]
    write_docs: bool,
}

fn above_zero(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| *number > 0.0).ok_or_else(|| "not a number above 0".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("error: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut summaries: Vec<Summary> = Vec::new();
    for layout in Layout::ALL {
        for requests in &arguments.requests {
            let started = std::time::Instant::now();
            let mut scenario = Scenario::new(layout, *requests);
            scenario.seed = arguments.seed;
            scenario.simulated_requests = arguments.simulated;
            scenario.variables.clone_from(&arguments.variables);
            scenario.platform.redis_commands = arguments.redis_commands.unwrap_or(f64::INFINITY);
            let summary = World::new(scenario)?.run();
            eprintln!(
                "...  {}, {requests} requests/s: {:.1} s, {} simulated",
                layout.name(),
                started.elapsed().as_secs_f64(),
                summary.tally.simulated
            );
            summaries.push(summary);
        }
    }
    let full_redis: Option<&Table> = arguments.redis_commands.map(|_| &FULL_REDIS);
    for table in TABLES.iter().chain(full_redis) {
        println!("\n# {}", table.title);
        for layout in Layout::ALL {
            println!("\n## {}\n\n{}", layout.name(), table.render(layout, &summaries));
        }
    }
    println!("\n# Where it saturates\n\n{}", saturation::table(&summaries));
    if arguments.write_docs { document::write(&summaries, arguments.seed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_tables_are_those_of_a_redis_without_a_limit() {
        let parse = |options: &[&str]| Arguments::try_parse_from(["simulate"].iter().chain(options));
        assert!(parse(&["--write-docs"]).is_ok() && parse(&["--redis-commands", "100"]).is_ok());
        for wrong in [&["--write-docs", "--redis-commands", "100"][..], &["--redis-commands", "0"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
