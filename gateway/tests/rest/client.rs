//! The official client, `@upstash/redis`, in the ways that its README and docs show.

use std::{env, path::PathBuf};

use tokio::process::Command;

use crate::support::{TOKEN, rest};

#[tokio::test]
async fn the_npm_client_works_as_its_readme_shows() {
    // cargo runs a test in the directory of its package, also after the checkout was copied.
    let manifest = env::current_dir().expect("the directory of the package");
    let modules = manifest.ancestors().map(|dir| dir.join("node_modules"));
    let modules: PathBuf = modules
        .into_iter()
        .find(|modules| modules.join("@upstash/redis/package.json").is_file())
        .expect("no node_modules with @upstash/redis: run `cargo xtask test`, it installs them");
    let pinned_node = modules.join(".bin/node");
    let node = if pinned_node.exists() { pinned_node } else { "node".into() };

    let rest = rest().await;
    let output = Command::new(node)
        .arg(manifest.join("tests/upstash_client.mjs"))
        .env("UPSTASH_REDIS_REST_URL", rest.gateway.url())
        .env("UPSTASH_REDIS_REST_TOKEN", TOKEN)
        .kill_on_drop(true)
        .output()
        .await
        .expect("node runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.ends_with("all steps passed\n"), "{stdout}");
}
