//! `cargo xtask size`: checks the size of the Worker without the demo shop. The storefront test `size` checks the
//! Worker with the demo shop.

use std::{fs, io::Write};

use flate2::{Compression, write::GzEncoder};
use tokio::try_join;
use xtask::{failure::Failure, npm, tools, worker};

/// The largest allowed size of the gzipped wasm, bytes: the measured size, rounded up. An isolate fetches and compiles all of it
/// when it starts. So a change that raises the limit says in its commit how many bytes it adds, and why they are worth it.
const MAX_GZIPPED_BYTES: usize = 565_800;
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
