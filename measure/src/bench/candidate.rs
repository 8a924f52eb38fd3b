//! The measured candidates: edgefront, the alternatives, and Workers that do nothing.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use xtask::{
    bundle::Bundle,
    failure::Failure,
    npm,
    steps::{self, run_step},
    tools::Tools,
    variables::{LOCAL_REDIS_TIMEOUT, Variables},
};

use super::{backend::Backend, visitor_session::VisitorSession, workload::Workload};
use crate::{
    worker_variables::{owned, worker_variables},
    workerd::{RunningWorker, WorkerModule},
};

/// The directory for all files of a run, including its results.
pub const DIRECTORY: &str = "target/bench";

/// The program that the Worker of a candidate runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateKind {
    /// A JavaScript file in `benches/peers`, with Hono and `@upstash/redis`.
    Peer,
    /// A Worker that does nothing. It shows the limit of the platform.
    Bare,
    /// A bundle of edgefront in this directory.
    Edgefront(PathBuf),
}

/// A measured program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    pub kind: CandidateKind,
}

impl Candidate {
    /// All candidates, in the order of the tables.
    pub fn all() -> Vec<Self> {
        let candidate = |name: &str, kind| Self { name: name.to_owned(), kind };
        vec![
            candidate("edgefront", CandidateKind::Edgefront("build".into())),
            candidate("eval", CandidateKind::Peer),
            candidate("pipelined", CandidateKind::Peer),
            candidate("book", CandidateKind::Peer),
            candidate("bare-rust", CandidateKind::Bare),
            candidate("bare-js", CandidateKind::Bare),
        ]
    }

    pub fn is_edgefront(&self) -> bool {
        matches!(self.kind, CandidateKind::Edgefront(_))
    }

    /// Returns whether this candidate is measured under the workload.
    pub fn serves(&self, workload: Workload) -> bool {
        match self.kind {
            CandidateKind::Edgefront(_) => true,
            CandidateKind::Peer => workload.includes_peers(),
            CandidateKind::Bare => workload.includes_bare_workers(),
        }
    }

    fn directory(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.name)
    }

    /// Builds the modules of this candidate, except for edgefront's own bundle.
    ///
    /// # Errors
    /// When they do not compile.
    pub async fn build(&self, tools: &Tools) -> Result<(), Failure> {
        let name = self.name.as_str();
        match &self.kind {
            CandidateKind::Edgefront(_) => Ok(()),
            CandidateKind::Bare if name == "bare-rust" => build_bare_rust(tools).await,
            CandidateKind::Bare => self.bundle_script("benches/bare.js").await,
            CandidateKind::Peer => self.bundle_script(&format!("benches/peers/{name}.js")).await,
        }
    }

    async fn bundle_script(&self, file: &str) -> Result<(), Failure> {
        run_step(&self.name, async |step| {
            let mut esbuild = npm::command("esbuild")?;
            esbuild.args([file, "--bundle", "--minify", "--format=esm", "--log-level=warning"]);
            esbuild.args(["--external:cloudflare:workers", "--conditions=workerd,worker,browser"]);
            esbuild.arg(format!("--outfile={}", self.directory().join("index.js").display()));
            step.run_program(esbuild, "fix the file that esbuild names").await?;
            Ok(steps::done("bundled"))
        })
        .await
    }

    fn modules(&self) -> Vec<WorkerModule> {
        match &self.kind {
            CandidateKind::Edgefront(directory) => WorkerModule::wasm_bundle(directory),
            CandidateKind::Bare if self.name == "bare-rust" => WorkerModule::wasm_bundle(&self.directory()),
            CandidateKind::Bare | CandidateKind::Peer => {
                vec![WorkerModule::in_directory(&self.directory(), "index.js")]
            }
        }
    }

    /// Starts the Worker, and a backend if the candidate uses one.
    ///
    /// # Errors
    /// When one of the two does not start.
    pub async fn start(self, environment: &Environment<'_>) -> Result<RunningCandidate, Failure> {
        let mut variables = Variables::new();
        let backend = match self.kind {
            CandidateKind::Bare => None,
            CandidateKind::Peer | CandidateKind::Edgefront(_) => {
                let backend = Backend::start(environment.redis_binary, environment.sessions, environment.now).await?;
                variables = worker_variables(&backend.url(), environment.origin_url);
                variables.extend(owned([LOCAL_REDIS_TIMEOUT]));
                Some(backend)
            }
        };
        let worker = RunningWorker::start(&self.directory(), &self.modules(), &variables).await?;
        Ok(RunningCandidate { candidate: self, worker, backend })
    }
}

async fn build_bare_rust(tools: &Tools) -> Result<(), Failure> {
    run_step("bare-rust", async |step| {
        let bundle = Bundle {
            package: "edgefront-bare-rust",
            cargo_options: &[],
            entry: "benches/bare-rust/entry.js",
            directory: &format!("{DIRECTORY}/bare-rust"),
        };
        bundle.build(&step, tools).await?;
        Ok(steps::done("built"))
    })
    .await
}

/// The parts that all candidates share.
pub struct Environment<'a> {
    pub redis_binary: &'a Path,
    pub origin_url: &'a str,
    pub sessions: &'a [VisitorSession],
    /// The time since the Unix epoch.
    pub now: Duration,
}

/// A candidate that answers requests.
pub struct RunningCandidate {
    pub candidate: Candidate,
    pub worker: RunningWorker,
    /// `None` for a Worker that does nothing.
    pub backend: Option<Backend>,
}
