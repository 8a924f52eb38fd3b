//! `cargo xtask bench` and `cargo xtask soak`: another program, so that whoever does not measure does not compile what that needs.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use xtask::{failure::Failure, runner};

/// What the program takes.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Its options: --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes `cargo run` of the program that measures, with `command` and its arguments; the result is why not.
pub fn replace(command: &str, Arguments { arguments }: Arguments) -> Result<(), Failure> {
    runner::enter_workspace()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", "edgefront-measure"]);
    // The load, the gateway and the origin share the machine with what is measured.
    if command == "bench" && !arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("...  bench: compiling what measures, optimised");
        cargo.args(["--profile", "measure"]);
    }
    cargo.arg("--").arg(command).args(arguments);
    Err(Failure::new(format!("cargo can not be started: {}", cargo.exec()), "install Rust with rustup"))
}
