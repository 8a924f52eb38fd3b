//! Checks of installed programs. A file at the right path can still be half written, or built for another machine.

use std::{path::Path, process::Command};

/// The first line that `program --version` prints; `None` if the program is missing or does not run.
#[must_use]
pub fn version(program: &Path) -> Option<String> {
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // A subcommand of cargo gets its own name as its first argument.
    let subcommand = name.strip_prefix("cargo-");
    let output = Command::new(program).args(subcommand).arg("--version").output().ok()?;
    if !output.status.success() {
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().trim().to_owned())
}

/// Returns whether the program runs.
#[must_use]
pub fn works(program: &Path) -> bool {
    version(program).is_some()
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn a_damaged_program_does_not_work() {
        assert!(version(Path::new("cargo")).unwrap().starts_with("cargo "));
        let damaged = env::temp_dir().join(format!("edgefront-damaged-{}", std::process::id()));
        fs::write(&damaged, "").unwrap();
        assert!(!works(&damaged));
        fs::remove_file(&damaged).unwrap();
        assert!(!works(&damaged));
    }
}
