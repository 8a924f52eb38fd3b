//! npm verifies the hashes of package-lock.json. `.npmrc` must not switch this off.

use std::{fs, process::Command};

use crate::support::{TemporaryDirectory, text};

/// The SHA-512 of no file, in the form of an integrity field.
const WRONG: &str =
    "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

#[test]
fn npm_refuses_a_package_whose_hash_is_wrong() {
    let directory = TemporaryDirectory::new("integrity");
    directory.write("source/package.json", r#"{"name": "left", "version": "1.0.0"}"#);
    // cargo runs tests in the directory of their package.
    fs::copy("../.npmrc", directory.join(".npmrc")).unwrap();
    let npm = |arguments: &[&str]| {
        let mut npm = Command::new("npm");
        npm.current_dir(&*directory).args(arguments).env("npm_config_cache", directory.join("cache"));
        npm.output().unwrap()
    };
    assert!(npm(&["pack", "./source"]).status.success());
    directory.write("package.json", r#"{"name": "shop", "dependencies": {"left": "file:left-1.0.0.tgz"}}"#);
    let installed = npm(&["install", "--offline"]);
    assert!(installed.status.success(), "{}", text(&installed));

    let lock_file = fs::read_to_string(directory.join("package-lock.json")).unwrap();
    let (before, rest) = lock_file.split_once("\"integrity\": \"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    directory.write("package-lock.json", &format!("{before}\"integrity\": \"{WRONG}\"{after}"));
    fs::remove_dir_all(directory.join("node_modules")).unwrap();
    let refused = npm(&["install", "--no-save", "--offline"]);
    assert!(!refused.status.success());
    assert!(text(&refused).contains("EINTEGRITY"), "{}", text(&refused));
}
