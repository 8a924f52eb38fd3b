//! Checks of installed programs. A file at the right path can still be half written, or built for another machine.

use std::{path::Path, process::Command};

/// The first line that `program --version` prints; `None` if the program is missing or does not run.
#[must_use]
pub fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok().filter(|output| output.status.success())?;
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
