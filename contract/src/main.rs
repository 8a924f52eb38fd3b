//! Checks an origin against the contract between edgefront and its storefront (`docs/api.md`). `cargo xtask contract`
//! runs this program with its arguments.
//!
//! It sends the requests that edgefront would send, and forged ones, and reads the `Edge-*` headers of the responses
//! with the parsers of the Worker.
//!
//! In reading order:
//! - [`arguments`]: the command line.
//! - [`origin`]: requests to the origin. [`form`]: hidden fields and cookies of its forms.
//! - [`clause`]: the result of one check. [`clauses`]: the checks, in the order of the report.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod arguments;
mod clause;
mod clauses;
mod form;
mod origin;

use std::process::ExitCode;

use xtask::{failure::Failure, runner};

use self::{arguments::ContractArguments, clause::Report};

fn main() -> ExitCode {
    let arguments: ContractArguments = match runner::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match arguments.key_path() {
        // The runner changes the working directory, so the path must be absolute.
        Ok(key_file) => runner::run(check(arguments, key_file)),
        Err(failure) => runner::exit_code(Err(failure)),
    }
}

async fn check(arguments: ContractArguments, key_file: Option<std::path::PathBuf>) -> Result<(), Failure> {
    let key = arguments::read_key(key_file)?;
    let mut report = Report::default();
    clauses::check_all(&arguments, key, &mut report).await?;
    println!("{report}");
    if report.is_broken() { Err(Failure::already_printed()) } else { Ok(()) }
}
