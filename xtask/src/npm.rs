//! The npm packages that package-lock.json pins, including a Node.js that is new enough for wrangler. .npmrc forbids
//! install scripts.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{
    failure::Failure,
    stamp::{BuildResult, Freshness, Stamp},
    steps::{self, run_step},
};

const DIRECTORY: &str = "node_modules";
/// The file that npm writes at the end of an installation.
const INSTALLED_MARKER: &str = "node_modules/.package-lock.json";

/// The stamp of the packages, inside their directory.
const STAMP: &str = "node_modules/.edgefront-stamp";
/// The files that select the packages.
const SOURCES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// Installs the packages, unless they match the lock file and are complete.
///
/// # Errors
/// When npm is missing or fails.
pub async fn install() -> Result<(), Failure> {
    run_step("npm packages", async |step| {
        // Compares names and sizes: reading 500 MB takes seconds.
        let stamp = Stamp::new(STAMP, &SOURCES, BuildResult::Listing(DIRECTORY.into()))?;
        match stamp.freshness() {
            Freshness::Current => {
                node()?;
                return Ok(steps::done("up to date"));
            }
            Freshness::Damaged => {
                // npm looks only at the directories of the packages, and would keep a package with missing files.
                step.note("packages are damaged or incomplete; installing all of them again");
                fs::remove_dir_all(DIRECTORY).map_err(|cause| Failure::file(DIRECTORY, &cause))?;
            }
            Freshness::Outdated => {}
        }
        step.note("npm install, about 20 s");
        let mut npm = Command::new("npm");
        // Not `npm ci`: it requires the packages of every platform in the lock file, and a registry may carry only
        // some. `npm install` installs the locked versions as well, and `--no-save` keeps the lock file unchanged.
        npm.args(["install", "--no-save", "--no-progress"]);
        step.run_program(npm, "check the network, then try again; npm comes with Node.js").await?;
        node()?;
        stamp.write()?;
        Ok(steps::done("installed"))
    })
    .await
}

/// Installs the packages only if there are none. wrangler itself calls `cargo xtask build`, and a new installation
/// would replace the files of the running wrangler.
///
/// # Errors
/// As [`install`].
pub async fn install_if_missing() -> Result<(), Failure> {
    if Path::new(INSTALLED_MARKER).exists() { Ok(()) } else { install().await }
}

/// A Node.js that is new enough for wrangler: the one of the packages, or the machine's on a platform without a
/// package.
///
/// # Errors
/// When the machine's Node.js is too old.
pub fn node() -> Result<PathBuf, Failure> {
    let packaged = program_path("node")?;
    if packaged.exists() {
        return Ok(packaged);
    }
    let output = std::process::Command::new("node").arg("--version").output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if is_new_enough(&version) {
        return Ok(PathBuf::from("node"));
    }
    Err(Failure::new(
        format!("wrangler needs Node.js 22.12 or newer, but this machine has {version:?}"),
        "install Node.js 22.12 or newer",
    ))
}

/// `version` has the form `v22.12.0`.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (22, 12)
}

/// The absolute path of an installed program. It keeps symbolic links, because npm's programs find their files through
/// them.
///
/// # Errors
/// When the working directory does not exist any more.
fn program_path(name: &str) -> Result<PathBuf, Failure> {
    std::path::absolute(Path::new("node_modules/.bin").join(name)).map_err(|cause| Failure::file(name, &cause))
}

/// The command of an installed program. It runs on the packages' Node.js, not on the machine's.
///
/// # Errors
/// As [`program_path`] and [`search_path`].
pub fn command(name: &str) -> Result<Command, Failure> {
    let mut command = Command::new(program_path(name)?);
    command.env("PATH", search_path()?);
    Ok(command)
}

/// The PATH with the packages' programs first.
///
/// # Errors
/// When the PATH cannot be extended.
pub fn search_path() -> Result<OsString, Failure> {
    let programs = program_path("")?;
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths(std::iter::once(programs).chain(env::split_paths(&path)))
        .map_err(|cause| Failure::new(format!("PATH: {cause}"), "move the project to a path without a colon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrangler_requires_node_22_12() {
        for (version, expected) in
            [("v22.12.0", true), ("v24.1.3", true), ("v22.11.9", false), ("v20.20.2", false), ("", false)]
        {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }
}
