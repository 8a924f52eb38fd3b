//! `cargo xtask test --storefronts`: unchanged third-party storefronts behind edgefront with their presets. Concurrent
//! visitors of every kind read pages, and each answer must be the visitor's own or free of personal content.
//!
//! - [`stack`]: the storefront, Redis and the Worker.
//! - [`visitor`]: a client with cookies; [`kind`]: the kinds of visitors; [`shops`]: how visitors act in each
//!   storefront, and what its pages reveal.
//! - [`tally`]: the answers by kind, and the verdict; [`throughput`]: the speed beside that of the storefront alone;
//!   [`browser`]: flows in Chromium.

mod browser;
mod kind;
mod shops;
mod stack;
mod tally;
mod throughput;
mod visitor;

use futures_util::future::join_all;
use tokio::try_join;
use xtask::{
    failure::Failure,
    npm, redis,
    steps::{Done, Step, run_step},
    storefront, tools,
    variables::parse_name_value,
    worker,
};

use self::{kind::Kind, shops::Shop, stack::Stack, tally::Tally, throughput::Throughput, visitor::Visitor};

/// Concurrent visitors of each kind: two could not show that one gets the page of the other's basket by chance alone.
const VISITORS_OF_A_KIND: u32 = 3;
/// The pages that a visitor reads between two actions, such as signing out.
const PAGES_OF_A_ROUND: u32 = 40;

/// Options of `cargo xtask test --storefronts`.
#[derive(clap::Args)]
pub struct StorefrontsArguments {
    /// The storefronts to test; all if none is given.
    names: Vec<String>,
    /// The number of answers that visitors of each kind get, at least.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    answers: u32,
    /// Override a variable of the preset; repeatable.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_name_value)]
    vars: Vec<(String, String)>,
    /// Skip the flows in Chromium.
    #[arg(long)]
    no_browser: bool,
}

/// Tests the storefronts one after the other.
///
/// # Errors
/// When something cannot be installed or started, and when a storefront's verdict is bad.
pub async fn run(arguments: StorefrontsArguments) -> Result<(), Failure> {
    let names = if arguments.names.is_empty() { storefront::names() } else { arguments.names.clone() };
    let shops = names.iter().map(|name| Shop::named(name)).collect::<Result<Vec<_>, _>>()?;
    let (redis_binary, tools, ()) = try_join!(redis::server_binary(), tools::install(), npm::install())?;
    worker::build(&tools).await?;
    let mut failures = Vec::new();
    for shop in shops {
        let stack = Stack::start(shop, &redis_binary, &arguments.vars).await?;
        if !arguments.no_browser {
            browser::run(&stack).await?;
        }
        let tally = run_step("visitors", |step| visit(&stack, arguments.answers, step)).await?;
        let throughput = run_step("throughput", async |_| {
            let throughput = Throughput::measure(&stack).await?;
            Ok(Done { summary: throughput.to_string(), value: throughput })
        })
        .await?;
        println!("\n{}, preset {}:\n\n{tally}", shop.name(), shop.name());
        failures.extend(
            tally.failures().into_iter().chain(throughput.failure()).map(|text| format!("{}: {text}", shop.name())),
        );
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::new(failures.join("\n       "), "")) }
}

/// All visitors read pages at the same time, until each kind has got `answers` answers.
async fn visit(stack: &Stack, answers: u32, step: Step) -> Result<Done<Tally>, Failure> {
    let mut tally = Tally::new(stack.shop);
    let numbers = 1..;
    let kinds = Kind::ALL.iter().flat_map(|kind| std::iter::repeat_n(*kind, VISITORS_OF_A_KIND as usize));
    let mut visitors: Vec<_> =
        numbers.zip(kinds).map(|(number, kind)| Visitor::new(number, kind, stack)).collect::<Result<_, _>>()?;
    for visitor in &mut visitors {
        visitor.prepare().await?;
    }
    let rounds = answers.div_ceil(VISITORS_OF_A_KIND * PAGES_OF_A_ROUND);
    for round in 1..=rounds {
        let reading = visitors.iter_mut().map(|visitor| visitor.read_pages(PAGES_OF_A_ROUND));
        for answers in join_all(reading).await {
            tally.add(answers?);
        }
        step.report(format_args!("round {round} of {rounds}; {}", tally.summary()));
    }
    Ok(Done { summary: tally.summary(), value: tally })
}
