//! `cargo xtask storefront`: a third-party storefront behind edgefront, ready for a browser.

use xtask::{
    failure::Failure,
    steps::{Done, run_step},
    storefront::{Storefront, free_port},
    variables::parse_name_value,
};

use crate::dev::{self, DevArguments};

/// Installs a storefront into .cache/storefronts/NAME, starts it, and runs edgefront in front of it with its preset.
#[derive(clap::Args)]
pub struct StorefrontArguments {
    /// A folder in storefronts/: django-oscar, evershop, nextjs, wordpress.
    name: String,
    /// The port of edgefront on 127.0.0.1.
    #[arg(long, default_value_t = 8787, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Override a variable of the preset; repeatable.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_name_value)]
    vars: Vec<(String, String)>,
}

/// Runs until an error, or until the caller drops the future.
///
/// # Errors
/// When a step fails, or the Worker ends.
pub async fn run(arguments: StorefrontArguments) -> Result<(), Failure> {
    let StorefrontArguments { name, port, vars } = arguments;
    let storefront = Storefront::install(&name).await?;
    let own_port = free_port()?;
    let origin = format!("http://127.0.0.1:{own_port}");
    let _running = run_step("storefront", async |_| {
        let running = storefront.start(own_port, &format!("http://localhost:{port}")).await?;
        Ok(Done { summary: format!("{name} on {origin}, without edgefront"), value: running })
    })
    .await?;
    let variables = [("PRESET".to_owned(), name.clone())].into_iter().chain(vars);
    dev::run(DevArguments::storefront(port, origin.clone(), variables.collect(), &name)).await
}
