//! What a run leaves for readers: `docs/bench.md` with all figures, `docs/bench.svg`, and the ratios in the README, between two marks.

use std::{fmt::Write as _, fs};

use super::{plot, report, results::Results};
use xtask::failure::Failure;

const BEGIN: &str = "<!-- cargo xtask bench --write-docs -->\n";
const END: &str = "<!-- end -->\n";

/// Writes all three.
///
/// # Errors
/// When one can not be written, or the README has lost its marks.
pub fn write(results: &Results) -> Result<(), Failure> {
    save("docs/bench.md", &page(results))?;
    save("docs/bench.svg", &plot::svg(results))?;
    let readme = fs::read_to_string("README.md").map_err(|cause| Failure::file("README.md", &cause))?;
    let readme = replaced(&readme, &format!("{}\n{}\n", report::ratios(results), machine()))
        .ok_or_else(|| Failure::new(format!("README.md has no {}", BEGIN.trim()), "put the two marks back"))?;
    save("README.md", &readme)?;
    println!("written: docs/bench.md, docs/bench.svg, README.md");
    Ok(())
}

fn save(path: &str, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|cause| Failure::file(path, &cause))
}

/// `text` with something else between the marks; None without them.
fn replaced(text: &str, between: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{between}{END}{after}"))
}

fn page(results: &Results) -> String {
    let mut page = format!("{INTRODUCTION}\n{}\n{}\n", report::ratios(results), machine());
    for workload in results.workloads() {
        let _ = write!(page, "\n## {}\n\n{}", workload.title(), report::figures(results, workload));
    }
    let _ = write!(page, "\n{}\n", report::legend(results));
    page
}

/// On what it was measured, as far as it matters.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("Measured on {cores} cores, which Worker, Redis, gateway, origin and load share.")
}

const INTRODUCTION: &str = "\
# How fast it is

`cargo xtask bench --write-docs` writes this page. One run measures all candidates in raw workerd, in rounds that interleave them; figures
are medians of the rounds, ratios medians of the ratios within a round. Each candidate has a Valkey and a REST gateway of its own; 1,000
visitors are signed in, 100 items are popular, pages have 20 KB.

- `edgefront`: the release bundle, in front of an origin that answers at once.
- `book`: the chapter with Hono and `@upstash/redis`, call by call. `pipelined`: with the client's auto-pipelining. `eval`: tuned by hand,
  one script for each request, the client without anything that is not needed. They check no signature and no expiry of a session, know
  neither stale pages nor leases nor purges, share one render with nobody, and remember nothing: edgefront asks Redis for a page it has shown
  once in 2.5 s (`PAGE_MEMORY`), for a row once a second (`ROW_MEMORY`). Sources: [benches/peers](../benches/peers).
- `bare-rust`, `bare-js`: Workers that touch nothing and answer a page of 20 KB: the platform's limit.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let text = format!("before\n{BEGIN}old\n{END}after\n");
        assert_eq!(replaced(&text, "new\n"), Some(format!("before\n{BEGIN}new\n{END}after\n")));
        assert_eq!(replaced("no marks", "new\n"), None);
    }
}
