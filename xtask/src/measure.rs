//! `cargo xtask bench`, `cargo xtask soak` and `cargo xtask test --storefronts`. The crate `edgefront-measure`
//! implements them, so that the other commands do not compile it.

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use xtask::{failure::Failure, runner};

const PACKAGE: &str = "edgefront-measure";

/// Arguments that xtask passes on unread.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct ForwardedArguments {
    /// Options of this command; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub options: Vec<OsString>,
}

/// Replaces this process with `cargo run` of the measuring program.
///
/// # Errors
/// Always, because this function returns only if cargo does not start.
pub fn exec(command: &str, options: &[OsString]) -> Result<(), Failure> {
    runner::enter_workspace()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", PACKAGE]);
    if needs_optimisation(command, options) {
        println!("...  {command}: compiling the load generator with optimisation, two minutes the first time");
        cargo.args(["--profile", "measure"]);
    }
    cargo.arg("--").arg(command).args(options);
    Err(Failure::new(format!("cannot start cargo: {}", cargo.exec()), "install Rust with rustup"))
}

/// Only the benchmark needs optimised code: its load generator, gateway and origin share the CPU with the Workers that
/// it measures. Its `--help` does not.
fn needs_optimisation(command: &str, options: &[OsString]) -> bool {
    command == "bench" && !options.iter().any(|option| option == "--help" || option == "-h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_benchmark_run_is_compiled_with_optimisation() {
        for (command, option, expected) in
            [("bench", "--quick", true), ("bench", "--help", false), ("bench", "-h", false), ("soak", "--every", false)]
        {
            assert_eq!(needs_optimisation(command, &[option.into()]), expected, "{command} {option}");
        }
    }
}
