//! A candidate in raw workerd: its modules and a configuration in a directory of `target/bench`, and the process that serves them.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{process::Command, task::JoinHandle, time};

use super::process::Process;
use xtask::{children::Group, failure::Failure};

/// What a Worker may take to start. Half a second alone.
const START: Duration = Duration::from_secs(30);

/// A module, as Workers know it.
pub struct Module {
    /// As others import it; the first module of a Worker is its entry.
    pub name: String,
    pub file: PathBuf,
}

/// A running Worker; ends when dropped.
pub struct Worker {
    pub address: SocketAddr,
    pub process: Process,
    log: JoinHandle<()>,
}

impl Worker {
    /// Starts `modules` with `variables`, all of its files in `directory`.
    ///
    /// # Errors
    /// When it does not start; with its own words.
    pub async fn start(directory: &Path, modules: &[Module], variables: &[(String, String)]) -> Result<Self, Failure> {
        let failed = |cause| Failure::file(directory, &cause);
        fs::create_dir_all(directory).map_err(failed)?;
        let mut embedded = String::new();
        for Module { name, file } in modules {
            let kind = if file.extension().is_some_and(|extension| extension == "wasm") { "wasm" } else { "esModule" };
            let _ = write!(embedded, "(name = {name:?}, {kind} = embed {name:?}), ");
            // Beside the configuration: it can name no other place.
            let copy = directory.join(name);
            if *file != copy {
                fs::copy(file, copy).map_err(|cause| Failure::file(file, &cause))?;
            }
        }
        let mut bindings = String::new();
        for (name, value) in variables {
            let _ = write!(bindings, "(name = {name:?}, text = {value:?}), ");
        }
        fs::write(directory.join("config.capnp"), configuration(&embedded, &bindings)?).map_err(failed)?;
        let mut workerd = Command::new(binary()?);
        // It tells its port on a descriptor that we name; 1 is the one that we read.
        workerd.args(["serve", "config.capnp", "--control-fd=1"]).current_dir(directory);
        let mut group = Group::start(workerd)?;
        let mut log = File::create(directory.join("log.txt")).map_err(failed)?;
        let listening = async {
            let mut said = String::new();
            while let Some(line) = group.line().await {
                let _ = writeln!(log, "{line}");
                if let Some(port) = port(&line) {
                    return Ok(port);
                }
                said.push_str(&line);
                said.push('\n');
            }
            Err(Failure::new(format!("{}: {}", directory.display(), said.trim()), ""))
        };
        let silent = || Failure::new(format!("{}: workerd does not start", directory.display()), "");
        let port = time::timeout(START, listening).await.map_err(|_| silent())??;
        let process = Process(group.leader().ok_or_else(silent)?);
        // The group lives in the task that reads what it says: a full pipe would stop it.
        let log = tokio::spawn(async move {
            while let Some(line) = group.line().await {
                let _ = writeln!(log, "{line}");
            }
        });
        Ok(Self { address: (Ipv4Addr::LOCALHOST, port).into(), process, log })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.log.abort();
    }
}

/// Of the line in which workerd tells that it listens.
fn port(line: &str) -> Option<u16> {
    let told: serde_json::Value = serde_json::from_str(line).ok()?;
    u16::try_from(told.get("port")?.as_u64()?).ok()
}

fn configuration(modules: &str, bindings: &str) -> Result<String, Failure> {
    let text = fs::read_to_string("wrangler.toml").map_err(|cause| Failure::file("wrangler.toml", &cause))?;
    let date = text.lines().find_map(|line| line.strip_prefix("compatibility_date = ")).unwrap_or_default();
    Ok(format!(
        r#"using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [{modules}],
      compatibilityDate = {date},
      bindings = [{bindings}],
      globalOutbound = "machine",
    )),
    (name = "machine", network = (allow = ["private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
"#
    ))
}

/// The program of npm's package for this platform: `node_modules/.bin/workerd` is a script around it, whose CPU time is another process'.
fn binary() -> Result<PathBuf, Failure> {
    let packages = "node_modules/@cloudflare";
    let found = fs::read_dir(packages).map_err(|cause| Failure::file(packages, &cause))?;
    let mut binaries = found.flatten().map(|entry| entry.path().join("bin/workerd")).filter(|binary| binary.is_file());
    let binary = binaries.next().ok_or_else(|| Failure::new("npm has no workerd for this platform", ""))?;
    std::path::absolute(&binary).map_err(|cause| Failure::file(&binary, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_told_in_json() {
        assert_eq!(port(r#"{"event":"listen","socket":"http","port":41234}"#), Some(41234));
        assert_eq!(port("warning: something else"), None);
    }
}
