//! The static files in build/assets/, which the platform serves by itself: scripts and styles bundled and minified, the rest as it is.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{
    failure::Failure,
    npm,
    stamp::Stamp,
    steps::{self, step},
};

/// What the bundles are made of; package-lock.json pins the libraries among it.
const SOURCES: [&str; 2] = ["assets", "package-lock.json"];
/// What wrangler.toml names.
const SITE: &str = "build/assets";

/// Builds what has changed.
///
/// # Errors
/// When esbuild refuses a file.
pub async fn build() -> Result<(), Failure> {
    step("assets", async |step| {
        let stamp = Stamp::new("build/.assets", &SOURCES)?;
        if stamp.is_current() && Path::new(SITE).is_dir() {
            return Ok(steps::done("up to date"));
        }
        let failed = |cause: io::Error| Failure::file(SITE, &cause);
        let files = sources().map_err(failed)?;
        let target = Path::new(SITE).join("_edge/assets");
        // Else a file that was renamed would still be served under its old name.
        let _ = fs::remove_dir_all(SITE);
        fs::create_dir_all(&target).map_err(failed)?;

        let (bundles, copies): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.extension().is_some_and(|kind| kind == "js" || kind == "css"));
        for file in copies {
            let Some(name) = file.file_name() else { continue };
            let directory = if name == "_headers" { Path::new(SITE) } else { &target };
            fs::copy(&file, directory.join(name)).map_err(failed)?;
        }
        let mut esbuild = Command::new(npm::program("esbuild")?);
        esbuild.args(["--bundle", "--minify", "--format=esm", "--target=es2023", "--log-level=warning"]);
        esbuild.arg(format!("--outdir={}", target.display())).args(bundles).env("PATH", npm::path()?);
        step.run(esbuild, "mend the file that it names").await?;
        stamp.set()?;
        Ok(steps::done("built"))
    })
    .await
}

/// The files of `assets/`; what lies deeper is only there for them to import.
fn sources() -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir("assets")?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<_> =
        entries.filter(|path| path.as_ref().map_or(true, |path| path.is_file())).collect::<Result<_, _>>()?;
    files.sort();
    Ok(files)
}
