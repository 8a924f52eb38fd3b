//! What runs: a Valkey that keeps its data, the gateway, an origin, the Worker in raw workerd; and who of them is killed when.

use std::{
    fs, io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{self, Instant};

use super::tally::Tally;
use crate::bench::{
    backend::TOKEN,
    candidate::variables_of,
    origin::Origin,
    worker::{Module, Worker},
};
use xtask::{failure::Failure, variables::REDIS_TIMEOUT};

/// Where all that a run makes lies.
const DIRECTORY: &str = "target/soak";
/// How long Redis is away. With a start of 0.1 s it is there for nine tenths of the time.
const AWAY: Duration = Duration::from_secs(3);
/// From one look at the Worker's memory to the next, and at what is to be killed.
const PULSE: Duration = Duration::from_secs(1);

/// A running shop; ends when dropped.
pub struct Shop {
    server: Server,
    worker: Worker,
    variables: Vec<(String, String)>,
    door: Door,
    _gateway: Gateway,
    _origin: Origin,
}

/// Where visitors come in, and where they tell what happened to them.
#[derive(Clone)]
pub struct Door {
    pub client: Client,
    address: Arc<Mutex<SocketAddr>>,
    tally: Arc<Mutex<Tally>>,
}

impl Door {
    /// The shop's address: another one after each start of the Worker.
    pub fn url(&self) -> String {
        format!("http://{}", lock(&self.address))
    }

    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }
}

/// A visitor who broke down has been counted or not; both are a state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shop {
    /// Starts all of it, with `binary` as Redis.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn open(binary: &Path) -> Result<Self, Failure> {
        let data = Path::new(DIRECTORY).join("redis");
        let failed = |cause: io::Error| Failure::file(&data, &cause);
        match fs::remove_dir_all(&data) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(failed(cause)),
            _ => fs::create_dir_all(&data).map_err(failed)?,
        }
        let options = ServerOptions {
            binary: Some(binary.to_owned()),
            databases: 1,
            dir: Some(std::path::absolute(&data).map_err(failed)?),
            ..ServerOptions::default()
        };
        let told = |cause: &dyn std::fmt::Display| Failure::new(cause.to_string(), "");
        let server = Server::start(options).map_err(|cause| told(&cause))?;
        let gateway = Gateway::start(Options::new(server.url(), TOKEN)).await.map_err(|cause| told(&cause))?;
        let origin = Origin::start().await?;
        let mut variables = variables_of(&gateway.url(), origin.url());
        // As in production: what is slow here is to be given up here.
        variables.retain(|(name, _)| name != REDIS_TIMEOUT.0);
        let worker = start(&variables).await?;
        let door = Door {
            client: Client::new(),
            address: Arc::new(Mutex::new(worker.address)),
            tally: Arc::new(Mutex::new(Tally::new())),
        };
        Ok(Self { server, worker, variables, door, _gateway: gateway, _origin: origin })
    }

    pub fn address(&self) -> SocketAddr {
        self.worker.address
    }

    pub fn door(&self) -> Door {
        self.door.clone()
    }

    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.door.tally()
    }

    /// Kills Redis after each `every`, and the Worker once, after a fifth of `length`: the rest is for its memory to grow if it does.
    /// The last kill leaves time to recover, for that is what must come of it.
    ///
    /// # Errors
    /// When one of them does not start again.
    pub async fn disturb(mut self, length: Duration, every: Duration) -> Result<Self, Failure> {
        let begin = Instant::now();
        let (mut kill_redis, mut kill_worker) = (begin + every / 2, Some(begin + length / 5));
        let mut pulse = time::interval(PULSE);
        while begin.elapsed() < length {
            pulse.tick().await;
            self.door.tally().memory(self.worker.process.resident());
            if kill_worker.is_some_and(|at| at <= Instant::now()) {
                kill_worker = None;
                self.restart_worker().await?;
            }
            if kill_redis <= Instant::now() && begin.elapsed() + 2 * AWAY < length {
                kill_redis += every;
                self.restart_redis().await?;
            }
        }
        Ok(self)
    }

    async fn restart_redis(&mut self) -> Result<(), Failure> {
        self.server.crash().map_err(|cause| Failure::new(format!("Redis can not be killed: {cause}"), ""))?;
        self.door.tally().redis_killed();
        time::sleep(AWAY).await;
        self.server.start_again().map_err(|cause| Failure::new(cause.to_string(), ""))
    }

    async fn restart_worker(&mut self) -> Result<(), Failure> {
        let Some(process) = Pid::from_raw(self.worker.process.0.cast_signed()) else { return Ok(()) };
        kill_process(process, Signal::KILL).map_err(|cause| Failure::new(format!("workerd: {cause}"), ""))?;
        self.door.tally().worker_killed();
        self.worker = start(&self.variables).await?;
        *lock(&self.door.address) = self.worker.address;
        Ok(())
    }
}

async fn start(variables: &[(String, String)]) -> Result<Worker, Failure> {
    let modules =
        ["index.js", "index_bg.wasm"].map(|name| Module { name: name.to_owned(), file: Path::new("build").join(name) });
    Worker::start(&Path::new(DIRECTORY).join("worker"), &modules, variables).await
}
