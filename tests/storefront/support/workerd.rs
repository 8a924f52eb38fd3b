//! The built Worker in workerd, by way of `miniflare.mjs`. It ends with its standard input, so with this process at the latest.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::{Map, Value, json};

use super::logs::Lines;

/// A running Worker.
pub struct Workerd {
    pub url: String,
    node: Child,
    lines: Lines,
}

impl Workerd {
    /// Starts a Worker with these variables and secrets, or says why it did not start.
    pub async fn start(variables: &[(String, String)]) -> Result<Self, String> {
        let options = options(variables);
        // Starting blocks for a second; the gateway and the origin of the test go on meanwhile.
        tokio::task::spawn_blocking(move || Self::start_blocking(&options)).await.map_err(|error| error.to_string())?
    }

    fn start_blocking(options: &Value) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/storefront/support/miniflare.mjs");
        let node = env::var_os("EDGEFRONT_NODE").unwrap_or_else(|| "node".into());
        let mut node = Command::new(node)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("node does not start ({error}): run `cargo xtask test`, which brings it"))?;
        let lines = Lines::default();
        if let Some(output) = node.stderr.take() {
            let lines = lines.clone();
            thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).for_each(|line| lines.push(line));
            });
        }
        let answer = ask(&mut node, options).unwrap_or_else(|| json!({"error": "miniflare.mjs ended without a word"}));
        let url = answer["url"].as_str().unwrap_or_default().to_owned();
        let workerd = Self { url, node, lines };
        match answer["error"].as_str() {
            None => Ok(workerd),
            Some(error) => Err(format!("{error}\n{}", workerd.end())),
        }
    }

    pub fn logs(&self) -> Vec<String> {
        self.lines.all()
    }

    /// Ends it and gives all that it logged.
    fn end(self) -> String {
        let lines = self.lines.clone();
        drop(self);
        lines.all().join("\n")
    }
}

impl Drop for Workerd {
    fn drop(&mut self) {
        drop(self.node.stdin.take());
        let _ = self.node.wait();
    }
}

fn ask(node: &mut Child, options: &Value) -> Option<Value> {
    writeln!(node.stdin.as_mut()?, "{options}").ok()?;
    let mut line = String::new();
    BufReader::new(node.stdout.as_mut()?).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn options(variables: &[(String, String)]) -> Value {
    let bundle = env::var_os("EDGEFRONT_BUNDLE").map(PathBuf::from);
    let bundle = bundle
        .expect("EDGEFRONT_BUNDLE is not set: run `cargo xtask test`, which builds the Worker and says where it is");
    let is_set = |name: &str| variables.iter().any(|(other, value)| other == name && !value.is_empty());
    let mut options = json!({
        "bundle": bundle,
        "vars": variables.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect::<Map<_, Value>>(),
    });
    if !is_set("ORIGIN_URL") || is_set("ROWS_TABLE") {
        options["migrations"] = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").display().to_string().into();
    }
    options
}
