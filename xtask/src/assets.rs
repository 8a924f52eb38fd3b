//! The static files in build/assets/, which the platform serves without the Worker. Scripts and styles are bundled and
//! minified; the other files are copied. The API's description is one of them, because it would make the Worker larger.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    failure::Failure,
    npm,
    stamp::{BuildResult, Stamp},
    steps::{self, run_step},
};

/// The sources of the bundles. package-lock.json pins the libraries among them.
const SOURCES: [&str; 4] = ["assets", "integrations/javascript/client/src", "package-lock.json", DESCRIPTION];
/// The description of the API. The platform serves it as `/_edge/v1/openapi.json`.
const DESCRIPTION: &str = "docs/openapi.json";
/// The directory that wrangler.toml names.
const DIRECTORY: &str = "build/assets";
const STAMP: &str = "build/.assets";
/// The fonts of the demo shop: npm package, file in it, and name of the copy. The copy's name gets the package's version.
const FONTS: [(&str, &str, &str); 2] = [
    ("@fontsource/fraunces", "files/fraunces-latin-500-normal.woff2", "fraunces"),
    ("@fontsource-variable/figtree", "files/figtree-latin-wght-normal.woff2", "figtree"),
];

/// Builds the static files, unless they are up to date.
///
/// # Errors
/// When esbuild rejects a file.
pub async fn build() -> Result<(), Failure> {
    run_step("assets", async |step| {
        let stamp = Stamp::new(STAMP, &SOURCES, BuildResult::Contents(vec![DIRECTORY.into()]))?;
        if stamp.is_current() {
            return Ok(steps::done("up to date"));
        }
        let failed = |cause: io::Error| Failure::file(DIRECTORY, &cause);
        let files = source_files().map_err(failed)?;
        let target = Path::new(DIRECTORY).join("_edge/assets");
        // Otherwise the platform would still serve a renamed file under its old name.
        let _ = fs::remove_dir_all(DIRECTORY);
        fs::create_dir_all(&target).map_err(failed)?;
        let api = Path::new(DIRECTORY).join("_edge/v1");
        fs::create_dir_all(&api).and_then(|()| fs::copy(DESCRIPTION, api.join("openapi.json"))).map_err(failed)?;

        let (bundles, copies): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.extension().is_some_and(|kind| kind == "js" || kind == "css"));
        for file in copies {
            let Some(name) = file.file_name() else { continue };
            let directory = if name == "_headers" { Path::new(DIRECTORY) } else { &target };
            fs::copy(&file, directory.join(name)).map_err(failed)?;
        }
        copy_fonts(&target)?;
        let mut esbuild = npm::command("esbuild")?;
        esbuild.args(["--bundle", "--minify", "--format=esm", "--target=es2023", "--log-level=warning"]);
        // The fonts, which styles name by their URLs.
        esbuild.arg("--external:/_edge/*");
        esbuild.arg(format!("--outdir={}", target.display())).args(bundles);
        step.run_program(esbuild, "fix the file that esbuild names").await?;
        stamp.write()?;
        Ok(steps::done("built"))
    })
    .await
}

/// Copies the fonts to `target`, each with its licence.
fn copy_fonts(target: &Path) -> Result<(), Failure> {
    for (package, file, name) in FONTS {
        let package = Path::new("node_modules").join(package);
        let copy = || {
            let description: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(package.join("package.json"))?)?;
            let version = description["version"].as_str().unwrap_or_default();
            fs::copy(package.join(file), target.join(format!("{name}-{version}.woff2")))?;
            fs::copy(package.join("LICENSE"), target.join(format!("{name}-{version}.LICENSE.txt")))
        };
        copy().map_err(|cause| Failure::file(package.display().to_string(), &cause))?;
    }
    Ok(())
}

/// The files of `assets/` without its subdirectories, whose files are only imported.
fn source_files() -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir("assets")?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<_> =
        entries.filter(|path| path.as_ref().map_or(true, |path| path.is_file())).collect::<Result<_, _>>()?;
    files.sort();
    Ok(files)
}
