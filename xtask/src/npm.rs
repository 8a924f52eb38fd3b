//! The npm packages that package-lock.json pins, among them a Node that is new enough for wrangler. No install script runs (.npmrc).

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use tokio::process::Command;

use crate::{
    failure::Failure,
    steps::{self, step},
};

/// Installs the packages, unless they are there as the lock file has them.
///
/// # Errors
/// When npm is missing or fails.
pub async fn install() -> Result<(), Failure> {
    step("npm packages", async |step| {
        if is_current() {
            node()?;
            return Ok(steps::done("up to date"));
        }
        step.note("npm install, about 20 s");
        let mut npm = Command::new("npm");
        // Not `npm ci`: it wants the packages of every platform in the lock file, and a registry may carry only some. This, too, installs
        // what the lock file says, and writes nothing into it.
        npm.args(["install", "--no-save", "--no-progress"]);
        step.run(npm, "check the network, then try again; npm comes with Node.js").await?;
        node()?;
        Ok(steps::done("installed"))
    })
    .await
}

/// For the build that wrangler itself asks for: installing anew would take wrangler's own files from under its feet.
///
/// # Errors
/// As [`install`].
pub async fn install_if_missing() -> Result<(), Failure> {
    if Path::new(INSTALLED).exists() { Ok(()) } else { install().await }
}

/// What npm writes at the end of an installation.
const INSTALLED: &str = "node_modules/.package-lock.json";

fn is_current() -> bool {
    let changed = |path: &str| fs::metadata(path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    Path::new(INSTALLED).exists() && changed(INSTALLED) >= changed("package-lock.json")
}

/// A Node that is new enough for wrangler: that of the packages, on a platform without one the machine's.
///
/// # Errors
/// When the machine's is too old.
pub fn node() -> Result<PathBuf, Failure> {
    let ours = program("node")?;
    if ours.exists() {
        return Ok(ours);
    }
    let told = std::process::Command::new("node").arg("--version").output();
    let version = told.map(|told| String::from_utf8_lossy(&told.stdout).trim().to_owned()).unwrap_or_default();
    if is_new_enough(&version) {
        return Ok(PathBuf::from("node"));
    }
    Err(Failure::new(
        format!("wrangler needs Node.js 22.12, and the machine has {version:?}"),
        "install Node.js 22.12 or newer",
    ))
}

/// `version` is of the form v22.12.0.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (22, 12)
}

/// The absolute path of an installed program; links are kept, because npm's programs find their files by them.
///
/// # Errors
/// When the working directory is gone.
pub fn program(name: &str) -> Result<PathBuf, Failure> {
    std::path::absolute(Path::new("node_modules/.bin").join(name)).map_err(|cause| Failure::file(name, &cause))
}

/// A program of the packages that runs on their Node, whatever the machine has.
///
/// # Errors
/// As [`program`].
pub fn command(name: &str) -> Result<Command, Failure> {
    let mut command = Command::new(program(name)?);
    command.env("PATH", path()?);
    Ok(command)
}

/// The PATH with the packages' programs first.
///
/// # Errors
/// When the PATH can not be extended.
pub fn path() -> Result<OsString, Failure> {
    let bin = program("")?;
    let path = env::var_os("PATH").unwrap_or_default();
    env::join_paths(std::iter::once(bin).chain(env::split_paths(&path)))
        .map_err(|cause| Failure::new(format!("PATH: {cause}"), "move the project to a path without a colon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrangler_runs_from_node_22_12_on() {
        for (version, expected) in
            [("v22.12.0", true), ("v24.1.3", true), ("v22.11.9", false), ("v20.20.2", false), ("", false)]
        {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }
}
