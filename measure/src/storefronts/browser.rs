//! Flows in Chromium: `storefronts/NAME/browser.mjs` browses, searches, buys and administers through edgefront.

use std::{env, path::Path};

use tokio::process::Command;
use xtask::{
    chromium,
    failure::Failure,
    npm,
    steps::{done, run_step},
};

use super::stack::Stack;

/// Runs the storefront's script. Without Chromium it is skipped with a note.
///
/// # Errors
/// When an expectation of the script fails.
pub async fn run(stack: &Stack) -> Result<(), Failure> {
    run_step("browser", async |step| {
        let Some(chromium) = chromium::find() else {
            return Ok(done("skipped: install Chromium, or set CHROMIUM to its path"));
        };
        let script = Path::new("storefronts").join(stack.shop.name()).join("browser.mjs");
        let mut node = Command::new(npm::node()?);
        node.arg(script).env("SHOP", &stack.url).env("CHROMIUM", chromium);
        node.env("SCREENSHOTS", env::var_os("SCREENSHOTS").unwrap_or_default());
        let output = step.run_program(node, "look at it with `cargo xtask storefront`").await?;
        Ok(done(output.lines().last().unwrap_or_default()))
    })
    .await
}
