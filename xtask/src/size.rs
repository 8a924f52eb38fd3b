//! `cargo xtask size`: the Worker without the demo shop, built and weighed. The one with it is held by the test `size` of the storefront's.

use std::{fs, io::Write};

use flate2::{Compression, write::GzEncoder};
use tokio::try_join;

use xtask::{failure::Failure, npm, tools, worker};

/// Gzipped, at the most.
const LIMIT: usize = 391_000;
/// The Worker in build/ stays as it is.
const BUNDLE: &str = "target/without-demo";

/// Builds the Worker without the feature `demo`, and measures it.
///
/// # Errors
/// When it does not compile, or is too large.
pub async fn run() -> Result<(), Failure> {
    let (tools, ()) = try_join!(tools::install(), npm::install_if_missing())?;
    worker::build_without_demo(&tools, BUNDLE).await?;
    let path = format!("{BUNDLE}/index_bg.wasm");
    let failed = |cause| Failure::file(&path, &cause);
    let wasm = fs::read(&path).map_err(failed)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&wasm).map_err(failed)?;
    let gzipped = gzip.finish().map_err(failed)?.len();
    let told = format!("{gzipped} bytes gzipped, {} as they are, at the most {LIMIT}", wasm.len());
    if gzipped > LIMIT {
        return Err(Failure::new(format!("the Worker: {told}"), "find what made it larger, or raise the limit"));
    }
    println!("{told}");
    Ok(())
}
