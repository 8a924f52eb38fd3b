//! Tables of documents that repeat what the code says.

use std::{
    env, fs,
    sync::{Mutex, PoisonError},
};

/// If this variable is set, the tests write the tables instead of comparing them.
const WRITE: &str = "EDGEFRONT_WRITE_DOCS";

/// A document has several tables, and tests run in parallel.
static WRITING: Mutex<()> = Mutex::new(());

/// Reads a file of the repository. cargo runs tests in the directory of their package.
pub fn read(path: &str) -> String {
    fs::read_to_string(path).expect("the file is readable")
}

/// A table in Markdown.
pub fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: [String; N]| {
        assert!(cells.iter().all(|cell| !cell.contains('\n')), "{cells:?}");
        format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
    };
    let begin = [line(heads.map(str::to_owned)), line(heads.map(|_| "---".to_owned()))];
    begin.into_iter().chain(rows.into_iter().map(line)).collect()
}

/// Compares the table `name` of the document at `path` with `table`.
///
/// Panics if they differ.
pub fn hold(path: &str, name: &str, table: &str) {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let document = read(path);
    let begin = format!("<!-- table: {name} -->\n");
    let (before, rest) = document.split_once(&begin).expect("the mark before the table");
    let (present, after) = rest.split_once("<!-- end -->").expect("the mark after the table");
    if env::var_os(WRITE).is_some() {
        fs::write(path, format!("{before}{begin}{table}<!-- end -->{after}")).expect("the document is writable");
    } else {
        assert_eq!(present, table, "the table {name} of {path} is stale: run this test with {WRITE}=1 to update it");
    }
}

/// As [`hold`], for measured figures: a number may differ by the part `tolerance`.
pub fn hold_near(path: &str, name: &str, table: &str, tolerance: f64) {
    let document = read(path);
    let (_, rest) = document.split_once(&format!("<!-- table: {name} -->\n")).expect("the mark before the table");
    let (present, _) = rest.split_once("<!-- end -->").expect("the mark after the table");
    let is_near = |(one, other): (&str, &str)| match (one.trim().parse::<f64>(), other.trim().parse::<f64>()) {
        (Ok(one), Ok(other)) => (one / other - 1.0).abs() <= tolerance,
        _ => one == other,
    };
    let [cells, others] = [present, table].map(|table| table.split('|').collect::<Vec<_>>());
    if cells.len() != others.len() || !cells.into_iter().zip(others).all(is_near) {
        hold(path, name, table);
    }
}

pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}
