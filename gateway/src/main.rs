//! `edgefront-gateway`: Upstash's REST protocol for a Redis or Valkey of your own. It serves until it is interrupted.

use std::{net::SocketAddr, process::ExitCode};

use clap::Parser;
use edgefront_gateway::{Fault, FaultScope, Gateway, Options};

/// The Upstash REST protocol in front of a Redis or Valkey.
///
/// Point @upstash/redis, or edgefront, at the address that it prints, with the token. It speaks plain HTTP: beyond one
/// machine, put TLS in front of it.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// redis://[user:password@]host[:port][/database]; redis://host:port?cluster for a Redis Cluster
    #[arg(
        long,
        value_name = "URL",
        env = "REDIS_URL",
        hide_env_values = true,
        default_value = "redis://127.0.0.1:6379/0"
    )]
    redis_url: String,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8079")]
    listen: SocketAddr,
    /// The token with full access
    #[arg(long, env = "UPSTASH_REDIS_REST_TOKEN", hide_env_values = true)]
    token: String,
    /// A token that may only read
    #[arg(long, value_name = "TOKEN", env = "UPSTASH_REDIS_REST_READONLY_TOKEN", hide_env_values = true)]
    read_only_token: Option<String>,
    /// Inject a fault, to test a client; --help lists the names
    #[arg(long, value_name = "NAME", long_help = fault_help())]
    fault: Option<Fault>,
    /// Every Nth request meets the fault
    #[arg(long, value_name = "N", default_value_t = 1, requires = "fault", value_parser = clap::value_parser!(u32).range(1..))]
    fault_every: u32,
}

fn fault_help() -> String {
    let names = Fault::NAMES.map(|(name, does)| format!("\n  {name:<16} {does}"));
    format!("Inject a fault, to test a client:\n{}", names.concat())
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let options = Options {
        read_only_token: args.read_only_token,
        listen: args.listen,
        ..Options::new(args.redis_url, args.token)
    };
    match Gateway::start(options).await {
        Ok(gateway) => {
            if let Some(fault) = args.fault {
                gateway.set_fault_for(fault, FaultScope::Every(args.fault_every));
            }
            println!("{} in front of {}", gateway.url(), gateway.server());
            // Without a signal handler there is no way to end it gracefully, and it has nothing to save.
            let _ = tokio::signal::ctrl_c().await;
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("edgefront-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}
