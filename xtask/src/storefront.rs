//! Third-party storefronts for tests and local use. `storefronts/NAME` has two scripts: `install DIR` installs pinned
//! versions and fills the shop, `start DIR PORT PUBLIC_URL` serves it. `presets/NAME.env` has its rules.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{net::TcpStream, process::Command, time};

use crate::{
    failure::Failure,
    process_group::{DrainedGroup, ProcessGroup},
    steps::{Done, run_step},
};

const SCRIPTS: &str = "storefronts";
/// Each storefront is installed into a folder of its name.
const INSTALLATIONS: &str = ".cache/storefronts";
/// The file that the script `install` writes at its end.
const INSTALLED: &str = "installed";
/// The file that names the directory of the installation.
const LOCATION: &str = "location";
/// The slowest storefront, EverShop, starts within 15 s on two idle cores.
const START_TIMEOUT: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// An installed storefront.
#[derive(Debug, Clone)]
pub struct Storefront {
    name: String,
    directory: PathBuf,
}

/// A storefront that serves. Dropping it ends its processes.
pub struct RunningStorefront {
    _group: DrainedGroup,
}

/// The names of all storefronts, sorted.
#[must_use]
pub fn names() -> Vec<String> {
    folders_with(Path::new(SCRIPTS), "start")
}

impl Storefront {
    /// Installs the storefront `name`, unless it is installed already.
    ///
    /// # Errors
    /// When no storefront has this name, or its script fails.
    pub async fn install(name: &str) -> Result<Self, Failure> {
        if !names().iter().any(|known| known == name) {
            return Err(Failure::new(
                format!("no storefront {name:?}"),
                format!("choose from: {}", names().join(", ")),
            ));
        }
        let file_error = |cause| Failure::file(INSTALLATIONS, &cause);
        let directory = std::path::absolute(Path::new(INSTALLATIONS).join(name)).map_err(file_error)?;
        run_step(name, async |step| {
            claim(&directory).map_err(file_error)?;
            let mut script = Command::new(Path::new(SCRIPTS).join(name).join("install"));
            script.arg(&directory);
            step.run_program(script, "follow the message above, then run the command again").await?;
            let summary = format!("installed in {INSTALLATIONS}/{name}");
            Ok(Done { summary, value: Self { name: name.to_owned(), directory: directory.clone() } })
        })
        .await
    }

    /// Starts the storefront on 127.0.0.1:`port` and waits until it listens. Its pages name `public_url`.
    ///
    /// # Errors
    /// When the script ends, or the storefront does not listen in time.
    pub async fn start(&self, port: u16, public_url: &str) -> Result<RunningStorefront, Failure> {
        let mut script = Command::new(Path::new(SCRIPTS).join(&self.name).join("start"));
        script.arg(&self.directory).arg(port.to_string()).arg(public_url);
        let mut group = ProcessGroup::start(script)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listening = async {
            while TcpStream::connect(address).await.is_err() {
                time::sleep(POLL_INTERVAL).await;
            }
        };
        let failed = |output: &str| {
            let cause = format!("{} does not start: {}", self.name, output.trim());
            Failure::new(cause, format!("read the logs in {}", self.directory.display()))
        };
        tokio::select! {
            () = listening => {}
            Err(output) = group.wait_for(|_| None::<()>) => return Err(failed(&output)),
            () = time::sleep(START_TIMEOUT) => return Err(failed("it does not listen")),
        }
        Ok(RunningStorefront { _group: group.drain(|_| ()) })
    }
}

/// Creates the directory of an installation and records its location in it. If the installation was copied or moved
/// here, removes the mark of the script `install`, which then installs from scratch: virtual environments and bundles
/// contain absolute paths, so a copy would use the original's files.
fn claim(directory: &Path) -> io::Result<()> {
    let location = format!("{}\n", directory.display());
    let file = directory.join(LOCATION);
    if fs::read_to_string(&file).is_ok_and(|recorded| recorded != location) {
        match fs::remove_file(directory.join(INSTALLED)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
    }
    fs::create_dir_all(directory)?;
    fs::write(file, location)
}

/// The names of the folders in `directory` that contain the script, sorted.
#[must_use]
pub fn folders_with(directory: &Path, script: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.path().join(script).is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// A free port of 127.0.0.1. Another program can take it before its use.
///
/// # Errors
/// When there is none.
pub fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener
        .map(|address| address.port())
        .map_err(|cause| Failure::new(format!("no free port: {cause}"), "stop a program that uses many ports"))
}
