//! `edgefront-gateway`: Upstash's REST protocol for a Redis or Valkey of your own. It serves until SIGINT or SIGTERM.

use std::{fmt, io, net::SocketAddr, process::ExitCode, str::FromStr, time::Duration};

use clap::Parser;
use edgefront_gateway::{ConnectionLimits, Fault, FaultScope, Gateway, Options, RegionOptions, StreamLimits};
use tokio::runtime::Builder;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};

const LIMITS: ConnectionLimits = ConnectionLimits::DEFAULT;
const STREAMS: StreamLimits = StreamLimits::DEFAULT;
/// Time for requests in progress after a signal.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

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
    /// Time for Redis to answer: connect, send and reply
    #[arg(long, value_name = "SECONDS", default_value_t = Seconds(Options::REDIS_TIMEOUT))]
    redis_timeout: Seconds,
    /// Time for the head of the next request to arrive; limits idle connections too
    #[arg(long, value_name = "SECONDS", default_value_t = Seconds(LIMITS.head_timeout))]
    head_timeout: Seconds,
    /// Time for a body to arrive, and for a client to take the next part of a response
    #[arg(long, value_name = "SECONDS", default_value_t = Seconds(LIMITS.body_timeout))]
    body_timeout: Seconds,
    /// Connections at the same time; the limit for open files may lower it
    #[arg(long, value_name = "N", default_value_t = LIMITS.max_connections, value_parser = at_least_one)]
    max_connections: usize,
    /// Connections of one address; behind a proxy, all come from one
    #[arg(long, value_name = "N", default_value_t = LIMITS.max_connections_per_address, value_parser = at_least_one)]
    max_per_address: usize,
    /// Streams (SUBSCRIBE, PSUBSCRIBE, MONITOR) at the same time; the limit for open files may lower it
    #[arg(long, value_name = "N", default_value_t = STREAMS.max_streams)]
    max_streams: usize,
    /// Streams of one address; behind a proxy, all come from one
    #[arg(long, value_name = "N", default_value_t = STREAMS.max_streams_per_address)]
    max_streams_per_address: usize,
    /// Bytes of events that may wait for a client; a stream over it ends
    #[arg(long, value_name = "BYTES", default_value_t = STREAMS.max_buffered_bytes, value_parser = at_least_one)]
    stream_buffer: usize,
    /// A stream without events for this long gets a comment, so that proxies keep it open
    #[arg(long, value_name = "SECONDS", default_value_t = Seconds(STREAMS.heartbeat))]
    stream_heartbeat: Seconds,
    /// The primary of a database with read replicas; --redis-url is then the replica near this gateway, or the same
    #[arg(long, value_name = "URL", env = "REDIS_PRIMARY_URL", hide_env_values = true)]
    primary: Option<String>,
    /// Round trip to the primary, to test a client: requests that the replica cannot answer take so much longer
    #[arg(long, value_name = "SECONDS", requires = "primary")]
    latency: Option<Seconds>,
    /// Make --redis-url a replica of --primary that is this far behind, to test a client
    #[arg(long, value_name = "SECONDS", requires = "primary")]
    lag: Option<Seconds>,
    /// Longest wait of a read for the writes in its sync token; then the primary answers
    #[arg(long, value_name = "SECONDS", default_value_t = Seconds(RegionOptions::SYNC_WAIT))]
    sync_wait: Seconds,
    /// Commands per second, like the limit of a plan; a request over it gets 429
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_commands_per_second: Option<u32>,
    /// Threads; half of the cores by default, because clients and Redis need the others
    #[arg(long, value_name = "N", default_value_t = default_threads(), hide_default_value = true, value_parser = at_least_one)]
    threads: usize,
    /// Inject a fault, to test a client; --help lists the names
    #[arg(long, value_name = "NAME", long_help = fault_help())]
    fault: Option<Fault>,
    /// Every Nth request meets the fault
    #[arg(long, value_name = "N", default_value_t = 1, requires = "fault", value_parser = clap::value_parser!(u32).range(1..))]
    fault_every: u32,
}

/// A time in seconds, with or without a fraction.
#[derive(Clone, Copy)]
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}", self.0.as_secs_f64())
    }
}

impl FromStr for Seconds {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.filter(|time| !time.is_zero()).map(Self).ok_or("not a number of seconds above 0")
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "not a number above 0".to_owned())
}

/// On two cores, one thread takes 20 % less CPU time for a request than two, which wake each other.
fn default_threads() -> usize {
    (std::thread::available_parallelism().map_or(1, usize::from) / 2).max(1)
}

fn fault_help() -> String {
    let names = Fault::NAMES.map(|(name, does)| format!("\n  {name:<16} {does}"));
    format!("Inject a fault, to test a client:\n{}", names.concat())
}

/// Returns a future that is ready at the first SIGINT or SIGTERM. From the call on, the signals do not end the program.
///
/// # Errors
/// When the system refuses the handlers.
#[cfg(unix)]
fn signals() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Returns a future that is ready at Ctrl-C.
#[cfg(not(unix))]
fn signals() -> io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut builder = match args.threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    match builder.worker_threads(args.threads).enable_all().build() {
        Ok(runtime) => runtime.block_on(serve(args)),
        Err(error) => {
            eprintln!("edgefront-gateway: cannot start threads: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: Args) -> ExitCode {
    let stopped = match signals() {
        Ok(stopped) => stopped,
        Err(error) => {
            eprintln!("edgefront-gateway: cannot handle signals: {error}");
            return ExitCode::FAILURE;
        }
    };
    let region = args.primary.map(|primary_url| RegionOptions {
        primary_url,
        latency: args.latency.map_or(Duration::ZERO, |latency| latency.0),
        lag: args.lag.map(|lag| lag.0),
        sync_wait: args.sync_wait.0,
    });
    let options = Options {
        region,
        max_commands_per_second: args.max_commands_per_second,
        read_only_token: args.read_only_token,
        listen: args.listen,
        redis_timeout: args.redis_timeout.0,
        limits: ConnectionLimits {
            head_timeout: args.head_timeout.0,
            body_timeout: args.body_timeout.0,
            max_connections: args.max_connections,
            max_connections_per_address: args.max_per_address,
        },
        streams: StreamLimits {
            max_streams: args.max_streams,
            max_streams_per_address: args.max_streams_per_address,
            max_buffered_bytes: args.stream_buffer,
            heartbeat: args.stream_heartbeat.0,
        },
        ..Options::new(args.redis_url, args.token)
    };
    match Gateway::start(options).await {
        Ok(gateway) => {
            if let Some(fault) = args.fault {
                gateway.set_fault_for(fault, FaultScope::Every(args.fault_every));
            }
            println!("{} in front of {}", gateway.url(), gateway.server());
            stopped.await;
            gateway.shutdown(SHUTDOWN_PATIENCE).await;
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("edgefront-gateway: {error}");
            ExitCode::FAILURE
        }
    }
}
