//! Publishes a run: `docs/soak.md`.

use std::fs;

use xtask::failure::Failure;

use super::{SoakArguments, tally::Tally};

const FILE: &str = "docs/soak.md";

/// Writes the page.
///
/// # Errors
/// When the file cannot be written.
pub fn write(arguments: &SoakArguments, tally: &Tally) -> Result<(), Failure> {
    let SoakArguments { minutes, every, visitors, .. } = arguments;
    let text = format!(
        "\
# Soak test

This page shows whether pages, carts and orders survive while Redis and the Worker are killed. It is for operators who
judge the [guarantees](faults.md). `cargo xtask soak --write-docs` writes it. The command fails if anything below was
lost.

{visitors} visitors shopped for {minutes} minutes in raw workerd, in front of a Valkey with an append-only file. Redis was killed
(SIGKILL) every {every} s and was down for 3 s each time. The Worker was killed once. The timeout for Redis was the default
of 300 ms.

Each visitor looks at pages of 20 KB, adds items to the cart, buys (the service reports the order), logs out and in
again, and compares the cart with the accepted writes. A write that got 503 or no response was sent again unchanged
until it was accepted. Then it must have happened exactly once. After a logout, the old cookie must not belong to any
user.

Other clients share carts and compete for the pieces of flash sales. They give up requests after 50 ms to 2 s, and a
checker looks for an order of all operations that explains what they saw ([proofs](proofs.md#histories)).

The memory is that of the Worker's whole process. V8 has no memory limit here, so it collects late and levels off
at some 400 MB (46,000 pages at once brought it to 406 MB, 22,000 more to 407).

{tally}
"
    );
    fs::write(FILE, text).map_err(|cause| Failure::file(FILE, &cause))?;
    println!("written: {FILE}");
    Ok(())
}
