//! A running edgefront for the tests of a package: the Worker in workerd, with an empty Redis. The test starts the shop
//! behind it, at a port that is known before.

use std::path::PathBuf;

use edgefront_gateway::{
    Gateway, Options,
    server::{Server, ServerOptions},
};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};
use xtask::{
    failure::Failure,
    npm,
    process_group::{DrainedGroup, ProcessGroup},
    storefront::free_port,
    worker,
};

/// Starts Workers by lines of JSON, and ends with its standard input.
const MINIFLARE: &str = "tests/storefront/support/miniflare.mjs";
const TOKEN: &str = "the token of the gateway";
const SERVICE_KEY: &str = "the service key of the packages' tests";
/// The key of the tests of all packages.
const ORIGIN_KEY: &str = "the key of the test origin";
/// The paths at which a test places its order.
const CART_ROUTES: &str = "/checkout, /checkout/, /contract/order";

/// A running edgefront. Dropping it ends all of its processes.
pub struct Edgefront {
    url: String,
    origin_port: u16,
    _node: DrainedGroup,
    _gateway: Gateway,
    _server: Server,
}

impl Edgefront {
    /// Starts edgefront with an empty Redis of the server `binary`.
    ///
    /// # Errors
    /// When Redis or the Worker does not start.
    pub async fn start(binary: PathBuf) -> Result<Self, Failure> {
        let failed = |cause: &dyn std::fmt::Display| Failure::new(format!("edgefront does not start: {cause}"), "");
        let options = ServerOptions { binary: Some(binary), databases: 1, ..ServerOptions::default() };
        let server = Server::start(options).map_err(|cause| failed(&cause))?;
        let gateway = Gateway::start(Options::new(server.url(), TOKEN)).await.map_err(|cause| failed(&cause))?;
        let origin_port = free_port()?;
        let variables = json!({
            "UPSTASH_REDIS_REST_URL": gateway.url(),
            "UPSTASH_REDIS_REST_TOKEN": TOKEN,
            "REDIS_TIMEOUT_MS": "5000",
            "SESSION_KEYS": "the session key of the packages' tests",
            "SERVICE_KEY": SERVICE_KEY,
            "ORIGIN_KEY": ORIGIN_KEY,
            "ORIGIN_URL": format!("http://127.0.0.1:{origin_port}"),
            "CART_ROUTES": CART_ROUTES,
        });
        let mut script = Command::new(npm::node()?);
        script.arg(MINIFLARE);
        let mut group = ProcessGroup::start_with_input(script)?;
        let line = json!({"id": 1, "bundle": worker::directory()?, "vars": variables});
        let input = group.input().ok_or_else(|| failed(&"no pipe to Node.js"))?;
        input.write_all(format!("{line}\n").as_bytes()).await.map_err(|cause| failed(&cause))?;
        let started = group.wait_for(url_or_error).await.map_err(|log| failed(&log))?;
        let url = started.map_err(|error| failed(&error))?;
        Ok(Self { url, origin_port, _node: group.drain(|_| ()), _gateway: gateway, _server: server })
    }

    /// The variables of the environment for a package's test.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("EDGEFRONT_URL", self.url.clone()),
            ("EDGEFRONT_SERVICE_KEY", SERVICE_KEY.to_owned()),
            ("EDGEFRONT_ORIGIN_PORT", self.origin_port.to_string()),
        ]
    }
}

/// The Worker's URL, or the error, if the line has one of them.
fn url_or_error(line: &str) -> Option<Result<String, String>> {
    let message: Value = serde_json::from_str(line).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    text(&message["urls"][0]).map(Ok).or_else(|| text(&message["error"]).map(Err))
}
