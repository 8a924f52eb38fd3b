//! Who is measured: edgefront, what one would write instead, and Workers that do nothing.

use std::path::{Path, PathBuf};

use super::{
    backend::{self, Backend, Visitor},
    worker::{Module, Worker},
    workload::Workload,
};
use edgefront::ports::time::Timestamp;
use xtask::{
    failure::Failure,
    npm,
    steps::{self, step},
    tools::Tools,
    variables::REDIS_TIMEOUT,
};

/// Where all that a run makes lies, its results too.
pub const DIRECTORY: &str = "target/bench";

/// Opens the service's part of edgefront's API.
pub const SERVICE_KEY: &str = "0123456789abcdef0123456789abcdef";

/// What a candidate is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A JavaScript file in `benches/peers`, with Hono and `@upstash/redis`.
    Peer,
    /// Does nothing: the platform's limit.
    Bare,
    /// A bundle of edgefront in this directory.
    Edgefront(PathBuf),
}

/// One who is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub kind: Kind,
}

impl Candidate {
    /// All of them, in the order of tables.
    pub fn all() -> Vec<Self> {
        let candidate = |name: &str, kind| Self { name: name.to_owned(), kind };
        vec![
            candidate("edgefront", Kind::Edgefront("build".into())),
            candidate("eval", Kind::Peer),
            candidate("pipelined", Kind::Peer),
            candidate("book", Kind::Peer),
            candidate("bare-rust", Kind::Bare),
            candidate("bare-js", Kind::Bare),
        ]
    }

    /// Whether it answers this at all.
    pub fn serves(&self, workload: Workload) -> bool {
        self.kind != Kind::Bare || workload.is_bare()
    }

    fn directory(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.name)
    }

    /// Makes what is not there yet. edgefront's own bundle is built before.
    ///
    /// # Errors
    /// When it does not compile.
    pub async fn build(&self, tools: &Tools) -> Result<(), Failure> {
        match (&self.kind, self.name.as_str()) {
            (Kind::Edgefront(_), _) => Ok(()),
            (_, "bare-rust") => {
                step("bare Worker in Rust", async |step| {
                    let directory = format!("{DIRECTORY}/bare-rust");
                    let entry = "benches/bare-rust/entry.js";
                    xtask::worker::bundle_crate(&step, tools, ("edgefront-bare-rust", &[]), entry, &directory).await?;
                    Ok(steps::done("built"))
                })
                .await
            }
            (kind, name) => {
                let file =
                    if *kind == Kind::Peer { format!("benches/peers/{name}.js") } else { "benches/bare.js".to_owned() };
                step(name, async |step| {
                    let mut esbuild = npm::command("esbuild")?;
                    esbuild.args([&file, "--bundle", "--minify", "--format=esm", "--log-level=warning"]);
                    esbuild.args(["--external:cloudflare:workers", "--conditions=workerd,worker,browser"]);
                    esbuild.arg(format!("--outfile={}", self.directory().join("index.js").display()));
                    step.run(esbuild, "mend what esbuild names").await?;
                    Ok(steps::done("bundled"))
                })
                .await
            }
        }
    }

    fn modules(&self) -> Vec<Module> {
        let module = |directory: &Path, name: &str| Module { name: name.to_owned(), file: directory.join(name) };
        let wasm = |directory: &Path| vec![module(directory, "index.js"), module(directory, "index_bg.wasm")];
        match &self.kind {
            Kind::Edgefront(directory) => wasm(directory),
            Kind::Bare if self.name == "bare-rust" => wasm(&self.directory()),
            Kind::Bare | Kind::Peer => vec![module(&self.directory(), "index.js")],
        }
    }

    /// Starts it, with a Redis of its own if it needs one.
    ///
    /// # Errors
    /// When one of the two does not start.
    pub async fn start(self, world: &World<'_>) -> Result<Running, Failure> {
        let mut variables = Vec::new();
        let backend = match self.kind {
            Kind::Bare => None,
            Kind::Peer | Kind::Edgefront(_) => {
                let backend = Backend::start(world.redis, world.visitors, world.now).await?;
                variables = variables_of(&backend.url(), world.origin);
                Some(backend)
            }
        };
        let worker = Worker::start(&self.directory(), &self.modules(), &variables).await?;
        Ok(Running { candidate: self, worker, backend })
    }
}

/// What all candidates share.
pub struct World<'a> {
    /// The server's binary.
    pub redis: &'a Path,
    pub origin: &'a str,
    pub visitors: &'a [Visitor],
    pub now: Timestamp,
}

/// A candidate that can be asked.
pub struct Running {
    pub candidate: Candidate,
    pub worker: Worker,
    /// None for one that touches nothing.
    pub backend: Option<Backend>,
}

/// Of edgefront; the peers read some of them. The rest is at its default.
pub fn variables_of(redis: &str, origin: &str) -> Vec<(String, String)> {
    let rows = format!("{origin}/rows");
    let variables = [
        ("UPSTASH_REDIS_REST_URL", redis),
        ("UPSTASH_REDIS_REST_TOKEN", backend::TOKEN),
        ("SESSION_KEYS", "0123456789abcdef0123456789abcdef"),
        ("SERVICE_KEY", SERVICE_KEY),
        ("ORIGIN_URL", origin),
        ("ROWS_TABLE", ""),
        ("ROWS_URL", &rows),
        // All items of the run are popular enough, also those whose page is asked for once.
        ("PAGE_RANK_LIMIT", "1000000"),
        REDIS_TIMEOUT,
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}
