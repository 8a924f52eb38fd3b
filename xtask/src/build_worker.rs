//! `cargo xtask build`: the Worker and all tools that its build needs.

use tokio::try_join;
use xtask::{failure::Failure, npm, tools, worker};

use crate::settings;

#[derive(clap::Args)]
pub struct BuildArguments {
    /// Leave out the demo shop. The Worker is smaller and needs `ORIGIN_URL`.
    #[arg(long)]
    no_demo: bool,
}

/// Checks wrangler.toml, installs the tools and builds the Worker. wrangler itself ignores the names of variables.
///
/// # Errors
/// When wrangler.toml is wrong, a tool cannot be installed, or the crate does not compile.
pub async fn run(BuildArguments { no_demo }: BuildArguments) -> Result<(), Failure> {
    settings::check_file()?;
    let (tools, ()) = try_join!(tools::install(), npm::install_if_missing())?;
    if no_demo { worker::build_without_demo(&tools).await } else { worker::build(&tools).await }
}
