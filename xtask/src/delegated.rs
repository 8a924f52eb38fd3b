//! Delegated commands. Crates of their own implement them, so that the other commands do not compile them: `bench`,
//! `soak` and `test --storefronts` (`edgefront-measure`), `simulate` (`edgefront-simulate`), `doctor`
//! (`edgefront-doctor`), `contract` (`edgefront-contract`) and `carry-over` (`edgefront-carry-over`).

use std::{env, ffi::OsString, os::unix::process::CommandExt, path::PathBuf, process::Command};

use xtask::{failure::Failure, runner};

/// A command in a crate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Bench,
    Soak,
    Storefronts,
    Simulate,
    Doctor,
    Contract,
    CarryOver,
}

/// Arguments that xtask passes on unread.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct ForwardedArguments {
    /// Options of this command; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub options: Vec<OsString>,
}

/// Replaces this process with `cargo run` of the program.
///
/// # Errors
/// Always, because this function returns only if cargo does not start.
pub fn exec(program: Program, options: &[OsString]) -> Result<(), Failure> {
    runner::enter_workspace()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", program.package()]);
    if needs_optimisation(program, options) {
        println!("...  compiling with optimisation, two minutes the first time");
        cargo.args(["--profile", "measure"]);
    } else if !program.is_compiled() {
        // Not to standard output, which has the JSON of `doctor --json`.
        eprintln!("...  compiling, one or two minutes the first time");
    }
    cargo.arg("--").args(program.subcommand()).args(options);
    Err(Failure::new(format!("cannot start cargo: {}", cargo.exec()), "install Rust with rustup"))
}

impl Program {
    const fn package(self) -> &'static str {
        match self {
            Self::Bench | Self::Soak | Self::Storefronts => "edgefront-measure",
            Self::Simulate => "edgefront-simulate",
            Self::Doctor => "edgefront-doctor",
            Self::Contract => "edgefront-contract",
            Self::CarryOver => "edgefront-carry-over",
        }
    }

    /// Returns whether cargo has compiled the program before, without optimisation.
    fn is_compiled(self) -> bool {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        target.join("debug").join(self.package()).exists()
    }

    /// The first argument of a package that has several commands.
    const fn subcommand(self) -> Option<&'static str> {
        match self {
            Self::Bench => Some("bench"),
            Self::Soak => Some("soak"),
            Self::Storefronts => Some("storefronts"),
            Self::Simulate | Self::Doctor | Self::Contract | Self::CarryOver => None,
        }
    }
}

/// The benchmark needs optimised code: its load generator, gateway and origin share the CPU with the Workers that it
/// measures. So does the simulation of millions of requests. Their `--help` does not.
fn needs_optimisation(program: Program, options: &[OsString]) -> bool {
    matches!(program, Program::Bench | Program::Simulate)
        && !options.iter().any(|option| option == "--help" || option == "-h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_need_it_are_compiled_with_optimisation() {
        for (program, option, expected) in [
            (Program::Bench, "--quick", true),
            (Program::Bench, "--help", false),
            (Program::Bench, "-h", false),
            (Program::Soak, "--every", false),
            (Program::Simulate, "--seed", true),
            (Program::Doctor, "--json", false),
        ] {
            assert_eq!(needs_optimisation(program, &[option.into()]), expected, "{program:?} {option}");
        }
    }
}
