//! Limits the size of the deployed Worker, because an isolate fetches and compiles all of it at its start.

use std::{env, fs, io::Write, path::PathBuf};

use flate2::{Compression, write::GzEncoder};

/// The largest allowed size with the demo shop, gzipped, in bytes. `xtask/src/size.rs` limits the Worker without it.
const LIMIT: usize = 696_600;

#[test]
fn the_worker_in_workerd_is_within_its_size_limit() {
    let bundle = env::var_os("EDGEFRONT_BUNDLE").expect("EDGEFRONT_BUNDLE: use cargo xtask test");
    let wasm = fs::read(PathBuf::from(bundle).join("index_bg.wasm")).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&wasm).unwrap();
    let gzipped = gzip.finish().unwrap().len();
    assert!(gzipped <= LIMIT, "{gzipped} bytes gzipped, {} as they are, at most {LIMIT}", wasm.len());
}
