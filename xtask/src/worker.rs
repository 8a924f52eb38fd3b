//! The Worker in build/, rebuilt only after a source has changed.

use std::{fs, path, path::PathBuf};

use crate::{
    assets,
    bundle::Bundle,
    failure::Failure,
    file_lock,
    stamp::{BuildResult, Stamp},
    steps::{self, run_step},
    tools::Tools,
};

/// The sources of the Worker. package-lock.json and Cargo.lock pin the tools.
const SOURCES: [&str; 11] = [
    "Cargo.toml",
    "Cargo.lock",
    "package-lock.json",
    "rust-toolchain.toml",
    "askama.toml",
    "src",
    "templates",
    "assets",
    "integrations/javascript/client/src",
    "presets",
    "crates/upstash-rest",
];

/// The directory that wrangler.toml names.
const DIRECTORY: &str = "build";
const RESULT: [&str; 2] = ["build/index.js", "build/index_bg.wasm"];
/// The stamp of the Worker with the demo shop.
const STAMP: &str = "build/.stamp";
const ENTRY: &str = "src/edge/entry.js";
/// One build at a time: all write to the same wasm in target/, and to build/. `dev` and `test` may start at the same time.
const LOCK: &str = ".cache/build.lock";

/// Builds the Worker and its static files into build/.
///
/// # Errors
/// When the crate does not compile; the compiler's errors are printed.
pub async fn build(tools: &Tools) -> Result<(), Failure> {
    let _alone = file_lock::lock(LOCK).await?;
    run_step("worker", async |step| {
        let result = BuildResult::Contents(RESULT.map(PathBuf::from).to_vec());
        let stamp = Stamp::new(STAMP, &SOURCES, result)?;
        if stamp.is_current() {
            return Ok(steps::done("up to date"));
        }
        step.note("compiling for release, one or two minutes the first time");
        let bundle = Bundle { package: "edgefront", cargo_options: &[], entry: ENTRY, directory: DIRECTORY };
        bundle.build(&step, tools).await?;
        stamp.write()?;
        Ok(steps::done("built"))
    })
    .await?;
    assets::build().await
}

/// As [`build`], but without the demo shop.
///
/// # Errors
/// As [`build`].
pub async fn build_without_demo(tools: &Tools) -> Result<(), Failure> {
    let _alone = file_lock::lock(LOCK).await?;
    // The stamp describes the Worker with the demo shop.
    let _ = fs::remove_file(STAMP);
    bundle_without_demo_locked(tools, DIRECTORY).await?;
    assets::build().await
}

/// Builds the Worker without the demo shop into `directory`, without its static files.
///
/// # Errors
/// As [`build`].
pub async fn bundle_without_demo(tools: &Tools, directory: &str) -> Result<(), Failure> {
    let _alone = file_lock::lock(LOCK).await?;
    bundle_without_demo_locked(tools, directory).await
}

/// As [`bundle_without_demo`], for a caller that holds the lock.
async fn bundle_without_demo_locked(tools: &Tools, directory: &str) -> Result<(), Failure> {
    run_step("worker without the demo shop", async |step| {
        let cargo_options = &["--no-default-features"];
        Bundle { package: "edgefront", cargo_options, entry: ENTRY, directory }.build(&step, tools).await?;
        Ok(steps::done("built"))
    })
    .await
}

/// The absolute path of build/.
///
/// # Errors
/// When the working directory does not exist any more.
pub fn directory() -> Result<PathBuf, Failure> {
    path::absolute(DIRECTORY).map_err(|cause| Failure::file(DIRECTORY, &cause))
}
