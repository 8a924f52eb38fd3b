//! The shop under test: a persistent Valkey, the gateway, an origin, and the Worker in raw workerd. It kills Redis and
//! the Worker according to a schedule.

use std::{
    fs, io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{self, Instant};
use xtask::{failure::Failure, variables::Variables};

use super::tally::Tally;
use crate::{
    origin::Origin,
    rest_redis::RestRedis,
    worker_variables::worker_variables,
    workerd::{RunningWorker, WorkerModule},
};

/// The directory for all files of a run.
const DIRECTORY: &str = "target/soak";
/// The time between a kill of Redis and its restart. Redis then starts within 0.1 s, so it is up nine tenths of the
/// time.
const REDIS_DOWNTIME: Duration = Duration::from_secs(3);
/// The interval between two samples of the Worker's memory, and between two checks of the schedule.
const TICK: Duration = Duration::from_secs(1);

/// A running shop. Dropping it ends all its processes.
pub struct Shop {
    redis: RestRedis,
    worker: RunningWorker,
    variables: Variables,
    handle: ShopHandle,
    _origin: Origin,
}

/// The address of the shop, an HTTP client, and the tally of all events.
#[derive(Clone)]
pub struct ShopHandle {
    pub http: Client,
    address: Arc<Mutex<SocketAddr>>,
    tally: Arc<Mutex<Tally>>,
}

impl ShopHandle {
    /// The address of the Worker. It changes when the Worker restarts.
    pub fn url(&self) -> String {
        format!("http://{}", lock(&self.address))
    }

    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }
}

/// A panic of a visitor leaves both values valid.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shop {
    /// Starts all parts, with the Redis server at `binary`.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(binary: &Path) -> Result<Self, Failure> {
        let data = Path::new(DIRECTORY).join("redis");
        let file_error = |cause: io::Error| Failure::file(&data, &cause);
        match fs::remove_dir_all(&data) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(file_error(cause)),
            _ => fs::create_dir_all(&data).map_err(file_error)?,
        }
        let redis = RestRedis::start(binary, Some(std::path::absolute(&data).map_err(file_error)?)).await?;
        let origin = Origin::start().await?;
        // `REDIS_TIMEOUT_MS` keeps its default, as in production.
        let variables = worker_variables(&redis.gateway.url(), origin.url());
        let worker = start_worker(&variables).await?;
        let handle = ShopHandle {
            http: Client::new(),
            address: Arc::new(Mutex::new(worker.address)),
            tally: Arc::new(Mutex::new(Tally::new())),
        };
        Ok(Self { redis, worker, variables, handle, _origin: origin })
    }

    pub fn address(&self) -> SocketAddr {
        self.worker.address
    }

    pub fn handle(&self) -> ShopHandle {
        self.handle.clone()
    }

    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.handle.tally()
    }

    /// Kills Redis every `period` and the Worker once, after a fifth of `duration`. The rest of the time shows whether
    /// the memory of the Worker grows. The last kill leaves time for the recovery.
    ///
    /// # Errors
    /// When Redis or the Worker does not start again.
    pub async fn inject_faults(mut self, duration: Duration, period: Duration) -> Result<Self, Failure> {
        let begin = Instant::now();
        let (mut next_redis_kill, mut worker_kill) = (begin + period / 2, Some(begin + duration / 5));
        let mut tick = time::interval(TICK);
        while begin.elapsed() < duration {
            tick.tick().await;
            self.handle.tally().memory(self.worker.process.resident_megabytes());
            if worker_kill.is_some_and(|at| at <= Instant::now()) {
                worker_kill = None;
                self.restart_worker().await?;
            }
            if next_redis_kill <= Instant::now() && begin.elapsed() + 2 * REDIS_DOWNTIME < duration {
                next_redis_kill += period;
                self.restart_redis().await?;
            }
        }
        Ok(self)
    }

    async fn restart_redis(&mut self) -> Result<(), Failure> {
        self.redis.server.crash().map_err(|cause| Failure::new(format!("cannot kill Redis: {cause}"), ""))?;
        self.handle.tally().redis_killed();
        time::sleep(REDIS_DOWNTIME).await;
        self.redis.server.start_again().map_err(|cause| Failure::new(cause.to_string(), ""))
    }

    async fn restart_worker(&mut self) -> Result<(), Failure> {
        let Some(process) = Pid::from_raw(self.worker.process.id.cast_signed()) else { return Ok(()) };
        kill_process(process, Signal::KILL)
            .map_err(|cause| Failure::new(format!("cannot kill workerd: {cause}"), ""))?;
        self.handle.tally().worker_killed();
        self.worker = start_worker(&self.variables).await?;
        *lock(&self.handle.address) = self.worker.address;
        Ok(())
    }
}

async fn start_worker(variables: &Variables) -> Result<RunningWorker, Failure> {
    let modules = WorkerModule::wasm_bundle(Path::new("build"));
    RunningWorker::start(&Path::new(DIRECTORY).join("worker"), &modules, variables).await
}
