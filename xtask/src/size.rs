//! `cargo xtask size`: checks the size of the Worker without the demo shop. The storefront test `size` checks the
//! Worker with the demo shop.

use std::{fs, io::Write};

use flate2::{Compression, write::GzEncoder};
use tokio::try_join;
use xtask::{failure::Failure, npm, tools, worker};

/// The largest allowed size of the gzipped wasm, bytes. Histograms, errors, roll-ups and the metrics for Prometheus
/// take 23 KB of it, the actions of the dashboard and the real reasons of explanations 9 KB, the logout of a named user
/// 0.5 KB, lookups in the nearest read region 1.1 KB, the account in the request of its store and pages in the memory
/// of JavaScript 2.7 KB, reused read buffers and the rest of pages that are too large 0.8 KB, tokens of forms and scripts
/// 6.9 KB. Fragments that all visitors share or that have ESI of their own, refused ESI, messages after a redirect, and home
/// tiers of another version take 2.3 KB. Pages that the home tier does not hand over whole, and a wrong binding to it, take
/// 0.6 KB. These parts follow:
/// - the visitor's own request after a refused shared render: 1.1 KB
/// - scripts whose request header selects the response, and data of pages whose path ends with a slash: 0.6 KB
/// - more spellings of paths and headers, holes for the shop's own pages only, and strings within strings of scripts: 0.7 KB
/// - at most 16 renders of a page after `PAGE_WAIT_MS`: 0.2 KB
/// - damaged keys, clocks that were set back, and lengths that do not delimit a body: 0.5 KB
/// - futures in boxes, for less memory in each request in progress: 0.2 KB
/// - rows that always fail: 0.1 KB
/// - WebSockets: 0.3 KB
/// - the ids of sessions, which no stored page contains: 1.0 KB
const MAX_GZIPPED_BYTES: usize = 552_300;
/// The directory of this build. `build/` keeps the Worker with the demo shop.
const DIRECTORY: &str = "target/without-demo";

/// Builds the Worker without the cargo feature `demo` and measures it.
///
/// # Errors
/// When the crate does not compile, or the Worker is too large.
pub async fn run() -> Result<(), Failure> {
    let (tools, ()) = try_join!(tools::install(), npm::install_if_missing())?;
    worker::bundle_without_demo(&tools, DIRECTORY).await?;
    let path = format!("{DIRECTORY}/index_bg.wasm");
    let failed = |cause| Failure::file(&path, &cause);
    let wasm = fs::read(&path).map_err(failed)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&wasm).map_err(failed)?;
    let gzipped = encoder.finish().map_err(failed)?.len();
    let sizes = format!("{gzipped} bytes gzipped (at most {MAX_GZIPPED_BYTES}), {} bytes uncompressed", wasm.len());
    if gzipped > MAX_GZIPPED_BYTES {
        let cause = format!("the Worker is too large: {sizes}");
        return Err(Failure::new(cause, "find the change that made it larger, or raise the limit"));
    }
    println!("{sizes}");
    Ok(())
}
