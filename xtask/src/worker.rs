//! The Worker's bundle in build/: worker-build with the pinned tools, only when something it is made of has changed.

use std::path::PathBuf;

use tokio::{process::Command, try_join};

use crate::{
    assets,
    failure::Failure,
    npm,
    stamp::Stamp,
    steps::{self, step},
    tools::{self, Tools},
};

/// All that the bundle is made of. package-lock.json and Cargo.lock pin the tools.
const SOURCES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "package-lock.json",
    "rust-toolchain.toml",
    "askama.toml",
    "src",
    "templates",
    "assets",
];

/// `cargo xtask build`: all that the bundle needs, and the bundle.
///
/// # Errors
/// When a tool can not be installed, or the crate does not compile.
pub async fn build_alone() -> Result<(), Failure> {
    let (tools, ()) = try_join!(tools::install(), npm::install_if_missing())?;
    build(&tools).await
}

/// Builds the bundle.
///
/// # Errors
/// When the crate does not compile; the compiler's own words are printed.
pub async fn build(tools: &Tools) -> Result<(), Failure> {
    compile(tools).await?;
    // Behind it: worker-build empties the directory that both write to.
    assets::build().await
}

async fn compile(tools: &Tools) -> Result<(), Failure> {
    step("worker", async |step| {
        let stamp = Stamp::new("build/.stamp", &SOURCES)?;
        if stamp.is_current() {
            return Ok(steps::done("up to date"));
        }
        step.note("compiled for release, a minute or two at the first time");
        let mut build = Command::new(&tools.worker_build);
        build
            .arg("--release")
            .env("PATH", npm::path()?)
            .env("WASM_BINDGEN_BIN", &tools.wasm_bindgen)
            .env("WASM_OPT_BIN", npm::program("wasm-opt")?)
            .env("ESBUILD_BIN", npm::program("esbuild")?);
        if let Err(ended) = step.try_run(build).await? {
            eprintln!("{}", ended.output.trim_end());
            return Err(step.failure(&ended, "mend what the compiler names above"));
        }
        stamp.set()?;
        Ok(steps::done("built"))
    })
    .await
}

/// The absolute path of the bundle's directory.
///
/// # Errors
/// When the working directory is gone.
pub fn bundle() -> Result<PathBuf, Failure> {
    std::path::absolute("build").map_err(|cause| Failure::file("build", &cause))
}
