//! Builds a crate of the workspace into the two modules of a Worker: cargo compiles it, wasm-bindgen generates its
//! JavaScript, wasm-opt optimises the wasm, and esbuild bundles the JavaScript.

use std::{env, fs, io, path::PathBuf};

use tokio::process::Command;

use crate::{
    failure::Failure,
    npm, remap,
    steps::Step,
    tools::{Tools, WASM_TARGET},
};

/// The wasm features that the compiler and wasm-bindgen use and that workerd supports.
const WASM_FEATURES: [&str; 7] = [
    "--enable-bulk-memory",
    "--enable-exception-handling",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
];

/// wasm-opt's options.
/// - Low memory is unused: rustc puts the stack first, so the lowest addresses are its far end.
/// - Functions are sorted by name, because gzip finds repetition only within 32 KB. For the same reason only the
///   smallest functions are inlined into their single caller: an inlined function is no longer next to its like.
/// - Unused parameters and results are removed and equal code is folded first, so that the other passes find more. `-O`
///   removes them last, and does not fold.
/// - Debug names are stripped: a panic reports its source location without them. The lists of compilers and of target
///   features are stripped, too.
const WASM_OPT: [&str; 9] = [
    "--dae-optimizing",
    "--code-folding",
    "-O",
    "--one-caller-inline-max-function-size=25",
    "--low-memory-unused",
    "--reorder-functions-by-name",
    "--strip-debug",
    "--strip-producers",
    "--strip-target-features",
];

/// A Worker bundle to build: `index.js` and `index_bg.wasm`.
pub struct Bundle<'a> {
    /// The crate of the workspace.
    pub package: &'a str,
    pub cargo_options: &'a [&'a str],
    /// The path of the crate's `entry.js`.
    pub entry: &'a str,
    /// The directory for the result.
    pub directory: &'a str,
}

impl Bundle<'_> {
    /// Builds the bundle. The new files replace the old ones at the end, so a running Worker never sees half a bundle.
    ///
    /// # Errors
    /// When the crate does not compile; the compiler's errors are printed.
    pub async fn build(&self, step: &Step, tools: &Tools) -> Result<(), Failure> {
        let wasm = self.compile(step).await?;
        let directory = self.directory;
        let stage = format!("{directory}/.stage");
        let failed = |cause: io::Error| Failure::file(&stage, &cause);
        let _ = fs::remove_dir_all(&stage);
        fs::create_dir_all(&stage).map_err(failed)?;

        let mut bindgen = Command::new(&tools.wasm_bindgen);
        bindgen.arg(wasm).args(["--out-dir", &stage, "--out-name", "index", "--target", "module", "--no-typescript"]);
        // entry.js uses both to reset the instance after a panic.
        bindgen.args(["--experimental-reset-state-function", "--force-enable-abort-handler"]);
        step.run_program(bindgen, "run `cargo xtask build` again; if that does not help, remove target/").await?;

        let module = format!("{stage}/index_bg.wasm");
        let mut optimise = npm::command("wasm-opt")?;
        optimise.args([&module, "-o", &module]).args(WASM_OPT).args(WASM_FEATURES);
        step.run_program(optimise, "reinstall the npm packages: remove node_modules/ and try again").await?;

        let entry = format!("{stage}/entry.js");
        fs::copy(self.entry, &entry).map_err(failed)?;
        let mut esbuild = npm::command("esbuild")?;
        esbuild.args([&entry, "--bundle", "--minify", "--format=esm", "--log-level=warning"]);
        esbuild.args(["--external:./index_bg.wasm", "--external:cloudflare:*"]);
        esbuild.arg(format!("--outfile={stage}/worker.js"));
        step.run_program(esbuild, "fix the file that esbuild names").await?;

        // workerd does not know `import source` yet; there a plain import also yields the compiled module.
        let script = fs::read_to_string(format!("{stage}/worker.js")).map_err(failed)?;
        fs::write(format!("{directory}/index.js"), script.replace("import source ", "import ")).map_err(failed)?;
        fs::rename(module, format!("{directory}/index_bg.wasm")).map_err(failed)?;
        fs::remove_dir_all(&stage).map_err(failed)
    }

    /// Compiles the crate and returns the path of its wasm.
    async fn compile(&self, step: &Step) -> Result<PathBuf, Failure> {
        let mut cargo = Command::new("cargo");
        // Only a cdylib: an rlib beside it would keep every public function, 8 KB of the gzipped Worker.
        cargo.args(["rustc", "--profile", "worker", "--lib", "--target", WASM_TARGET, "-p", self.package]);
        cargo.args(["--crate-type", "cdylib"]);
        cargo.args(["--config", &remap::cargo_option()?]);
        cargo.args(self.cargo_options).env("PATH", npm::search_path()?);
        if let Err(error) = step.try_program(cargo).await? {
            eprintln!("{}", error.output.trim_end());
            return Err(step.program_failure(&error, "fix the compiler's errors above"));
        }
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        Ok(target.join(WASM_TARGET).join(format!("worker/{}.wasm", self.package.replace('-', "_"))))
    }
}
