//! `cargo xtask soak`: visitors shop for minutes while Redis is killed and restarted every half minute, and the Worker
//! once. Redis is a real one with an append-only file. Four properties must hold: no page has status 5xx; every
//! accepted write has happened exactly once at the end; what concurrent clients see of shared carts and flash sales is
//! linearizable; the memory of the Worker stays bounded.
//!
//! - [`shop`]: the shop under test, and its faults.
//! - [`visitor`]: a visitor who checks the cart and the session; [`random`]: the choice of the next action; [`crons`]:
//!   the cron jobs.
//! - [`tally`]: the events minute by minute; [`verdict`]: the results; [`document`]: the published page.

mod crons;
mod document;
mod random;
mod shop;
mod tally;
mod verdict;
mod visitor;

use std::{sync::Arc, time::Duration};

use edgefront_models::histories::clients::{self, Histories};

use tokio::{task::JoinSet, time, try_join};
use xtask::{
    failure::Failure,
    npm, redis,
    steps::{Done, run_step},
    tools, worker,
};

use self::{shop::Shop, visitor::Visitor};
use crate::worker_variables::SERVICE_KEY;

/// Options of `cargo xtask soak`.
#[derive(clap::Args)]
pub struct SoakArguments {
    /// Duration of the test, minutes.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Seconds between two kills of Redis.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(10..))]
    every: u64,
    /// Number of concurrent visitors; each sends some 10 requests per second.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    visitors: u16,
    /// Write the results into docs/soak.md.
    #[arg(long)]
    write_docs: bool,
}

/// Runs the test.
///
/// # Errors
/// When something cannot be built or started, and with all violations.
pub async fn run(arguments: SoakArguments) -> Result<(), Failure> {
    let (redis_binary, tools, ()) = try_join!(redis::server_binary(), tools::install(), npm::install())?;
    worker::build(&tools).await?;
    let shop = run_step("shop", async |_| {
        let shop = Shop::start(&redis_binary).await?;
        Ok(Done { summary: shop.address().to_string(), value: shop })
    })
    .await?;
    let duration = Duration::from_secs(60 * arguments.minutes);
    println!("...  {} visitors shop for {} minutes", arguments.visitors, arguments.minutes);

    let end = time::Instant::now() + duration;
    let mut tasks = JoinSet::new();
    tasks.spawn(crons::tick_until(end, shop.handle()));
    for number in 0..arguments.visitors {
        let visitor = Visitor::new(number, shop.handle());
        tasks.spawn(visitor.shop_until(end));
    }
    let histories = Arc::<Histories>::default();
    let handle = shop.handle();
    let shared = clients::Shop {
        http: handle.http.clone(),
        url: Arc::new(move || handle.url()),
        service_key: SERVICE_KEY.to_owned(),
    };
    tasks.spawn(histories.clone().record_until(shared, end));
    let shop = shop.inject_faults(duration, Duration::from_secs(arguments.every)).await?;
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|_| Failure::new("a visitor panicked", "see the message above"))?;
    }
    let mut tally = shop.tally();
    tally.record_histories(histories.check());
    println!("\n{tally}");
    if arguments.write_docs {
        document::write(&arguments, &tally)?;
    }
    tally.verdict()
}
