//! The Worker in build/, rebuilt only after a source has changed.

use std::{
    fs::{self, File},
    io, path,
    path::PathBuf,
};

use tokio::task;

use crate::{
    assets,
    bundle::Bundle,
    failure::Failure,
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
const LOCK: &str = ".cache/build.lock";

/// Builds the Worker and its static files into build/.
///
/// # Errors
/// When the crate does not compile; the compiler's errors are printed.
pub async fn build(tools: &Tools) -> Result<(), Failure> {
    run_step("worker", async |step| {
        let _alone = lock(LOCK.into()).await?;
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
    // The stamp describes the Worker with the demo shop.
    let _ = fs::remove_file(STAMP);
    bundle_without_demo(tools, DIRECTORY).await?;
    assets::build().await
}

/// Builds the Worker without the demo shop into `directory`, without its static files.
///
/// # Errors
/// As [`build`].
pub async fn bundle_without_demo(tools: &Tools, directory: &str) -> Result<(), Failure> {
    run_step("worker without the demo shop", async |step| {
        let cargo_options = &["--no-default-features"];
        Bundle { package: "edgefront", cargo_options, entry: ENTRY, directory }.build(&step, tools).await?;
        Ok(steps::done("built"))
    })
    .await
}

/// Waits until no other build holds the lock in `path`: `dev` and `test` may start at the same time. The system releases
/// the lock when the returned file is closed.
async fn lock(path: PathBuf) -> Result<File, Failure> {
    let failed = |cause: io::Error| Failure::file(LOCK, &cause);
    let locked = task::spawn_blocking(move || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let file = File::create(path)?;
        file.lock()?;
        Ok(file)
    });
    locked.await.map_err(io::Error::other).flatten().map_err(failed)
}

/// The absolute path of build/.
///
/// # Errors
/// When the working directory does not exist any more.
pub fn directory() -> Result<PathBuf, Failure> {
    path::absolute(DIRECTORY).map_err(|cause| Failure::file(DIRECTORY, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_build_waits_for_the_first() {
        let path = std::env::temp_dir().join(format!("edgefront-{}/build.lock", std::process::id()));
        let first = lock(path.clone()).await.unwrap();
        let second = tokio::spawn(lock(path.clone()));
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        second.await.unwrap().unwrap();
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
