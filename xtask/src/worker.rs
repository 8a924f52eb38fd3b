//! The Worker's bundle in build/, made only when something it is made of has changed: compiled, bound to JavaScript, optimised, bundled.

use std::{fs, path::PathBuf};

use tokio::{process::Command, try_join};

use crate::{
    assets,
    failure::Failure,
    npm,
    stamp::Stamp,
    steps::{self, Step, step},
    tools::{self, TARGET, Tools},
};

/// All that the bundle is made of. package-lock.json and Cargo.lock pin the tools.
const SOURCES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "package-lock.json",
    "rust-toolchain.toml",
    "askama.toml",
    "src",
    "templates",
    "assets",
];

/// What the compiler and wasm-bindgen make use of, and the runtime has.
const FEATURES: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-exception-handling",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// No offset has to be kept out of the lowest addresses, which are the far end of the stack: rustc puts it first. Functions of like names stand
/// side by side, since gzip finds only within 32 KB what is alike; so none but the smallest is put into its one caller, where it stands alone.
/// Then the names go, for a panic tells its place by itself.
const OPTIMISE: [&str; 5] = [
    "-O",
    "--one-caller-inline-max-function-size=20",
    "--low-memory-unused",
    "--reorder-functions-by-name",
    "--strip-debug",
];

/// For cargo: the Worker without its feature `demo`.
const WITHOUT_DEMO: [&str; 1] = ["--no-default-features"];

/// Of the bundle with the demo.
const STAMP: &str = "build/.stamp";
/// What wrangler.toml names.
const BUNDLE: &str = "build";
const ENTRY: &str = "src/edge/entry.js";

/// What is left out of the bundle.
#[derive(clap::Args)]
pub struct Arguments {
    /// Without the built-in shop: smaller, and it needs `ORIGIN_URL`.
    #[arg(long)]
    no_demo: bool,
}

/// `cargo xtask build`: all that the bundle needs, and the bundle.
///
/// # Errors
/// When a tool can not be installed, or the crate does not compile.
pub async fn build_alone(Arguments { no_demo }: Arguments) -> Result<(), Failure> {
    let (tools, ()) = try_join!(tools::install(), npm::install_if_missing())?;
    if !no_demo {
        return build(&tools).await;
    }
    // What stands there afterwards is not what the stamp says.
    let _ = fs::remove_file(STAMP);
    build_without_demo(&tools, BUNDLE).await?;
    assets::build().await
}

/// Builds the Worker without the demo shop into the directory `bundle`.
///
/// # Errors
/// As [`build`].
pub async fn build_without_demo(tools: &Tools, bundle: &str) -> Result<(), Failure> {
    step("worker without the demo", async |step| {
        bundle_crate(&step, tools, ("edgefront", &WITHOUT_DEMO), ENTRY, bundle).await?;
        Ok(steps::done("built"))
    })
    .await
}

/// Builds the bundle.
///
/// # Errors
/// When the crate does not compile; the compiler's own words are printed.
pub async fn build(tools: &Tools) -> Result<(), Failure> {
    compile(tools).await?;
    assets::build().await
}

async fn compile(tools: &Tools) -> Result<(), Failure> {
    step("worker", async |step| {
        let stamp = Stamp::new(STAMP, &SOURCES)?;
        if stamp.is_current() {
            return Ok(steps::done("up to date"));
        }
        step.note("compiled for release, a minute or two at the first time");
        bundle_crate(&step, tools, ("edgefront", &[]), ENTRY, BUNDLE).await?;
        stamp.set()?;
        Ok(steps::done("built"))
    })
    .await
}

/// Makes the two modules of a Worker, `index.js` and `index_bg.wasm`, from a crate of the workspace (with options for cargo) and its `entry.js`.
///
/// # Errors
/// When the crate does not compile; the compiler's own words are printed.
pub async fn bundle_crate(
    step: &Step,
    tools: &Tools,
    (package, options): (&str, &[&str]),
    entry_source: &str,
    bundle: &str,
) -> Result<(), Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--profile", "worker", "--lib", "--target", TARGET, "-p", package]).args(options);
    cargo.env("PATH", npm::path()?);
    if let Err(ended) = step.try_run(cargo).await? {
        eprintln!("{}", ended.output.trim_end());
        return Err(step.failure(&ended, "mend what the compiler names above"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let wasm = target.join(TARGET).join(format!("worker/{}.wasm", package.replace('-', "_")));

    // Made here, so that what runs from the last one sees a whole new one.
    let stage = format!("{bundle}/.stage");
    let failed = |cause: std::io::Error| Failure::file(&stage, &cause);
    let _ = fs::remove_dir_all(&stage);
    fs::create_dir_all(&stage).map_err(failed)?;

    let mut bindgen = Command::new(&tools.wasm_bindgen);
    bindgen.arg(wasm).args(["--out-dir", &stage, "--out-name", "index", "--target", "module", "--no-typescript"]);
    // What `entry.js` needs to begin anew after a panic.
    bindgen.args(["--experimental-reset-state-function", "--force-enable-abort-handler"]);
    step.run(bindgen, "run `cargo xtask build` again; if that does not help, remove target/").await?;

    let module = format!("{stage}/index_bg.wasm");
    let mut optimise = Command::new(npm::program("wasm-opt")?);
    optimise.args([&module, "-o", &module]).args(OPTIMISE).args(FEATURES).env("PATH", npm::path()?);
    step.run(optimise, "reinstall the npm packages: remove node_modules/ and try again").await?;

    let entry = format!("{stage}/entry.js");
    fs::copy(entry_source, &entry).map_err(failed)?;
    let mut esbuild = Command::new(npm::program("esbuild")?);
    esbuild.args([&entry, "--bundle", "--minify", "--format=esm", "--log-level=warning"]);
    esbuild.args(["--external:./index_bg.wasm", "--external:cloudflare:*"]);
    esbuild.arg(format!("--outfile={stage}/worker.js"));
    esbuild.env("PATH", npm::path()?);
    step.run(esbuild, "mend the file that it names").await?;

    // The runtime gives a compiled module by the plain form of an import, too, and knows no other yet.
    let script = fs::read_to_string(format!("{stage}/worker.js")).map_err(failed)?;
    fs::write(format!("{bundle}/index.js"), script.replace("import source ", "import ")).map_err(failed)?;
    fs::rename(module, format!("{bundle}/index_bg.wasm")).map_err(failed)?;
    fs::remove_dir_all(&stage).map_err(failed)
}

/// The absolute path of the bundle's directory.
///
/// # Errors
/// When the working directory is gone.
pub fn bundle() -> Result<PathBuf, Failure> {
    std::path::absolute(BUNDLE).map_err(|cause| Failure::file(BUNDLE, &cause))
}
