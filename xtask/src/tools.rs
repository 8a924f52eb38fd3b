//! What turns the crate into a Worker: the wasm target, wasm-bindgen. Its version is the one that Cargo.lock pins for the
//! library: wasm-bindgen refuses a wasm that another version of itself wrote.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::PathBuf,
    time::Duration,
};

use tokio::{process::Command, time};

use crate::{
    failure::Failure,
    steps::{self, Done, Step, step},
};

pub const TARGET: &str = "wasm32-unknown-unknown";
const BUILD_DIRECTORY: &str = ".cache/tools/target";

/// The path of the program.
pub struct Tools {
    pub wasm_bindgen: PathBuf,
}

/// Installs what is missing.
///
/// # Errors
/// When rustup or cargo fail.
pub async fn install() -> Result<Tools, Failure> {
    let lock = fs::read_to_string("Cargo.lock").map_err(|cause| Failure::file("Cargo.lock", &cause))?;
    rust_target().await?;
    let _alone = alone().await?;
    let version = locked_version(&lock, "wasm-bindgen")?;
    let tools = Tools { wasm_bindgen: tool("wasm-bindgen-cli", &version, "wasm-bindgen").await? };
    // 500 MB that only the next change of a version could use.
    let _ = fs::remove_dir_all(BUILD_DIRECTORY);
    Ok(tools)
}

/// Waits until no other of us builds tools here: the one that ends removes the directory that both would build in.
async fn alone() -> Result<File, Failure> {
    let path = ".cache/tools/lock";
    let failed = |cause: io::Error| Failure::file(path, &cause);
    let file = fs::create_dir_all(".cache/tools").and_then(|()| File::create(path)).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => time::sleep(Duration::from_millis(100)).await,
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
        }
    }
}

/// Adds the target: where rustup may not install by itself, the line in rust-toolchain.toml is not enough.
async fn rust_target() -> Result<(), Failure> {
    step(&format!("rust target {TARGET}"), async |step| {
        let mut rustc = Command::new("rustc");
        rustc.args(["--print", "target-libdir", "--target", TARGET]);
        let libraries = step.run(rustc, "install Rust with rustup").await?;
        if PathBuf::from(libraries.trim()).exists() {
            return Ok(steps::done("installed"));
        }
        let mut rustup = Command::new("rustup");
        rustup.args(["target", "add", TARGET]);
        step.run(rustup, &format!("check the network; Rust must come from rustup, or bring the target {TARGET}"))
            .await?;
        Ok(steps::done("added"))
    })
    .await
}

/// Builds a tool from source, if it is not there in this version.
async fn tool(package: &str, version: &str, program: &str) -> Result<PathBuf, Failure> {
    step(&format!("{package} {version}"), async |step| {
        let root = format!(".cache/tools/{package}-{version}");
        let path =
            std::path::absolute(format!("{root}/bin/{program}")).map_err(|cause| Failure::file(&root, &cause))?;
        if path.exists() {
            return Ok(Done { what: "installed".to_owned(), value: path });
        }
        step.note("built from source once, a minute or two");
        build(&step, package, version, &["--root", &root, "--bin", program]).await?;
        Ok(Done { what: "built".to_owned(), value: path })
    })
    .await
}

async fn build(step: &Step, package: &str, version: &str, what: &[&str]) -> Result<(), Failure> {
    let install = |more: &[&str]| {
        let mut cargo = Command::new("cargo");
        // A debug build, without what only a debugger reads, takes a third of the time, and the tools have little to do.
        cargo.args(["install", "--debug", "--version", &format!("={version}")]).args(what).args(more).arg(package);
        cargo
            .env("CARGO_TARGET_DIR", BUILD_DIRECTORY)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_INCREMENTAL", "0");
        cargo
    };
    if step.try_run(install(&["--locked"])).await?.is_ok() {
        return Ok(());
    }
    // A package's own lock file can name versions that were withdrawn since.
    step.note("with the newest dependencies, not those of its own lock file");
    step.run(install(&[]), "check the network and the C compiler (cc), then try again").await.map(drop)
}

fn locked_version(lock: &str, package: &str) -> Result<String, Failure> {
    let lock: toml::Table = lock.parse().map_err(|cause: toml::de::Error| {
        Failure::new(format!("Cargo.lock: {}", cause.message()), "restore it from git")
    })?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
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
        let lock = "version = 4\n[[package]]\nname = \"wasm-bindgen-macro\"\nversion = \"9.9.9\"\n\
                    [[package]]\nname = \"wasm-bindgen\"\nversion = \"0.2.130\"\n";
        assert_eq!(locked_version(lock, "wasm-bindgen").unwrap(), "0.2.130");
        assert!(locked_version(lock, "worker").unwrap_err().to_string().contains("no worker"));
        assert!(locked_version("[[", "worker").is_err());
    }

    #[test]
    fn our_own_lock_file_names_it() {
        let lock = include_str!("../../Cargo.lock");
        assert!(locked_version(lock, "wasm-bindgen").is_ok());
    }
}
