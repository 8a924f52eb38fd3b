//! The browser for tests.

use std::{env, path::PathBuf};

/// The path of Chromium or a browser based on it: the variable `CHROMIUM`, otherwise a known name on the PATH.
#[must_use]
pub fn find() -> Option<PathBuf> {
    if let Some(path) = env::var_os("CHROMIUM") {
        return Some(path.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
    let path = env::var_os("PATH")?;
    names
        .iter()
        .find_map(|name| env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file()))
}
