//! The Redis data of `dev`. Each directory records the server that wrote it, because another server may not read it:
//! Redis refuses the files of Valkey and of newer versions. `dev` starts the recorded server. If no server reads the
//! data, `dev` moves them aside and starts with none.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use edgefront_gateway::server::{Server, ServerError, ServerOptions};
use xtask::{failure::Failure, program};

/// The file that records the server, inside the directory that it describes.
const RECORD: &str = "written-by";
/// The directory that a server creates for its append-only files.
const APPEND_ONLY: &str = "appendonlydir";

/// A running server, and messages for the user.
pub struct Started {
    pub server: Server,
    pub notes: Vec<String>,
}

/// A server binary and the first line that it prints for `--version`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Writer {
    binary: PathBuf,
    version: String,
}

/// Starts a server with the data in `directory`: the server that wrote them if it is still installed, otherwise
/// `selected`.
///
/// # Errors
/// When no server starts. The data stay in `directory`.
pub fn start(directory: &Path, selected: &Path) -> Result<Started, Failure> {
    fs::create_dir_all(directory).map_err(|cause| Failure::file(directory, &cause))?;
    let mut notes = Vec::new();
    let (recorded, selected) = (Writer::recorded(directory), Writer::new(selected));
    let writer = match &recorded {
        Some(recorded) if recorded.version != selected.version && recorded.is_installed() => {
            notes.push(format!(
                "using {} instead of {}, because it wrote the data in {}",
                recorded.binary.display(),
                selected.binary.display(),
                directory.display()
            ));
            recorded
        }
        _ => &selected,
    };
    let server = match start_server(&writer.binary, directory) {
        Err(ServerError::Ended { .. }) if directory.join(APPEND_ONLY).exists() => {
            start_without_data(directory, &writer.binary, recorded.as_ref(), &mut notes)?
        }
        outcome => outcome.map_err(|cause| failure(directory, &cause))?,
    };
    writer.record(directory)?;
    Ok(Started { server, notes })
}

/// Moves the data aside and starts `binary` with none. If `binary` does not start either, the data are not the cause,
/// and return to their place.
fn start_without_data(
    directory: &Path,
    binary: &Path,
    writer: Option<&Writer>,
    notes: &mut Vec<String>,
) -> Result<Server, Failure> {
    let moved = free_name(directory);
    let file_error = |cause| Failure::file(directory, &cause);
    fs::rename(directory, &moved).map_err(file_error)?;
    fs::create_dir_all(directory).map_err(file_error)?;
    match start_server(binary, directory) {
        Ok(server) => {
            let writer = writer.map_or_else(String::new, |writer| format!(", written by {}", writer.version));
            notes.push(format!("{} cannot read the data in {}{writer}", binary.display(), directory.display()));
            notes.push(format!("moved the data to {}; starting without data", moved.display()));
            notes.push(format!(
                "to use the moved data: stop dev, move them back to {}, and put the server that wrote them first on \
                 the PATH",
                directory.display()
            ));
            Ok(server)
        }
        Err(cause) => {
            fs::remove_dir_all(directory).and_then(|()| fs::rename(&moved, directory)).map_err(file_error)?;
            Err(failure(directory, &cause))
        }
    }
}

fn start_server(binary: &Path, directory: &Path) -> Result<Server, ServerError> {
    Server::start(ServerOptions {
        binary: Some(binary.to_owned()),
        databases: 1,
        dir: Some(directory.to_owned()),
        ..ServerOptions::default()
    })
}

fn failure(directory: &Path, cause: &ServerError) -> Failure {
    let remedy = format!(
        "use another server: --redis-url redis://host:6379; to start without data, move {} elsewhere",
        directory.display()
    );
    Failure::new(cause.to_string(), remedy)
}

/// The first of `redis-1`, `redis-2` … that does not exist.
fn free_name(directory: &Path) -> PathBuf {
    let mut number = 1_u32;
    loop {
        let mut name = directory.as_os_str().to_owned();
        name.push(format!("-{number}"));
        if !Path::new(&name).exists() {
            return name.into();
        }
        number += 1;
    }
}

impl Writer {
    fn new(binary: &Path) -> Self {
        Self { binary: relative(binary), version: program::version(binary).unwrap_or_default() }
    }

    /// The two lines of the record: the path and the version.
    fn recorded(directory: &Path) -> Option<Self> {
        let text = fs::read_to_string(directory.join(RECORD)).ok()?;
        let (binary, version) = text.trim_end().split_once('\n')?;
        Some(Self { binary: binary.into(), version: version.to_owned() })
    }

    fn record(&self, directory: &Path) -> Result<(), Failure> {
        let file = directory.join(RECORD);
        fs::write(&file, format!("{}\n{}\n", self.binary.display(), self.version))
            .map_err(|cause| Failure::file(&file, &cause))
    }

    /// Returns whether the binary still has the recorded version.
    fn is_installed(&self) -> bool {
        program::version(&self.binary).as_ref() == Some(&self.version)
    }
}

/// A path in this checkout relative to it, so that a copied checkout does not use the original's server.
fn relative(binary: &Path) -> PathBuf {
    let in_workspace = env::current_dir().ok().and_then(|root| Some(binary.strip_prefix(root).ok()?.to_owned()));
    in_workspace.unwrap_or_else(|| binary.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
        os::unix::fs::PermissionsExt,
    };

    use edgefront_gateway::server;

    use super::*;

    /// A directory for data and fake servers; removed on drop.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("edgefront-redis-data-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn data(&self) -> PathBuf {
            self.0.join("redis")
        }

        /// A server of version `version` that runs `script` before the real server.
        fn server(&self, version: &str, script: &str) -> PathBuf {
            let path = self.0.join(version);
            let real = server::find_binary().expect("a server: cargo xtask test installs one");
            let text = format!(
                "#!/bin/sh\n[ \"$1\" = --version ] && echo 'Redis server v={version}' && exit\n{script}\nexec {} \"$@\"\n",
                real.display()
            );
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        /// A server that refuses existing data, as Redis 7.0 refuses those of Valkey 9.
        fn older_server(&self) -> PathBuf {
            let script = format!(
                "[ -d {}/{APPEND_ONLY} ] && echo 'Bad file format reading the append only file' && exit 1",
                self.data().display()
            );
            self.server("7.0", &script)
        }

        /// The value of `key` after `commands`.
        fn value(started: &Started, commands: &str) -> String {
            let mut stream = TcpStream::connect(("127.0.0.1", started.server.port())).unwrap();
            write!(stream, "{commands}\r\nGET key\r\nQUIT\r\n").unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        }

        fn entries(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.retain(|name| name.starts_with("redis"));
            names.sort();
            names
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_server_that_wrote_the_data_reads_them_although_another_is_selected() {
        let machine = Machine::new("writer");
        let (newer, older) = (machine.server("9.1", ""), machine.older_server());
        let first = start(&machine.data(), &newer).unwrap();
        assert_eq!(first.notes, Vec::<String>::new());
        Machine::value(&first, "SET key kept");
        drop(first);

        let second = start(&machine.data(), &older).unwrap();
        assert!(Machine::value(&second, "PING").contains("kept"));
        assert!(second.notes[0].contains("because it wrote the data"), "{:?}", second.notes);
        assert_eq!(machine.entries(), ["redis"]);
    }

    #[test]
    fn data_that_no_installed_server_reads_are_moved_aside() {
        let machine = Machine::new("aside");
        let (newer, older) = (machine.server("9.1", ""), machine.older_server());
        let first = start(&machine.data(), &newer).unwrap();
        Machine::value(&first, "SET key kept");
        drop(first);
        fs::remove_file(&newer).unwrap();

        let second = start(&machine.data(), &older).unwrap();
        assert!(!Machine::value(&second, "PING").contains("kept"));
        let notes = second.notes.join("\n");
        assert!(notes.contains("written by Redis server v=9.1") && notes.contains("redis-1"), "{notes}");
        assert_eq!(machine.entries(), ["redis", "redis-1"]);
        drop(second);

        // The advice of the notes works.
        machine.server("9.1", "");
        fs::remove_dir_all(machine.data()).unwrap();
        fs::rename(machine.0.join("redis-1"), machine.data()).unwrap();
        let third = start(&machine.data(), &newer).unwrap();
        assert!(Machine::value(&third, "PING").contains("kept"));
    }

    #[test]
    fn data_stay_in_place_if_the_server_does_not_start_without_them_either() {
        let machine = Machine::new("broken");
        drop(start(&machine.data(), &machine.server("9.1", "")).unwrap());
        let broken = machine.server("9.1", "echo 'no memory'; exit 1");
        let failure = start(&machine.data(), &broken).err().unwrap();
        assert!(failure.cause.contains("no memory") && !failure.remedy.contains("rm "), "{failure}");
        assert!(machine.data().join(APPEND_ONLY).exists());
        assert_eq!(machine.entries(), ["redis"]);
    }

    #[test]
    fn an_upgraded_server_reads_the_data_and_is_recorded() {
        let machine = Machine::new("upgrade");
        drop(start(&machine.data(), &machine.server("9.1", "")).unwrap());
        let upgraded = machine.server("9.2", "");
        fs::remove_file(machine.0.join("9.1")).unwrap();
        let started = start(&machine.data(), &upgraded).unwrap();
        assert_eq!(started.notes, Vec::<String>::new());
        assert_eq!(Writer::recorded(&machine.data()), Some(Writer::new(&upgraded)));
    }
}
