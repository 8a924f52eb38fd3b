//! Attacks. Each test names its requirement of OWASP's Application Security Verification Standard 5.0. SECURITY.md lists
//! all tests for each requirement.

/// V3: cookies, origins and headers in the browser.
mod browser;
/// V14: data protection.
mod data;
/// V1: injection.
mod injection;
/// V2.4, V6.3: anti-automation.
pub mod limits;
/// V4: HTTP messages.
mod messages;
/// V7: sessions.
mod sessions;
/// V2.3, V2.4: inflated views.
mod views;

use std::{collections::HashSet, fs, path::Path};

/// Every test that SECURITY.md names exists.
#[test]
fn every_test_that_security_md_names_exists() {
    let root = Path::new(".");
    let mut functions = HashSet::new();
    let mut directories = vec![root.join("src"), root.join("tests")];
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path).unwrap();
                let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
                functions.extend(names.map(str::to_owned));
            }
        }
    }
    let text = include_str!("../../../../SECURITY.md");
    let is_test = |word: &&str| {
        word.matches('_').count() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let named: Vec<_> = text.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 60, "{}", named.len());
    for name in named {
        assert!(functions.contains(name), "{name}");
    }
}
