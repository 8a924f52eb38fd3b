//! The workspace that a command acts on. The program may have been compiled in another directory: `cp -a` copies
//! target/, and cargo runs the copied program without compiling it again.

use crate::support::{TemporaryDirectory, text, xtask};

/// A checkout with one storefront, whose name shows in an error message.
fn checkout(name: &str, storefront: &str) -> TemporaryDirectory {
    let directory = TemporaryDirectory::new(name);
    directory.write("Cargo.toml", "[workspace]\nmembers = [\"xtask\"]\n");
    directory.write("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n");
    directory.write(&format!("storefronts/{storefront}/start"), "");
    directory
}

#[test]
fn a_copied_checkout_acts_on_itself() {
    let copy = checkout("copy", "only-in-the-copy");
    // As `cargo run` does.
    let output = xtask(&copy)
        .env("CARGO_MANIFEST_DIR", copy.join("xtask"))
        .current_dir("/")
        .args(["storefront", "unknown"])
        .output()
        .unwrap();
    assert!(text(&output).contains("choose from: only-in-the-copy"), "{}", text(&output));
}

#[test]
fn a_program_that_cargo_does_not_run_acts_on_the_checkout_around_its_directory() {
    let copy = checkout("around", "only-around");
    let output = xtask(&copy.join("xtask")).args(["storefront", "unknown"]).output().unwrap();
    assert!(text(&output).contains("choose from: only-around"), "{}", text(&output));
}

#[test]
fn outside_of_a_checkout_the_error_names_the_directory() {
    let empty = TemporaryDirectory::new("empty");
    let output = xtask(&empty).args(["storefront", "unknown"]).output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains("no workspace at or above"), "{}", text(&output));
}

#[test]
fn a_copied_storefront_is_installed_again_because_its_files_name_the_original() {
    let checkout = checkout("storefront", "shop");
    checkout.write("wrangler.toml", "");
    let script = "#!/bin/sh\n[ -f \"$1/installed\" ] || echo run >>\"$1/runs\"\ntouch \"$1/installed\"\n";
    checkout.write("storefronts/shop/install", script);
    // This storefront fails at its start, so the command ends after the installation.
    checkout.write("storefronts/shop/start", "#!/bin/sh\nexit 1\n");
    make_executable(&checkout.join("storefronts/shop/install"));
    make_executable(&checkout.join("storefronts/shop/start"));
    let runs = |directory: &std::path::Path| {
        let output = xtask(directory).args(["storefront", "shop"]).output().unwrap();
        let runs = std::fs::read_to_string(directory.join(".cache/storefronts/shop/runs")).unwrap_or_default();
        assert!(!runs.is_empty(), "{}", text(&output));
        runs.lines().count()
    };
    assert_eq!((runs(&checkout), runs(&checkout)), (1, 1));

    let copies = TemporaryDirectory::new("copies");
    let status = std::process::Command::new("cp").arg("-a").arg(&*checkout).arg(copies.join("b")).status().unwrap();
    assert!(status.success());
    assert_eq!(runs(&copies.join("b")), 2);
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
