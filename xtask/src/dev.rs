//! `cargo xtask dev`: the shop on this machine. Every part is owned by one future; dropping it, at Ctrl-C or after an error, ends every process.

use std::{
    fs::{self, File, TryLockError},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    time::Instant,
};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use tokio::try_join;

use crate::{
    crons,
    dev_vars::Vars,
    sale, settings, visitors,
    wrangler::{self, Dev},
};
use xtask::{
    failure::Failure,
    npm, redis,
    steps::{Done, step},
    tools, variables, worker,
};

/// Carts and rankings outlive a restart here.
const DATA: &str = ".cache/dev/redis";

/// The shop on this machine: Redis, its REST gateway, the Worker in workerd, and the crons.
#[derive(clap::Args)]
pub struct Arguments {
    /// The port of the shop on 127.0.0.1.
    #[arg(long, default_value_t = 8787, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// A Redis or Valkey that runs already, redis://host:port/database; also from the environment, as `REDIS_URL`.
    #[arg(long, value_name = "URL")]
    redis_url: Option<String>,
    /// Put this storefront behind edgefront, in place of the demo shop.
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// Override a variable of wrangler.toml or .dev.vars; repeatable.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variables::name_value)]
    vars: Vec<(String, String)>,
}

/// Runs until an error; the caller drops it to end it.
///
/// # Errors
/// When a step fails, or the Worker ends.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    // First what costs nothing: who mistyped a variable should not wait for a compiler.
    let mut overrides = arguments.vars;
    overrides.extend(arguments.origin.map(|url| ("ORIGIN_URL".to_owned(), url)));
    let vars = settings::read(&overrides)?;
    free(arguments.port)?;
    let _only = only_one()?;

    let redis_url = redis::given_url(arguments.redis_url);
    let (binary, tools, ()) = try_join!(binary(redis_url.as_deref()), tools::install(), npm::install())?;
    let ((), ()) = try_join!(wrangler::migrate(), worker::build(&tools))?;

    let (_server, redis_url) = server(redis_url, binary).await?;
    let token = vars.get("UPSTASH_REDIS_REST_TOKEN").cloned().unwrap_or_default();
    let gateway = gateway(&redis_url, token).await?;

    let mut told = Vars::from([("UPSTASH_REDIS_REST_URL".to_owned(), gateway.url())]);
    told.extend(vars.get_key_value(variables::REDIS_TIMEOUT.0).map(|(name, value)| (name.clone(), value.clone())));
    told.extend(overrides);
    free(arguments.port)?;
    let origin = format!("http://127.0.0.1:{}", arguments.port);
    let mut dev = Dev::start(arguments.port, &told)?;
    dev.ready(&origin).await?;
    sale::schedule(&origin, &vars).await?;
    visitors::send(&origin, &vars).await?;
    // Browsers take `Secure` cookies over plain HTTP from localhost only.
    println!(
        "The shop: http://localhost:{} (ready after {:.0} s; Ctrl-C ends it)",
        arguments.port,
        started.elapsed().as_secs_f32()
    );
    tokio::select! {
        ended = dev.follow() => Err(ended),
        () = crons::tick(&origin) => Ok(()),
    }
}

async fn binary(redis_url: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    if redis_url.is_some() { Ok(None) } else { redis::binary().await.map(Some) }
}

/// Starts a server, unless one is given.
async fn server(given: Option<String>, binary: Option<PathBuf>) -> Result<(Option<Server>, String), Failure> {
    if let Some(url) = given {
        return Ok((None, url));
    }
    step("redis server", async |_| {
        fs::create_dir_all(DATA).map_err(|cause| Failure::file(DATA, &cause))?;
        let options =
            ServerOptions { binary, databases: 1, dir: Some(Path::new(DATA).to_owned()), ..ServerOptions::default() };
        let remedy = format!("rm -r {DATA} begins with an empty one; --redis-url takes another");
        let server = Server::start(options).map_err(|cause| Failure::new(cause.to_string(), remedy))?;
        let url = server.url();
        Ok(Done { what: format!("{url}, data in {DATA}"), value: (Some(server), url) })
    })
    .await
}

async fn gateway(redis_url: &str, token: String) -> Result<Gateway, Failure> {
    step("redis over REST", async |_| {
        let gateway = Gateway::start(Options::new(redis_url, token)).await;
        let gateway = gateway.map_err(|cause| Failure::new(cause.to_string(), ""))?;
        Ok(Done { what: gateway.url(), value: gateway })
    })
    .await
}

fn free(port: u16) -> Result<(), Failure> {
    let remedy = || {
        format!(
            "end what listens there, or choose another: cargo xtask dev --port {}",
            port.checked_add(1).unwrap_or(8787)
        )
    };
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(()),
        Err(cause) => Err(Failure::new(format!("port {port}: {cause}"), remedy())),
    }
}

/// Two of us would write to the same Redis files and the same D1. The lock goes with the process, however that ends.
fn only_one() -> Result<File, Failure> {
    let path = ".cache/dev/lock";
    let file = fs::create_dir_all(".cache/dev")
        .and_then(|()| File::create(path))
        .map_err(|cause| Failure::file(path, &cause))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::new("another cargo xtask dev runs in this directory", "end that one first"))
        }
        Err(TryLockError::Error(cause)) => Err(Failure::file(path, &cause)),
    }
}
