//! What a run leaves for readers: `docs/soak.md`.

use std::fs;

use super::{Arguments, tally::Tally};
use xtask::failure::Failure;

const FILE: &str = "docs/soak.md";

/// # Errors
/// When it can not be written.
pub fn write(arguments: &Arguments, tally: &Tally) -> Result<(), Failure> {
    let Arguments { minutes, every, visitors, .. } = arguments;
    let text = format!(
        "\
# What a shop goes through

`cargo xtask soak --write-docs` writes this page, and fails if anything below was lost. {visitors} visitors shopped for {minutes} minutes in raw
workerd, in front of a Valkey with an append-only file. Redis was killed (SIGKILL) every {every} s and was away for 3 s each time; the Worker was killed
once. The default deadline for Redis, 300 ms, held.

Each visitor looks at pages of 20 KB, puts things into the cart, buys (an order reported by the service), logs out and in again, and compares the cart
with what was accepted: a write that was refused (503) or got no answer was sent again, the same as before, until it was accepted, and then it must
have happened once. After a logout the old cookie must be nobody's. The memory is that of the Worker's whole process: where nobody limits V8 it
collects late, and levels at some 400 MB (46,000 pages at once brought it to 406 MB, 22,000 more to 407).

{tally}
"
    );
    fs::write(FILE, text).map_err(|cause| Failure::file(FILE, &cause))?;
    println!("written: {FILE}");
    Ok(())
}
