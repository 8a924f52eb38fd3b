//! The load generator: a closed loop with keep-alive. Each connection sends a request, reads the response to its end,
//! and sends the next request. The generator must use far less CPU than the candidates, and it reports its own CPU
//! time. So it runs on one thread, sends prepared bytes, and parses only as much of a response as its end requires.

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
use xtask::failure::Failure;

use super::{request_stream::RequestStream, response_parser::ResponseParser};
use crate::{process::Process, statistics};

/// The time limit for the last responses after the end of the load.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const LOG_HINT: &str = "see the Worker's log in target/bench";

/// The load on one candidate.
#[derive(Clone)]
pub struct Load {
    pub address: SocketAddr,
    /// The process whose CPU time is measured.
    pub process: Process,
    pub requests: Arc<RequestStream>,
    pub connections: usize,
    /// The time before the measurement, in which connections, caches and the JIT compiler warm up.
    pub warm_up: Duration,
    /// The duration of the measurement.
    pub duration: Duration,
}

/// The result of a load.
#[derive(Debug, Clone, Default)]
pub struct Measurement {
    /// All requests, including those outside the measured time.
    pub sent: u64,
    /// The requests that were completed within the measured time.
    pub completed: u64,
    pub requests_per_second: f64,
    /// Median response time, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the response time, milliseconds.
    pub p99_ms: f64,
    /// CPU time of the Worker's process, microseconds; `None` if the system does not report it.
    pub worker_cpu_us: Option<f64>,
    /// CPU time of the load generator, microseconds.
    pub generator_cpu_us: f64,
}

/// Generates the load on a thread of its own.
///
/// # Errors
/// When the candidate does not answer, or a response is incorrect.
pub async fn run(load: Load) -> Result<Measurement, Failure> {
    let thread = task::spawn_blocking(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|cause| failed(&cause))?;
        LocalSet::new().block_on(&runtime, measure(load))
    });
    thread.await.unwrap_or_else(|_| Err(panicked()))
}

async fn measure(load: Load) -> Result<Measurement, Failure> {
    let mut streams = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        let stream = TcpStream::connect(load.address).await.map_err(|cause| failed(&cause))?;
        stream.set_nodelay(true).map_err(|cause| failed(&cause))?;
        streams.push(stream);
    }
    let begin = Instant::now() + load.warm_up;
    let end = begin + load.duration;
    let recorder = Rc::new(Recorder { begin, end, sent: Cell::new(0), times: RefCell::default() });
    let connections: Vec<_> = streams
        .into_iter()
        .map(|stream| task::spawn_local(drive(stream, load.requests.clone(), recorder.clone())))
        .collect();
    let cpu_times = || (load.process.cpu_time(), own_cpu_time());
    let measured_cpu = async {
        time::sleep_until(begin).await;
        let before = cpu_times();
        time::sleep_until(end).await;
        (before, cpu_times())
    };
    let all = future::join(future::join_all(connections), measured_cpu);
    let Ok((ended, (before, after))) = time::timeout_at(end + RESPONSE_TIMEOUT, all).await else {
        return Err(Failure::new("the candidate does not answer", LOG_HINT));
    };
    for connection in ended {
        connection.unwrap_or_else(|_| Err(panicked()))?;
    }
    let mut times = recorder.times.take();
    times.sort_unstable();
    let completed = times.len() as u64;
    Ok(Measurement {
        sent: recorder.sent.get(),
        completed,
        requests_per_second: statistics::to_f64(completed) / load.duration.as_secs_f64(),
        p50_ms: statistics::quantile(&times, 0.5).as_secs_f64() * 1e3,
        p99_ms: statistics::quantile(&times, 0.99).as_secs_f64() * 1e3,
        worker_cpu_us: before.0.zip(after.0).map(|(before, after)| micros(after.saturating_sub(before))),
        generator_cpu_us: micros(after.1.saturating_sub(before.1)),
    })
}

/// The response times of all connections of one load.
struct Recorder {
    /// The measurement lasts from `begin` to `end`.
    begin: Instant,
    end: Instant,
    sent: Cell<u64>,
    times: RefCell<Vec<Duration>>,
}

/// Drives one connection until the end of the measurement.
async fn drive(mut stream: TcpStream, requests: Arc<RequestStream>, recorder: Rc<Recorder>) -> Result<(), Failure> {
    let (mut request, mut buffer) = (Vec::with_capacity(1024), vec![0; 64 << 10]);
    loop {
        let started = Instant::now();
        if started >= recorder.end {
            return Ok(());
        }
        request.clear();
        requests.write_next(&mut request);
        recorder.sent.set(recorder.sent.get() + 1);
        stream.write_all(&request).await.map_err(|cause| failed(&cause))?;
        let (status, body_bytes) = read_response(&mut stream, &mut buffer).await?;
        if status != 200 || body_bytes < requests.min_body_bytes() {
            let text = String::from_utf8_lossy(&request);
            let request_line = text.lines().next().unwrap_or_default();
            return Err(Failure::new(format!("{request_line}: status {status}, {body_bytes} bytes"), LOG_HINT));
        }
        let now = Instant::now();
        if now >= recorder.begin && now < recorder.end {
            recorder.times.borrow_mut().push(now - started);
        }
    }
}

/// Reads one response to its end. Returns its status and the size of its body in bytes.
async fn read_response(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(u16, usize), Failure> {
    let mut parser = ResponseParser::default();
    let mut filled = 0;
    loop {
        let free = buffer.get_mut(filled..).unwrap_or_default();
        let count = stream.read(free).await.map_err(|cause| failed(&cause))?;
        if count == 0 {
            return Err(Failure::new("the candidate closed a connection", LOG_HINT));
        }
        filled += count;
        let bytes = buffer.get(..filled).unwrap_or_default();
        let used = parser.parse(bytes).map_err(|cause| Failure::new(cause, LOG_HINT))?;
        if let Some(result) = parser.result() {
            return Ok(result);
        }
        buffer.copy_within(used..filled, 0);
        filled -= used;
    }
}

fn failed(cause: &io::Error) -> Failure {
    Failure::new(format!("the load generator: {cause}"), LOG_HINT)
}

fn panicked() -> Failure {
    Failure::new("the load generator panicked", "see its message above")
}

/// The CPU time of this thread, which runs only the load generator.
fn own_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
