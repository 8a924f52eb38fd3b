//! The tools that turn the crate into a Worker: the wasm target of Rust, and wasm-bindgen. wasm-bindgen has the version
//! that Cargo.lock pins for its library, because the tool refuses wasm of any other version.

use std::{fs, path, path::PathBuf};

use tokio::process::Command;

use crate::{
    failure::Failure,
    file_lock, program,
    steps::{self, Done, Step, run_step},
};

pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";
const DIRECTORY: &str = ".cache/tools";
const BUILD_DIRECTORY: &str = ".cache/tools/target";
/// One xtask at a time builds tools: the first to finish removes the shared build directory.
const LOCK: &str = ".cache/tools/lock";

/// The paths of the installed tools.
pub struct Tools {
    pub wasm_bindgen: PathBuf,
}

/// Installs the missing tools.
///
/// # Errors
/// When rustup or cargo fails.
pub async fn install() -> Result<Tools, Failure> {
    let lock_file = fs::read_to_string("Cargo.lock").map_err(|cause| Failure::file("Cargo.lock", &cause))?;
    add_wasm_target().await?;
    let _lock = file_lock::lock(LOCK).await?;
    let version = locked_version(&lock_file, "wasm-bindgen")?;
    let tools = Tools { wasm_bindgen: install_crate("wasm-bindgen-cli", &version, "wasm-bindgen").await? };
    // Frees 500 MB that only the next change of version could use.
    let _ = fs::remove_dir_all(BUILD_DIRECTORY);
    Ok(tools)
}

/// Installs one program from crates.io and returns its absolute path.
///
/// # Errors
/// When cargo fails.
pub async fn install_program(package: &str, version: &str) -> Result<PathBuf, Failure> {
    let _lock = file_lock::lock(LOCK).await?;
    let path = install_crate(package, version, package).await?;
    let _ = fs::remove_dir_all(BUILD_DIRECTORY);
    Ok(path)
}

/// rust-toolchain.toml also names the target, but not every rustup installs from there by itself.
async fn add_wasm_target() -> Result<(), Failure> {
    run_step(&format!("rust target {WASM_TARGET}"), async |step| {
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", WASM_TARGET]);
        let libraries = step.run_program(rustc, "install Rust with rustup").await?;
        if has_core_library(libraries.trim()) {
            return Ok(steps::done("installed"));
        }
        let mut rustup = Command::new("rustup");
        rustup.args(["target", "add", WASM_TARGET]);
        let remedy = format!("check the network; without rustup, install the target {WASM_TARGET} yourself");
        step.run_program(rustup, &remedy).await?;
        Ok(steps::done("added"))
    })
    .await
}

/// Returns whether a directory of Rust libraries has the library `core`. The directory can exist without it.
fn has_core_library(directory: &str) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.as_encoded_bytes().starts_with(b"libcore-"))
}

/// Builds the program `binary` of a package from source, unless this version is installed and runs. Returns its absolute
/// path.
///
/// # Errors
/// When cargo fails, or the program does not run.
async fn install_crate(package: &str, version: &str, binary: &str) -> Result<PathBuf, Failure> {
    run_step(&format!("{package} {version}"), async |step| {
        let root = format!("{DIRECTORY}/{package}-{version}");
        let path = path::absolute(format!("{root}/bin/{binary}")).map_err(|cause| Failure::file(&root, &cause))?;
        if program::works(&path) {
            return Ok(Done { summary: "installed".to_owned(), value: path });
        }
        step.note("building from source, one or two minutes");
        // --force replaces a damaged program, which cargo takes for an installed one.
        cargo_install(&step, package, version, &["--root", &root, "--bin", binary, "--force"]).await?;
        if !program::works(&path) {
            return Err(Failure::new(format!("{} does not run", path.display()), "check the messages above"));
        }
        Ok(Done { summary: "built".to_owned(), value: path })
    })
    .await
}

async fn cargo_install(step: &Step, package: &str, version: &str, options: &[&str]) -> Result<(), Failure> {
    let install = |lock_option: &[&str]| {
        let mut cargo = Command::new("cargo");
        // A debug build without debug information takes a third of the time, and the tools have little to do.
        cargo.args(["install", "--debug", "--version", &format!("={version}")]);
        cargo.args(options).args(lock_option).arg(package);
        cargo.env("CARGO_TARGET_DIR", BUILD_DIRECTORY);
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        cargo
    };
    if step.try_program(install(&["--locked"])).await?.is_ok() {
        return Ok(());
    }
    // The lock file of a package can name versions that were yanked later.
    step.note("trying again with the newest dependencies instead of the package's lock file");
    step.run_program(install(&[]), "check the network and the C compiler (cc), then try again").await.map(drop)
}

fn locked_version(lock_file: &str, package: &str) -> Result<String, Failure> {
    let lock_file: toml::Table = lock_file.parse().map_err(|cause: toml::de::Error| {
        Failure::new(format!("Cargo.lock: {}", cause.message()), "restore it from git")
    })?;
    let packages = lock_file.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let text = |entry: &toml::Value, key: &str| Some(entry.get(key)?.as_str()?.to_owned());
    packages
        .filter(|entry| text(entry, "name").as_deref() == Some(package))
        .find_map(|entry| text(entry, "version"))
        .ok_or_else(|| Failure::new(format!("Cargo.lock has no {package}"), "restore it from git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_the_version_of_its_library() {
        let lock_file = "version = 4\n[[package]]\nname = \"wasm-bindgen-macro\"\nversion = \"9.9.9\"\n\
                    [[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.130\"\n";
        assert_eq!(locked_version(lock_file, "wasm-bindgen").unwrap(), "0.2.130");
        assert!(locked_version(lock_file, "worker").unwrap_err().to_string().contains("no worker"));
        assert!(locked_version("[[", "worker").is_err());
    }

    #[test]
    fn the_workspace_pins_wasm_bindgen() {
        assert!(locked_version(include_str!("../../Cargo.lock"), "wasm-bindgen").is_ok());
    }
}
