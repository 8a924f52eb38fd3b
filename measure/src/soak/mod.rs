//! `cargo xtask soak`: visitors shop for minutes in front of a real Redis with an append-only file, while Redis is killed and started again
//! every half minute and the Worker once. What holds: no page answers 5xx, what was accepted is there in the end (once), and the Worker's
//! memory stays bounded. It asks and counts; what it finds wrong is its failure.
//!
//! - [`shop`]: what runs, and who is killed when.
//! - [`visitor`]: who shops, and what each knows must be in their cart; [`crons`]: who cleans up.
//! - [`tally`]: what is counted, minute by minute; [`document`]: where it is published.

mod crons;
mod document;
mod shop;
mod tally;
mod visitor;

use std::time::Duration;

use tokio::{task::JoinSet, time, try_join};

use self::{shop::Shop, visitor::Visitor};
use xtask::{
    failure::Failure,
    npm, redis,
    steps::{Done, step},
    tools,
};

/// Lets visitors shop while Redis and the Worker are killed, and fails if anything is lost.
#[derive(clap::Args, Clone)]
pub struct Arguments {
    /// How long it runs.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Seconds from one kill of Redis to the next.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(10..))]
    every: u64,
    /// Who shops at the same time; one asks some 10 times a second.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    visitors: u16,
    /// Write what was counted into docs/soak.md.
    #[arg(long)]
    write_docs: bool,
}

/// Runs it.
///
/// # Errors
/// When something can not be built or started, and with all that did not hold.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let (binary, tools, ()) = try_join!(redis::binary(), tools::install(), npm::install())?;
    xtask::worker::build(&tools).await?;
    let shop = step("shop", async |_| {
        let shop = Shop::open(&binary).await?;
        Ok(Done { what: shop.address().to_string(), value: shop })
    })
    .await?;
    let length = Duration::from_secs(60 * arguments.minutes);
    println!("...  {} visitors shop for {} minutes", arguments.visitors, arguments.minutes);

    let end = time::Instant::now() + length;
    let mut tasks = JoinSet::new();
    tasks.spawn(crons::tick_until(end, shop.door()));
    for number in 0..arguments.visitors {
        let visitor = Visitor::new(number, shop.door());
        tasks.spawn(visitor.shop_until(end));
    }
    let shop = shop.disturb(length, Duration::from_secs(arguments.every)).await?;
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|_| Failure::new("a visitor broke down", ""))?;
    }
    let tally = shop.tally();
    println!("\n{tally}");
    if arguments.write_docs {
        document::write(&arguments, &tally)?;
    }
    tally.verdict()
}
