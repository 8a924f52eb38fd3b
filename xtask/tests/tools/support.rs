//! Temporary directories and the program under test.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A directory that is removed on drop.
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Creates an empty directory. `name` is unique among the tests.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("edgefront-tools-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file and its directories.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Deref for TemporaryDirectory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program `xtask` in `directory`. cargo sets `CARGO_MANIFEST_DIR` for this test; the program must not see it.
pub fn xtask(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.current_dir(directory).env_remove("CARGO_MANIFEST_DIR");
    command
}

pub fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
