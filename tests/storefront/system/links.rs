//! The links of the documents lead to files and headings that exist, and so do the documents that messages name.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// Directories with documents, or with texts that name documents.
const ROOTS: [&str; 8] = [".", "docs", "doctor/src", "gateway", "integrations", "presets", "src", "xtask/src"];

/// The files below `directory` with one of these endings. Of the repository's root: only its own files.
fn files(directory: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let files = entries.flat_map(|path| {
        let name = path.file_name().expect("a name").to_str().expect("a name in UTF-8");
        if path.is_dir() {
            let is_own = directory != Path::new(".") && !["node_modules", "target"].contains(&name);
            return if is_own { files(&path, endings) } else { Vec::new() };
        }
        if endings.iter().any(|ending| name.ends_with(ending)) { vec![path] } else { Vec::new() }
    });
    files.collect()
}

/// The text without blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns whether `target`, such as `redis.md#keys`, exists, seen from the file `from`.
fn exists(from: &Path, target: &str) -> bool {
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.to_owned() } else { from.with_file_name("").join(path) };
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    let has_anchor = |text: String| {
        let text = prose(&text);
        text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line.trim_start_matches('#')) == fragment)
    };
    let is_document = normal.extension().is_some_and(|ending| ending == "md");
    normal.exists() && (fragment.is_empty() || !is_document || has_anchor(fs::read_to_string(normal).expect("a text")))
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let documents = ROOTS.iter().flat_map(|root| files(Path::new(root), &[".md"]));
    let broken: Vec<_> = documents
        .flat_map(|document| {
            let text = prose(&fs::read_to_string(&document).expect("a text"));
            let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next().map(str::to_owned));
            let own: Vec<_> = targets.filter(|target| !target.contains(':') && !exists(&document, target)).collect();
            own.into_iter().map(move |target| format!("{}: {target}", document.display()))
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_document_that_a_message_names_exists() {
    let sources = ROOTS.iter().flat_map(|root| files(Path::new(root), &[".rs", ".env", ".toml"]));
    let broken: Vec<_> = sources
        .flat_map(|source| {
            let text = fs::read_to_string(&source).expect("a text");
            let is_end = |c: char| !c.is_ascii_alphanumeric() && !"-_./#".contains(c);
            let names = text.split("docs/").skip(1).filter_map(|rest| rest.split(is_end).next());
            let targets =
                names.filter(|name| name.contains(".md")).map(|name| format!("docs/{}", name.trim_end_matches('.')));
            let own: Vec<_> = targets.filter(|target| !exists(Path::new("README.md"), target)).collect();
            own.into_iter().map(move |target| format!("{}: {target}", source.display()))
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
