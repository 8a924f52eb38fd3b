//! Limits the size of the deployed Worker, because an isolate fetches and compiles all of it at its start.

use std::{env, fs, io::Write, path::PathBuf};

use flate2::{Compression, write::GzEncoder};

/// The largest allowed size, gzipped, in bytes. Without the demo shop: `xtask/src/size.rs`. The demo shop's search,
/// filters, variants and data for search engines take 34 KB of it; password resets that end all sessions, saved
/// addresses with their form, and the flash prices of lists take 6.5 KB. The adaptive pace of views takes 4.5 KB, the
/// sync tokens of read regions 4.6 KB, lookups in the nearest region 1.1 KB; histograms, errors, roll-ups and the metrics
/// for Prometheus take 23 KB, the actions of the dashboard and the real reasons of explanations 9 KB, sessions of several
/// layouts 4.6 KB, the account in the request of its store and pages in the memory of JavaScript 2.7 KB,
/// reused read buffers and the rest of pages that are too large 0.8 KB.
const LIMIT: usize = 664_500;

#[test]
fn the_worker_in_workerd_is_within_its_size_limit() {
    let bundle = env::var_os("EDGEFRONT_BUNDLE").expect("EDGEFRONT_BUNDLE: use cargo xtask test");
    let wasm = fs::read(PathBuf::from(bundle).join("index_bg.wasm")).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&wasm).unwrap();
    let gzipped = gzip.finish().unwrap().len();
    assert!(gzipped <= LIMIT, "{gzipped} bytes gzipped, {} as they are, at most {LIMIT}", wasm.len());
}
