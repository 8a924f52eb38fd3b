//! Schemathesis, the Python program that tests the API against its description, and the official client of Prometheus,
//! whose parser reads the metrics. Both are installed from pinned wheels.

use std::{fs, path, path::PathBuf, process::Command};

use crate::{
    failure::Failure,
    steps::{Done, Step, run_step},
    wheel::Wheels,
};

/// Written by `pip-compile --generate-hashes --strip-extras --no-annotate --no-header` for `schemathesis` and
/// `prometheus-client`.
const REQUIREMENTS: &str = include_str!("../../tests/storefront/system/schemathesis/requirements.txt");
const REMEDY: &str = "install pip for python3";
/// Oldest version of Python that needs no other packages.
const OLDEST: (u32, u32) = (3, 11);

/// The directory of the packages for `python3`; installs them if they are missing. `None` without Python 3.11.
///
/// # Errors
/// When pip is missing or fails.
pub async fn packages() -> Result<Option<PathBuf>, Failure> {
    let Some((major, minor)) = python_version().filter(|version| *version >= OLDEST) else { return Ok(None) };
    run_step("schemathesis", async |step| {
        // Some of the packages are compiled for one version of Python.
        let directory = format!(".cache/tools/schemathesis-4.32.5-python{major}.{minor}");
        let mark = format!("{directory}/installed");
        if fs::read_to_string(&mark).ok().as_deref() != Some(REQUIREMENTS) {
            install(&directory, &step).await?;
            fs::write(&mark, REQUIREMENTS).map_err(|cause| Failure::file(&mark, &cause))?;
        }
        let path = path::absolute(&directory).map_err(|cause| Failure::file(&directory, &cause))?;
        Ok(Done { summary: directory, value: Some(path) })
    })
    .await
}

async fn install(directory: &str, step: &Step) -> Result<(), Failure> {
    step.note("installing 28 packages with pip, 68 MB");
    Wheels { requirements: REQUIREMENTS, directory, remedy: REMEDY }.install(step).await
}

/// The version of `python3`.
fn python_version() -> Option<(u32, u32)> {
    let output = Command::new("python3").args(["-c", "import sys; print(*sys.version_info[:2])"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
