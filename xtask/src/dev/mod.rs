//! `cargo xtask dev`: the shop on this machine. One future owns every part. Ctrl-C or an error drops the future, and so
//! ends every process.
//!
//! - [`wrangler`]: the local database and the Worker; [`noise_filter`]: which of wrangler's lines are shown; [`crons`]:
//!   the cron triggers.
//! - [`origin`]: the storefront behind edgefront; [`redis_data`]: the Redis server and the data of earlier runs.
//! - [`sale_rows`]: content for the demo shop; [`addresses`]: the last lines of the start-up.

mod addresses;
mod crons;
mod noise_filter;
mod origin;
mod redis_data;
mod sale_rows;
mod wrangler;

use std::{
    env,
    net::{Ipv4Addr, TcpListener},
    path::{self, Path, PathBuf},
    time::{Duration, Instant},
};

use edgefront_gateway::{Gateway, Options, server::Server};
use tokio::try_join;
use xtask::{
    failure::Failure,
    file_lock::{self, FileLock},
    npm, redis,
    sample_visitors::SampleShop,
    steps::{Done, run_step},
    tools,
    variables::{LOCAL_REDIS_TIMEOUT, Variables, parse_name_value},
    worker,
    wrangler_toml::WranglerToml,
};

use self::{addresses::Addresses, wrangler::WranglerDev};
use crate::{
    settings,
    tiers::{self, TierConfigs},
};

/// The directories of the Redis data, one for each origin. Carts and rankings survive a restart of `dev`.
const REDIS_DATA: &str = ".cache/dev";
/// The longest time that a walking visitor looks at a page.
const WALKING_PAUSE: Duration = Duration::from_secs(10);
const LOCK: &str = ".cache/dev/lock";

/// The shop on this machine: Redis, its REST gateway, the Worker in workerd, and the crons.
#[derive(clap::Args)]
pub struct DevArguments {
    /// The port of the shop on 127.0.0.1.
    #[arg(long, default_value_t = 8787, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Use this running Redis or Valkey, redis://host:port/database; defaults to the environment variable `REDIS_URL`.
    #[arg(long, value_name = "URL")]
    redis_url: Option<String>,
    /// Run in front of this storefront instead of the demo shop.
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// Override a variable of wrangler.toml or .dev.vars; repeatable.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_name_value)]
    vars: Vec<(String, String)>,
    /// Run an edge tier and a home tier. The home tier takes the next port for the crons.
    #[arg(long)]
    tiers: bool,
    /// Visitors who walk through the demo shop all the time, so that the dashboard has data; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(..=20))]
    visitors: u8,
    /// The directory of the Redis data; `None` for the one of the origin.
    #[arg(skip)]
    data: Option<PathBuf>,
}

impl DevArguments {
    /// Runs in front of the storefront `name` at `origin`, with Redis data of its own: the pages of two shops at the
    /// same address must not mix.
    pub fn storefront(port: u16, origin: String, vars: Vec<(String, String)>, name: &str) -> Self {
        let data = Some(Path::new(REDIS_DATA).join(format!("redis-{name}")));
        Self { port, redis_url: None, origin: Some(origin), vars, tiers: false, visitors: 0, data }
    }
}

/// Runs until an error, or until the caller drops the future.
///
/// # Errors
/// When a step fails, or the Worker ends.
pub async fn run(arguments: DevArguments) -> Result<(), Failure> {
    let started = Instant::now();
    // Cheap checks come first: a mistyped variable is reported before anything compiles.
    arguments.origin.as_deref().map_or(Ok(()), origin::check)?;
    let mut overrides = arguments.vars;
    overrides.extend(arguments.origin.map(|url| ("ORIGIN_URL".to_owned(), url)));
    let variables = settings::read(&overrides)?;
    let origin = variables.get("ORIGIN_URL").filter(|url| !url.is_empty()).cloned();
    origin.as_deref().map_or(Ok(()), |url| origin::check_is_elsewhere(url, arguments.port))?;
    let data = arguments.data.unwrap_or_else(|| Path::new(REDIS_DATA).join(origin::data_name(origin.as_deref())));
    check_port_is_free(arguments.port)?;
    let _lock = lock_instance()?;

    let redis_url = arguments.redis_url.or_else(|| env::var("REDIS_URL").ok()).filter(|url| !url.is_empty());
    let (binary, tools, ()) = try_join!(server_binary(redis_url.as_deref()), tools::install(), npm::install())?;
    // Before the build: a wrong --redis-url is reported at once.
    let (_server, redis_url) = start_server(redis_url, binary, &data).await?;
    let token = variables.get("UPSTASH_REDIS_REST_TOKEN").cloned().unwrap_or_default();
    let gateway = start_gateway(&redis_url, token).await?;
    let ((), ()) = try_join!(wrangler::migrate(), worker::build(&tools))?;

    let worker_variables = worker_variables(arguments.port, &gateway, &variables, overrides);
    check_port_is_free(arguments.port)?;
    let worker_url = format!("http://127.0.0.1:{}", arguments.port);
    let (mut wrangler, home) = if arguments.tiers {
        let all = variables.clone().into_iter().chain(worker_variables.clone()).collect();
        let (edge, home) = start_tiers(arguments.port, &all).await?;
        (edge, Some(home))
    } else {
        (WranglerDev::start(arguments.port, &worker_variables)?, None)
    };
    wrangler.wait_until_ready(&worker_url).await?;
    let (mut home, home_url) = home.unzip();
    let sample = SampleShop::of(&worker_url, &variables);
    let first_visits = async {
        sale_rows::schedule(&worker_url, &variables).await?;
        if let Some(shop) = &sample { shop.send_first_visitors().await } else { Ok(()) }
    };
    // The log of these requests would hide the addresses.
    let first_visits = wrangler.print_during(first_visits);
    match &mut home {
        Some(home) => home.print_during(first_visits).await?,
        None => first_visits.await?,
    }
    let addresses = addresses(arguments.port, origin, &worker_variables)?;
    if let Some(url) = &addresses.origin
        && let Some(warning) = origin::warning(url).await
    {
        println!("\n{warning}");
    }
    println!("\nReady after {:.0} s. Press Ctrl-C to stop.\n{addresses}", started.elapsed().as_secs_f32());
    tokio::select! {
        ended = wrangler.print_output() => Err(ended),
        ended = print_output(home) => Err(ended),
        () = crons::tick(home_url.as_ref().unwrap_or(&worker_url)) => Ok(()),
        () = walk(sample.as_ref(), arguments.visitors) => Ok(()),
    }
}

/// The variables that override those of .dev.vars and wrangler.toml.
fn worker_variables(port: u16, gateway: &Gateway, read: &Variables, overrides: Vec<(String, String)>) -> Variables {
    let mut variables = Variables::from([
        ("UPSTASH_REDIS_REST_URL".to_owned(), gateway.url()),
        // The log is the developer's own.
        ("DEMO_MAIL".to_owned(), "log".to_owned()),
        ("DEMO_URL".to_owned(), format!("http://localhost:{port}")),
    ]);
    let timeout = read.get_key_value(LOCAL_REDIS_TIMEOUT.0);
    variables.extend(timeout.map(|(name, value)| (name.clone(), value.clone())));
    variables.extend(overrides);
    variables
}

/// Starts the edge tier on `port` and the home tier on the next port. Returns the edge tier, then the home tier with
/// its URL.
async fn start_tiers(port: u16, variables: &Variables) -> Result<(WranglerDev, (WranglerDev, String)), Failure> {
    let mut configs = TierConfigs::of(&WranglerToml::read()?)?;
    configs.set_local(variables)?;
    let [edge, home] = ["edge", "home"].map(|tier| Path::new(REDIS_DATA).join(format!("wrangler.{tier}.json")));
    tiers::write(&edge, &configs.edge)?;
    tiers::write(&home, &configs.home)?;
    let home_port = port.checked_add(1).ok_or_else(|| Failure::new("no port is left", "choose a lower --port"))?;
    check_port_is_free(home_port)?;
    let url = format!("http://127.0.0.1:{home_port}");
    let mut home = WranglerDev::start_with(home_port, &home)?;
    home.wait_until_ready(&url).await?;
    Ok((WranglerDev::start_with(port, &edge)?, (home, url)))
}

/// Keeps `visitors` walking through the demo shop. Never ends.
async fn walk(shop: Option<&SampleShop<'_>>, visitors: u8) {
    match shop {
        Some(shop) => shop.keep_walking(visitors, WALKING_PAUSE).await,
        None => std::future::pending().await,
    }
}

/// Prints the output of the home tier until it ends.
async fn print_output(home: Option<WranglerDev>) -> Failure {
    match home {
        Some(mut home) => home.print_output().await,
        None => std::future::pending().await,
    }
}

/// `overrides` are the variables that override .dev.vars and wrangler.toml.
fn addresses(port: u16, origin: Option<String>, overrides: &Variables) -> Result<Addresses, Failure> {
    let file = path::absolute(settings::SECRETS).map_err(|cause| Failure::file(settings::SECRETS, &cause))?;
    let key_file = (!overrides.contains_key("SERVICE_KEY")).then_some(file);
    Ok(Addresses { port, origin, key_file })
}

/// `None` if a running Redis is given.
async fn server_binary(redis_url: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    if redis_url.is_some() { Ok(None) } else { redis::server_binary().await.map(Some) }
}

/// Starts a Redis server unless the URL of a running one is given. Returns the server and its URL.
async fn start_server(
    given: Option<String>,
    binary: Option<PathBuf>,
    data: &Path,
) -> Result<(Option<Server>, String), Failure> {
    if let Some(url) = given {
        return Ok((None, url));
    }
    // Without a URL, `server_binary` returned a binary.
    let Some(binary) = binary else { return Err(Failure::new("no Redis server was selected", "")) };
    run_step("redis server", async |step| {
        let started = redis_data::start(data, &binary)?;
        started.notes.iter().for_each(|note| step.note(note));
        let url = started.server.url();
        Ok(Done { summary: format!("{url}, data in {}", data.display()), value: (Some(started.server), url) })
    })
    .await
}

async fn start_gateway(redis_url: &str, token: String) -> Result<Gateway, Failure> {
    run_step("redis over REST", async |_| {
        let remedy = "check that the Redis server runs and that its URL is correct";
        let gateway = Gateway::start(Options::new(redis_url, token)).await;
        let gateway = gateway.map_err(|cause| Failure::new(cause.to_string(), remedy))?;
        Ok(Done { summary: gateway.url(), value: gateway })
    })
    .await
}

fn check_port_is_free(port: u16) -> Result<(), Failure> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(()),
        Err(cause) => {
            let other = port.checked_add(1).unwrap_or(8787);
            let remedy =
                format!("stop the program that uses it, or choose another port: cargo xtask dev --port {other}");
            Err(Failure::new(format!("port {port}: {cause}"), remedy))
        }
    }
}

/// Keeps a second `dev` from writing to the same Redis files and the same D1 database.
fn lock_instance() -> Result<FileLock, Failure> {
    file_lock::try_lock(LOCK)?
        .ok_or_else(|| Failure::new("another cargo xtask dev runs in this directory", "stop the other one first"))
}
