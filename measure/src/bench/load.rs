//! The load: connections that each send a request, read its answer to the end and send the next (a closed loop, keep-alive). It writes
//! requests that are put together beforehand and reads no more of an answer than where it ends, on one thread of its own: it must be far
//! cheaper than what it measures, and it says what it costs.

use std::{
    cell::{Cell, RefCell},
    io,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures_util::future;
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime,
    task::{self, LocalSet},
    time::{self, Instant},
};

use super::{answer::Answer, process::Process, statistics, workload::Visits};
use xtask::failure::Failure;

/// What an answer may take, and a candidate that hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// One candidate under one load.
#[derive(Clone)]
pub struct Load {
    pub address: SocketAddr,
    /// Whose CPU time is taken.
    pub process: Process,
    pub visits: Arc<Visits>,
    pub connections: usize,
    /// What is not measured, first: connections, caches and the compiler of the runtime get warm.
    pub warm_up: Duration,
    pub length: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// All requests, those of the warm-up and the last ones, too.
    pub sent: u64,
    /// Those that were answered in the time measured.
    pub answered: u64,
    /// A second.
    pub rate: f64,
    /// Milliseconds.
    pub p50: f64,
    pub p99: f64,
    /// CPU of the Worker's process in the time measured, microseconds; None where the system does not tell.
    pub cpu: Option<f64>,
    /// CPU of the load itself, microseconds.
    pub own_cpu: f64,
}

/// Runs the load.
///
/// # Errors
/// When the candidate does not answer, or not as it should.
pub async fn run(load: Load) -> Result<Measured, Failure> {
    let thread = task::spawn_blocking(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|cause| failed(&cause))?;
        LocalSet::new().block_on(&runtime, drive(load))
    });
    thread.await.unwrap_or_else(|_| Err(Failure::new("the load broke down", "")))
}

async fn drive(load: Load) -> Result<Measured, Failure> {
    let mut connections = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        let stream = TcpStream::connect(load.address).await.map_err(|cause| failed(&cause))?;
        stream.set_nodelay(true).map_err(|cause| failed(&cause))?;
        connections.push(stream);
    }
    let begin = Instant::now() + load.warm_up;
    let end = begin + load.length;
    let (sent, times) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let connections: Vec<_> = connections
        .into_iter()
        .map(|stream| {
            let (visits, sent, times) = (load.visits.clone(), sent.clone(), times.clone());
            task::spawn_local(async move { connection(stream, &visits, &sent, &times, begin, end).await })
        })
        .collect();
    let clocks = || (load.process.cpu(), own_cpu());
    let watch = async {
        time::sleep_until(begin).await;
        let before = clocks();
        time::sleep_until(end).await;
        (before, clocks())
    };
    let all = future::join(future::join_all(connections), watch);
    let Ok((ended, ((cpu_before, own_before), (cpu_after, own_after)))) = time::timeout_at(end + PATIENCE, all).await
    else {
        return Err(Failure::new("the candidate does not answer", "its log is in target/bench"));
    };
    for connection in ended {
        connection.unwrap_or_else(|_| Err(Failure::new("the load broke down", "")))?;
    }
    let mut times = times.take();
    times.sort_unstable();
    Ok(Measured {
        sent: sent.get(),
        answered: times.len() as u64,
        rate: statistics::number(times.len()) / load.length.as_secs_f64(),
        p50: statistics::quantile(&times, 0.5).as_secs_f64() * 1e3,
        p99: statistics::quantile(&times, 0.99).as_secs_f64() * 1e3,
        cpu: cpu_before.zip(cpu_after).map(|(before, after)| micros(after.saturating_sub(before))),
        own_cpu: micros(own_after.saturating_sub(own_before)),
    })
}

async fn connection(
    mut stream: TcpStream,
    visits: &Visits,
    sent: &Cell<u64>,
    times: &RefCell<Vec<Duration>>,
    begin: Instant,
    end: Instant,
) -> Result<(), Failure> {
    let (mut request, mut buffer) = (Vec::with_capacity(1024), vec![0; 64 << 10]);
    loop {
        let started = Instant::now();
        if started >= end {
            return Ok(());
        }
        request.clear();
        visits.write_next(&mut request);
        sent.set(sent.get() + 1);
        stream.write_all(&request).await.map_err(|cause| failed(&cause))?;
        let (status, length) = read(&mut stream, &mut buffer).await?;
        if status != 200 || length < visits.least_bytes() {
            let asked = String::from_utf8_lossy(&request);
            let asked = asked.lines().next().unwrap_or_default();
            return Err(Failure::new(
                format!("{asked}: status {status}, {length} bytes"),
                "the Worker's log is in target/bench",
            ));
        }
        let now = Instant::now();
        if now >= begin && now < end {
            times.borrow_mut().push(now - started);
        }
    }
}

/// Reads one answer to its end: its status and the length of its body.
async fn read(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(u16, usize), Failure> {
    let mut answer = Answer::default();
    let mut filled = 0;
    loop {
        let room = buffer.get_mut(filled..).unwrap_or_default();
        let count = stream.read(room).await.map_err(|cause| failed(&cause))?;
        if count == 0 {
            return Err(Failure::new("the candidate closed a connection", "its log is in target/bench"));
        }
        filled += count;
        let used = answer.read(buffer.get(..filled).unwrap_or_default()).map_err(|cause| Failure::new(cause, ""))?;
        if let Some(end) = answer.end() {
            return Ok(end);
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
    }
}

fn failed(cause: &io::Error) -> Failure {
    Failure::new(format!("the load: {cause}"), "the Worker's log is in target/bench")
}

/// Of this thread, which does nothing else.
fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
