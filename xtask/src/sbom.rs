//! `cargo xtask sbom`: software bills of materials in the `CycloneDX` format. One lists the crates in the Worker, the
//! other the npm packages that build and test it. The same commit gives the same bytes, except for the serial number and
//! the time of npm's.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use tokio::process::Command;
use xtask::{
    failure::Failure,
    steps::{Done, Step, run_step},
    tools,
};

/// The tool of the `CycloneDX` project. It can list the dependencies for wasm alone.
const PROGRAM: (&str, &str) = ("cargo-cyclonedx", "0.5.9");
const DIRECTORY: &str = "target/sbom";
/// The name of the files that `cargo cyclonedx` writes beside each Cargo.toml of the workspace. .gitignore names it.
const STAGED: &str = "edgefront-sbom";

/// Writes both files.
///
/// # Errors
/// When a tool cannot be installed or fails.
pub async fn run() -> Result<(), Failure> {
    let program = tools::install_program(PROGRAM.0, PROGRAM.1).await?;
    fs::create_dir_all(DIRECTORY).map_err(|cause| Failure::file(DIRECTORY, &cause))?;
    run_step("crates of the Worker", async |step| {
        let text = list_crates(&step, &program).await?;
        write("worker.cdx.json", &text)
    })
    .await?;
    run_step("npm packages", async |step| {
        let text = list_packages(&step).await?;
        write("npm.cdx.json", &text)
    })
    .await
}

fn write(name: &str, text: &str) -> Result<Done<()>, Failure> {
    let path = Path::new(DIRECTORY).join(name);
    let components = component_count(text).filter(|count| *count > 0);
    let components = components.ok_or_else(|| Failure::new(format!("{name} would list nothing"), ""))?;
    fs::write(&path, text).map_err(|cause| Failure::file(&path, &cause))?;
    Ok(Done { summary: format!("{components} in {}", path.display()), value: () })
}

fn component_count(text: &str) -> Option<usize> {
    let document: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(document.get("components")?.as_array()?.len())
}

async fn list_crates(step: &Step, program: &Path) -> Result<String, Failure> {
    let mut cyclonedx = Command::new(program);
    cyclonedx.args(["cyclonedx", "--format", "json", "--spec-version", "1.5", "--no-build-deps"]);
    cyclonedx.args(["--target", "wasm32-unknown-unknown", "--override-filename", STAGED]);
    if env::var_os("SOURCE_DATE_EPOCH").is_none() {
        cyclonedx.env("SOURCE_DATE_EPOCH", commit_time(step).await);
    }
    let outcome = step.run_program(cyclonedx, "check that Cargo.lock is complete: cargo metadata --locked").await;
    let file = format!("{STAGED}.json");
    let text = fs::read_to_string(&file).map_err(|cause| Failure::file(&file, &cause));
    remove_staged(Path::new(".")).map_err(|cause| Failure::file(&file, &cause))?;
    outcome?;
    let workspace = env::current_dir().map_err(|cause| Failure::file("the working directory", &cause))?;
    Ok(without_directory(&text?, &workspace))
}

/// The commit's time as seconds since the Unix epoch; 0 without git.
async fn commit_time(step: &Step) -> String {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]);
    match step.try_program(git).await {
        Ok(Ok(seconds)) => seconds.trim().to_owned(),
        _ => "0".to_owned(),
    }
}

/// Replaces the absolute path in the names of the workspace's own crates.
fn without_directory(text: &str, workspace: &Path) -> String {
    text.replace(&format!("path+file://{}", workspace.display()), "path+file:///edgefront")
}

/// Removes the staged files of all members of the workspace. Directories of results have none.
fn remove_staged(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if path.is_dir() && !name.starts_with(b".") && name != b"target" && name != b"node_modules" {
            remove_staged(&path)?;
        } else if name == format!("{STAGED}.json").as_bytes() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// npm requires a version of the root package, which package.json does not have. So npm reads a copy.
async fn list_packages(step: &Step) -> Result<String, Failure> {
    let directory = Path::new(DIRECTORY).join("npm");
    let failed = |cause: io::Error| Failure::file(&directory, &cause);
    fs::create_dir_all(&directory).map_err(failed)?;
    let text = fs::read_to_string("package.json").map_err(failed)?;
    fs::write(directory.join("package.json"), with_version(&text)).map_err(failed)?;
    fs::copy("package-lock.json", directory.join("package-lock.json")).map_err(failed)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&directory).args(["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--silent"]);
    let output = step.run_program(npm, "update npm: `npm sbom` exists since npm 9.6").await?;
    fs::remove_dir_all(&directory).map_err(failed)?;
    Ok(output)
}

/// Adds xtask's version, which is the workspace's.
fn with_version(package: &str) -> String {
    package.replacen('{', &format!("{{\n  \"version\": \"{}\",", env!("CARGO_PKG_VERSION")), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_does_not_name_the_directory() {
        let text = r#"{"bom-ref": "path+file:///home/ada/shop/crates/upstash-rest#0.1.0"}"#;
        let neutral = r#"{"bom-ref": "path+file:///edgefront/crates/upstash-rest#0.1.0"}"#;
        assert_eq!(without_directory(text, Path::new("/home/ada/shop")), neutral);
    }

    #[test]
    fn the_copy_of_package_json_has_a_version() {
        let package: serde_json::Value = serde_json::from_str(&with_version("{\n  \"name\": \"a\"\n}")).unwrap();
        assert_eq!((package["name"].as_str(), package["version"].as_str()), (Some("a"), Some("0.1.0")));
    }

    #[test]
    fn a_document_without_components_is_refused() {
        assert!(write("empty.cdx.json", r#"{"components": []}"#).is_err());
        assert_eq!(component_count(r#"{"components": [{}, {}]}"#), Some(2));
    }
}
