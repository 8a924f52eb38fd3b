//! A Worker in raw workerd: its modules and its configuration in a directory, and the process that serves them.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{process::Command, time};
use xtask::{
    failure::Failure,
    process_group::{DrainedGroup, ProcessGroup},
    variables::Variables,
    wrangler_toml::WranglerToml,
};

use crate::process::Process;

/// workerd alone starts within half a second.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A module of a Worker.
pub struct WorkerModule {
    /// The name under which other modules import it. The first module of a Worker is its entry. `.wasm` and `.txt` name
    /// the kinds of modules other than scripts.
    pub name: String,
    pub file: PathBuf,
}

impl WorkerModule {
    /// The module `name` whose file has the same name in `directory`.
    pub fn in_directory(directory: &Path, name: &str) -> Self {
        Self { name: name.to_owned(), file: directory.join(name) }
    }

    /// The two modules of a Worker in Rust.
    pub fn wasm_bundle(directory: &Path) -> Vec<Self> {
        ["index.js", "index_bg.wasm"].map(|name| Self::in_directory(directory, name)).into()
    }
}

/// A running Worker. Dropping it ends workerd.
pub struct RunningWorker {
    pub address: SocketAddr,
    pub process: Process,
    _group: DrainedGroup,
}

impl RunningWorker {
    /// Starts `modules` with `variables`. All files, including the log, are in `directory`.
    ///
    /// # Errors
    /// When workerd does not start; the failure contains its output.
    pub async fn start(directory: &Path, modules: &[WorkerModule], variables: &Variables) -> Result<Self, Failure> {
        let file_error = |cause| Failure::file(directory, &cause);
        fs::create_dir_all(directory).map_err(file_error)?;
        write_configuration(directory, modules, variables)?;
        let mut workerd = Command::new(workerd_binary()?);
        // workerd reports its port on the given file descriptor; 1 is standard output, which the group reads.
        workerd.args(["serve", "config.capnp", "--control-fd=1"]).current_dir(directory);
        let mut group = ProcessGroup::start(workerd)?;
        let mut log = File::create(directory.join("log.txt")).map_err(file_error)?;
        let mut write_log = move |line: &str| {
            let _ = writeln!(log, "{line}");
        };
        let listening = group.wait_for(|line| {
            write_log(line);
            listen_port(line)
        });
        let silent = || not_started(directory, "no answer");
        let listening = time::timeout(START_TIMEOUT, listening).await.map_err(|_| silent())?;
        let port = listening.map_err(|output| not_started(directory, output.trim()))?;
        let process = Process { id: group.leader_id().ok_or_else(silent)? };
        Ok(Self { address: (Ipv4Addr::LOCALHOST, port).into(), process, _group: group.drain(write_log) })
    }
}

fn not_started(directory: &Path, output: &str) -> Failure {
    Failure::new(
        format!("workerd does not start in {}: {output}", directory.display()),
        "correct what its output names; config.capnp and log.txt are in that directory",
    )
}

/// The port in the line with which workerd reports that it listens.
fn listen_port(line: &str) -> Option<u16> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    u16::try_from(event.get("port")?.as_u64()?).ok()
}

/// Writes config.capnp into `directory` and copies the modules beside it, because the configuration can name only files
/// there.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write_configuration(directory: &Path, modules: &[WorkerModule], variables: &Variables) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|cause| Failure::file(directory, &cause))?;
    let mut embedded = String::new();
    for WorkerModule { name, file } in modules {
        let kind = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("wasm") => "wasm",
            Some("txt") => "text",
            _ => "esModule",
        };
        let _ = write!(embedded, "(name = {name:?}, {kind} = embed {name:?}), ");
        let copy = directory.join(name);
        if *file != copy {
            fs::copy(file, copy).map_err(|cause| Failure::file(file, &cause))?;
        }
    }
    let mut bindings = String::new();
    for (name, value) in variables {
        let _ = write!(bindings, "(name = {name:?}, text = {value:?}), ");
    }
    let path = directory.join("config.capnp");
    fs::write(&path, configuration(&embedded, &bindings)?).map_err(|cause| Failure::file(&path, &cause))
}

fn configuration(modules: &str, bindings: &str) -> Result<String, Failure> {
    let file = WranglerToml::read()?;
    let date = file.compatibility_date()?;
    Ok(format!(
        r#"using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [{modules}],
      compatibilityDate = {date:?},
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

/// The binary in npm's package for this platform. `node_modules/.bin/workerd` is a script that starts it as a child,
/// and the CPU time of the script is not that of workerd.
///
/// # Errors
/// When the package is missing.
pub fn workerd_binary() -> Result<PathBuf, Failure> {
    let packages = "node_modules/@cloudflare";
    let entries = fs::read_dir(packages).map_err(|cause| Failure::file(packages, &cause))?;
    let mut binaries =
        entries.flatten().map(|entry| entry.path().join("bin/workerd")).filter(|binary| binary.is_file());
    let missing = || Failure::new("npm has no workerd for this platform", "use Linux or macOS on x86-64 or ARM64");
    let binary = binaries.next().ok_or_else(missing)?;
    std::path::absolute(&binary).map_err(|cause| Failure::file(&binary, &cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_json() {
        assert_eq!(listen_port(r#"{"event":"listen","socket":"http","port":41234}"#), Some(41234));
        assert_eq!(listen_port("warning: something else"), None);
    }
}
