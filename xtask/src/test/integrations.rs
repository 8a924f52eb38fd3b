//! `cargo xtask test --integrations`: tests the packages in `integrations/` with the real frameworks. The script
//! `integrations/NAME/test DIR` installs them into DIR. Each package gets a running edgefront, behind which its
//! test starts a shop.

use std::{
    ffi::OsString,
    path::{Path, PathBuf, absolute},
};

use tokio::{process::Command, try_join};
use xtask::{
    failure::Failure,
    npm,
    process_group::ProcessGroup,
    redis,
    steps::{done, run_step},
    storefront::folders_with,
    tools, worker,
};

use super::edgefront::Edgefront;

const SCRIPTS: &str = "integrations";
const INSTALLATIONS: &str = ".cache/integrations";
/// The conformance kit, which the tests run in front of each server.
const CONTRACT: &str = "target/debug/edgefront-contract";

/// Tests the named packages; all of them without a name.
///
/// # Errors
/// When a name is unknown, or a test fails.
pub async fn run(names: &[OsString]) -> Result<(), Failure> {
    let known = folders_with(Path::new(SCRIPTS), "test");
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(Failure::new(format!("no integration {unknown:?}"), format!("choose from: {}", known.join(", "))));
    }
    let names = if names.is_empty() { known } else { names };
    let (binary, tools, ()) = try_join!(redis::server_binary(), tools::install(), npm::install())?;
    worker::build(&tools).await?;
    run_step("conformance kit", async |step| {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--package", "edgefront-contract"]);
        step.run_program(cargo, "fix the error above").await?;
        Ok(done("built"))
    })
    .await?;
    let mut failed = Vec::new();
    for name in &names {
        if !test(name, binary.clone()).await? {
            failed.push(name.as_str());
        }
    }
    println!("\n{} of {} integrations passed", names.len().saturating_sub(failed.len()), names.len());
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("failed: {}", failed.join(", ")), "read the messages above"))
}

/// Runs the script of a package and prints its lines. Returns whether it succeeded.
async fn test(name: &str, redis_server: PathBuf) -> Result<bool, Failure> {
    let path = |text: &Path| absolute(text).map_err(|cause| Failure::file(text, &cause));
    println!("\n{name}");
    let mut script = Command::new(path(&Path::new(SCRIPTS).join(name).join("test"))?);
    script.arg(path(&Path::new(INSTALLATIONS).join(name))?);
    script.env("EDGEFRONT_CONTRACT", path(Path::new(CONTRACT))?).env("PATH", npm::search_path()?);
    let edgefront = Edgefront::start(redis_server).await?;
    script.envs(edgefront.environment());
    let mut group = ProcessGroup::start(script)?;
    while let Some(line) = group.next_line().await {
        println!("{line}");
    }
    Ok(group.wait().await.is_ok_and(|status| status.success()))
}
