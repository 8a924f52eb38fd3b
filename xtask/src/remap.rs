//! Compiler options for a reproducible Worker: the same sources give the same bytes in every directory and for every
//! user. Panic messages contain the paths of dependencies, and those depend on the machine.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use crate::{failure::Failure, tools::WASM_TARGET};

/// The option of cargo that gives the compiler neutral names for the directories of this machine. It adds to the options
/// of other configuration. The environment variable `RUSTFLAGS` overrides it.
///
/// # Errors
/// When the directories cannot be read.
pub fn cargo_option() -> Result<String, Failure> {
    let workspace = env::current_dir().map_err(|cause| Failure::file("the working directory", &cause))?;
    let registry = cargo_home()?.join("registry/src");
    let registries = registries(&registry).map_err(|cause| Failure::file(&registry, &cause))?;
    Ok(format!("target.{WASM_TARGET}.rustflags={}", flags(&workspace, &registries)))
}

/// A list of compiler options in JSON, whose lists of strings are TOML as well.
fn flags(workspace: &Path, registries: &[PathBuf]) -> String {
    let option = |directory: &Path, name: &str| format!("--remap-path-prefix={}={name}", directory.display());
    let registries = registries.iter().map(|registry| option(registry, "/cargo"));
    let options = std::iter::once(option(workspace, "/edgefront")).chain(registries);
    options.collect::<serde_json::Value>().to_string()
}

/// The directories of unpacked crates, one for each registry. Their names depend on the registry's address, so a mirror
/// has another one. All get the same neutral name.
fn registries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut registries = match fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(cause) => return Err(cause),
    };
    registries.sort();
    Ok(registries)
}

/// The directory of cargo's caches: `CARGO_HOME`, otherwise ~/.cargo.
fn cargo_home() -> Result<PathBuf, Failure> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cargo")))
        .ok_or_else(|| Failure::new("there is no home directory", "set CARGO_HOME"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directories_of_the_machine_get_neutral_names() {
        let registries = ["/home/ada/.cargo/registry/src/mirror-1".into(), "/home/ada/.cargo/registry/src/two".into()];
        let list = flags(Path::new("/home/ada/a \"shop\""), &registries);
        let parsed: toml::Table = format!("flags = {list}").parse().unwrap();
        let flags: Vec<_> = parsed["flags"].as_array().unwrap().iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(
            flags,
            [
                "--remap-path-prefix=/home/ada/a \"shop\"=/edgefront",
                "--remap-path-prefix=/home/ada/.cargo/registry/src/mirror-1=/cargo",
                "--remap-path-prefix=/home/ada/.cargo/registry/src/two=/cargo",
            ]
        );
    }

    #[test]
    fn a_missing_registry_is_no_error() {
        assert_eq!(registries(Path::new("no-such-directory")).unwrap(), Vec::<PathBuf>::new());
    }
}
