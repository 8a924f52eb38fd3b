//! A Redis server with the REST gateway in front.

use std::path::{Path, PathBuf};

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use xtask::failure::Failure;

use crate::worker_variables::GATEWAY_TOKEN;

/// A running server and its gateway. Dropping it ends both.
pub struct RestRedis {
    pub gateway: Gateway,
    pub server: Server,
}

impl RestRedis {
    /// Starts the server at `binary` and the gateway. `data` is the directory for an append-only file; None keeps
    /// nothing.
    ///
    /// # Errors
    /// When one of them does not start.
    pub async fn start(binary: &Path, data: Option<PathBuf>) -> Result<Self, Failure> {
        let options =
            ServerOptions { binary: Some(binary.to_owned()), databases: 1, dir: data, ..ServerOptions::default() };
        let server = Server::start(options).map_err(|cause| Failure::new(cause.to_string(), ""))?;
        let gateway = Gateway::start(Options::new(server.url(), GATEWAY_TOKEN)).await;
        let gateway = gateway.map_err(|cause| Failure::new(cause.to_string(), ""))?;
        Ok(Self { gateway, server })
    }
}
