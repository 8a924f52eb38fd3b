//! Publishes a run: `docs/bench.md` with all metrics, `docs/bench.svg`, and the ratios between two markers of the
//! README.

use std::{fmt::Write as _, fs};

use xtask::failure::Failure;

use super::{bar_chart, report, results::Results};

const BEGIN_MARKER: &str = "<!-- cargo xtask bench --write-docs -->\n";
const END_MARKER: &str = "<!-- end -->\n";

/// Writes all three files.
///
/// # Errors
/// When a file cannot be written, or the README has no markers.
pub fn write(results: &Results) -> Result<(), Failure> {
    save("docs/bench.md", &page(results))?;
    save("docs/bench.svg", &bar_chart::svg(results))?;
    let readme = fs::read_to_string("README.md").map_err(|cause| Failure::file("README.md", &cause))?;
    let ratios = format!("{}\n{}\n", report::ratios(results), machine());
    let readme = replace_between_markers(&readme, &ratios).ok_or_else(|| {
        let cause = format!("README.md does not contain the markers {} and {}", BEGIN_MARKER.trim(), END_MARKER.trim());
        Failure::new(cause, "restore both lines")
    })?;
    save("README.md", &readme)?;
    println!("written: docs/bench.md, docs/bench.svg, README.md");
    Ok(())
}

fn save(path: &str, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|cause| Failure::file(path, &cause))
}

/// `text` with `content` between the markers; `None` without markers.
fn replace_between_markers(text: &str, content: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN_MARKER)?;
    let (_, after) = rest.split_once(END_MARKER)?;
    Some(format!("{before}{BEGIN_MARKER}{content}{END_MARKER}{after}"))
}

fn page(results: &Results) -> String {
    let mut page = format!("{INTRODUCTION}\n{}\n{}\n", report::ratios(results), machine());
    for workload in results.workloads() {
        let _ = write!(page, "\n## {}\n\n{}", workload.title(), report::metrics_table(results, workload));
    }
    let _ = write!(page, "\n{}\n", report::legend(results));
    page
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("Measured on {cores} cores, which Worker, Redis, gateway, origin and load generator share.")
}

const INTRODUCTION: &str = "\
# Benchmark

This page compares the speed, the CPU time and the Redis load of edgefront with other Workers. It is for readers who
decide about edgefront, and for contributors. `cargo xtask bench --write-docs` writes it. The first table has the ratios;
÷ is the ratio of edgefront to the other Worker. The other tables have the figures of each action; the last paragraph
explains their columns.

One run measures all candidates in raw workerd, in interleaved rounds. Figures are medians over the rounds; ratios are
medians of the ratios within each round. Each candidate has its own Valkey and REST gateway. 1,000 visitors are signed
in, 100 items are popular, and a page has 20 KB.

- `edgefront`: the release bundle, in front of an origin that responds immediately.
- `book`, `pipelined`, `eval`: the peers, the book's chapter with Hono and `@upstash/redis`. `book` sends one request
  per command. `pipelined` uses the client's auto-pipelining. `eval` is tuned by hand: one script per request, and a
  client reduced to what it needs. The peers check neither the signature nor the expiry of a session. They have no stale
  pages, leases, purges or shared renders. They also have no memory cache: edgefront asks Redis once in 2.5 s for a page
  it has shown (`PAGE_MEMORY`), and once a second for a row (`ROW_MEMORY`). Sources: [benches/peers](../benches/peers).
- `bare-rust`, `bare-js`: Workers that do nothing but respond with a page of 20 KB. They show the limit of the platform.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_markers_changes() {
        let text = format!("before\n{BEGIN_MARKER}old\n{END_MARKER}after\n");
        let expected = format!("before\n{BEGIN_MARKER}new\n{END_MARKER}after\n");
        assert_eq!(replace_between_markers(&text, "new\n"), Some(expected));
        assert_eq!(replace_between_markers("no markers", "new\n"), None);
    }
}
