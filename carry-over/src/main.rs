//! Moves the keys that all visitors share to the names of another layout of `SHARDS`. `cargo xtask carry-over` runs this
//! program with its arguments; [`edgefront::schema::carry_over`] has the move.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

use std::{
    process::ExitCode,
    rc::Rc,
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum, value_parser};
use edgefront::{
    config::variables::{INSIGHTS_HALF_LIFE, RANKING_HALF_LIFE},
    schema::carry_over::{CarryOverError, CarryOverProgress, HalfLives, SharedNames, carry_over},
};
use tokio::time::sleep;
use upstash_rest::{Client, Credentials, Error, ReqwestTransport};
use xtask::{failure::Failure, runner};

/// The longest call. Upstash ends a request after a few seconds.
const DEADLINE: Duration = Duration::from_secs(30);
/// After a call that the plan's rate limit refused.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two progress lines.
const REPORT_EVERY: Duration = Duration::from_secs(2);
const GUIDE: &str = "docs/scaling.md, \"Change SHARDS in a running shop\"";

/// Move ranking, pages, rows, flash sales and insights to the names of another layout of SHARDS.
///
/// Deploy `SHARDS_KNOWN` with the new first number, then run the command at once: until then, the new isolates see no
/// ranking, no pages and no rows. Run it again when the former isolates are gone, until it says that nothing was left.
/// Schedule and unschedule no rows meanwhile. Counts that both names have are added up, and the next run finishes a run
/// that broke off.
#[derive(Parser)]
#[command(name = "cargo xtask carry-over", bin_name = "cargo xtask carry-over")]
struct CarryOverArguments {
    /// The names that the keys get.
    #[arg(value_enum)]
    names: Names,
    /// The address of the database, as the Worker has it.
    #[arg(long, value_name = "URL", env = "UPSTASH_REDIS_REST_URL")]
    url: String,
    /// The token of the database. Prefer the environment variable: other users of this machine can read arguments.
    #[arg(long, value_name = "TOKEN", env = "UPSTASH_REDIS_REST_TOKEN", hide_env_values = true)]
    token: String,
    /// `RANKING_HALF_LIFE` of the Worker.
    #[arg(long, value_name = "SECONDS", env = RANKING_HALF_LIFE.name, default_value = RANKING_HALF_LIFE.default)]
    #[arg(value_parser = value_parser!(u64).range(RANKING_HALF_LIFE.min..))]
    ranking_half_life: u64,
    /// `INSIGHTS_HALF_LIFE` of the Worker.
    #[arg(long, value_name = "SECONDS", env = INSIGHTS_HALF_LIFE.name, default_value = INSIGHTS_HALF_LIFE.default)]
    #[arg(value_parser = value_parser!(u64).range(INSIGHTS_HALF_LIFE.min..))]
    insights_half_life: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Names {
    /// Names with hash tags, such as `viewed:{pages}`: the first number of `SHARDS_KNOWN` is above 1.
    Tags,
    /// The book's names, such as `viewed:`: the first number of `SHARDS_KNOWN` is 1.
    Book,
}

impl From<Names> for SharedNames {
    fn from(names: Names) -> Self {
        match names {
            Names::Tags => Self::Tags,
            Names::Book => Self::Book,
        }
    }
}

fn main() -> ExitCode {
    runner::parse().map_or_else(|code| code, |arguments| runner::run(run(arguments)))
}

async fn run(arguments: CarryOverArguments) -> Result<(), Failure> {
    let client = connect(&arguments)?;
    let (started, mut reported) = (Instant::now(), Instant::now());
    let half_lives = HalfLives {
        ranking: Duration::from_secs(arguments.ranking_half_life),
        insights: Duration::from_secs(arguments.insights_half_life),
    };
    let report = |progress| {
        if reported.elapsed() >= REPORT_EVERY {
            reported = Instant::now();
            println!("...  {}", describe(progress));
        }
    };
    let outcome = carry_over(&client, arguments.names.into(), half_lives, report, async || sleep(PAUSE).await);
    let progress = outcome.await.map_err(|error| explain(&error))?;
    println!("ok   {} ({:.1} s)", describe(progress), started.elapsed().as_secs_f32());
    println!(
        "{}",
        if progress.moved == 0 {
            "Nothing was left. If isolates of the former deployment still run, run this again when they are gone."
        } else {
            "Run this again when the isolates of the former deployment are gone, until nothing is left."
        }
    );
    Ok(())
}

fn connect(arguments: &CarryOverArguments) -> Result<Client, Failure> {
    // Fails if a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let credentials = Credentials::new(arguments.url.trim(), arguments.token.trim()).map_err(|error| {
        Failure::new(
            error.to_string(),
            "set UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN as the Worker has them",
        )
    })?;
    let transport = ReqwestTransport::new().map_err(|error| Failure::new(error.to_string(), ""))?;
    Ok(Client::new(Rc::new(transport), credentials, DEADLINE))
}

fn describe(CarryOverProgress { seen, total, moved }: CarryOverProgress) -> String {
    format!("{moved} keys moved; about {seen} of {total} looked at")
}

/// The failure with its remedy.
fn explain(error: &CarryOverError) -> Failure {
    let remedy = match error {
        CarryOverError::Cluster => {
            return Failure::new(error.to_string(), format!("nothing is to be done: see {GUIDE}"));
        }
        CarryOverError::Redis(error) => match error {
            Error::Unauthorized => "use the token of the database that the Worker has: UPSTASH_REDIS_REST_TOKEN",
            Error::Unavailable => "use the standard token: a read-only token cannot move keys",
            Error::Quota => "raise the plan's limit, then run the command again: it moves what is left",
            Error::NotRest { .. } => "check UPSTASH_REDIS_REST_URL: it must be the address of the REST API",
            error if error.is_transient() => "check the address, then run the command again: it moves what is left",
            _ => "correct the cause, then run the command again: it moves what is left",
        },
    };
    Failure::new(error.to_string(), remedy)
}
