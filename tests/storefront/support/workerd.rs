//! The built Worker in workerd, started by `miniflare.mjs`. All tests share one Node process, because its start takes
//! longer than that of a Worker. The Node process ends when its standard input closes, so at the latest with this
//! process.

use std::{
    collections::HashMap,
    env,
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    process::{ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::logs::Lines;

/// A running Worker. It ends when dropped.
pub struct Workerd {
    /// The address of each isolate.
    pub urls: Vec<String>,
    id: u64,
    lines: Lines,
}

impl Workerd {
    /// Starts a Worker with these variables and secrets. The error is the reason why it did not start. `limited`: with
    /// the rate limits of `wrangler.toml`. The `isolates` share the cache of their location.
    pub async fn start(variables: &[(String, String)], limited: bool, isolates: usize) -> Result<Self, String> {
        Self::start_with(|id| options(id, variables, limited, isolates)).await
    }

    /// Starts `isolates` isolates of an edge tier, and a home tier. The last two URLs are the home tier and its entry
    /// point for the edge tier.
    pub async fn start_tiers(
        edge: &[(String, String)],
        home: &[(String, String)],
        isolates: usize,
        limited: bool,
    ) -> Result<Self, String> {
        Self::start_with(|id| {
            let mut of_edge = options(id, edge, limited, isolates);
            let of_home = options(id, home, limited, 1);
            of_edge["home"] = of_home["vars"].clone();
            of_edge["migrations"] = of_home["migrations"].clone();
            of_edge
        })
        .await
    }

    async fn start_with(options: impl FnOnce(u64) -> Value) -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (started, start) = oneshot::channel();
        let mut workerd = Self { urls: Vec::new(), id, lines: Lines::default() };
        NODE.watched().insert(id, Watched { started: Some(started), lines: workerd.lines.clone() });
        NODE.say(&options(id)).map_err(|error| format!("miniflare.mjs does not listen: {error}"))?;
        match start.await {
            Ok(Ok(urls)) => {
                workerd.urls = urls;
                Ok(workerd)
            }
            Ok(Err(error)) => Err(format!("{error}\n{}", workerd.logs().join("\n"))),
            Err(_) => Err("miniflare.mjs ended; what it wrote stands above".to_owned()),
        }
    }

    /// Ends the Worker. Miniflare uses SIGKILL.
    pub fn kill(&self) {
        NODE.say(&json!({"id": self.id, "stop": true})).expect("miniflare.mjs listens");
    }

    pub fn logs(&self) -> Vec<String> {
        self.lines.all()
    }
}

impl Drop for Workerd {
    fn drop(&mut self) {
        NODE.watched().remove(&self.id);
        // Without Node, the Worker has ended, too.
        let _ = NODE.say(&json!({"id": self.id, "stop": true}));
    }
}

/// The Node process of all tests.
static NODE: LazyLock<Node> = LazyLock::new(Node::start);

struct Node {
    stdin: Mutex<ChildStdin>,
    watched: Mutex<HashMap<u64, Watched>>,
}

/// A Worker that this process listens to.
struct Watched {
    /// Taken by the message that the Worker has started or failed.
    started: Option<oneshot::Sender<Result<Vec<String>, String>>>,
    lines: Lines,
}

impl Node {
    fn start() -> Self {
        let script = "tests/storefront/support/miniflare.mjs";
        let node = env::var_os("EDGEFRONT_NODE").unwrap_or_else(|| "node".into());
        let mut node = Command::new(node)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts: run `cargo xtask test`, which brings it");
        let (stdin, stdout) = (node.stdin.take().expect("piped"), node.stdout.take().expect("piped"));
        thread::spawn(move || {
            listen(stdout);
            // Reaps the process. Its status does not matter.
            let _ = node.wait();
            // Drops the senders, so that every test that waits for a Worker fails now.
            NODE.watched().clear();
        });
        Self { stdin: Mutex::new(stdin), watched: Mutex::default() }
    }

    fn say(&self, message: &Value) -> io::Result<()> {
        writeln!(self.stdin.lock().unwrap_or_else(PoisonError::into_inner), "{message}")
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<u64, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delivers the messages of Node until it ends.
fn listen(stdout: ChildStdout) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("miniflare.mjs says {line}"));
        let mut watched = NODE.watched();
        // A stopped Worker may have sent its last lines.
        let Some(worker) = message["id"].as_u64().and_then(|id| watched.get_mut(&id)) else { continue };
        if let Some(line) = message["log"].as_str() {
            worker.lines.push(line.to_owned());
        }
        let outcome = match (message["urls"].as_array(), message["error"].as_str()) {
            (Some(urls), _) => Ok(urls.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            (_, Some(error)) => Err(error.to_owned()),
            _ => continue,
        };
        // The test may have ended.
        worker.started.take().map(|started| started.send(outcome));
    }
}

fn options(id: u64, variables: &[(String, String)], limited: bool, isolates: usize) -> Value {
    let bundle = env::var_os("EDGEFRONT_BUNDLE").map(PathBuf::from);
    let bundle = bundle
        .expect("EDGEFRONT_BUNDLE is not set: run `cargo xtask test`, which builds the Worker and says where it is");
    let is_set = |name: &str| variables.iter().any(|(other, value)| other == name && !value.is_empty());
    let mut options = json!({
        "id": id,
        "bundle": bundle,
        "limits": limited,
        "isolates": isolates,
        "vars": variables.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect::<Map<_, Value>>(),
    });
    if !is_set("ORIGIN_URL") || is_set("ROWS_TABLE") {
        options["migrations"] = "migrations".into();
    }
    options
}
