//! The outcomes as a table of a document. Equal columns are merged.

use std::{
    env, fs,
    sync::{Mutex, PoisonError},
};

/// If this variable is set, the tests write the tables instead of comparing them.
const WRITE: &str = "EDGEFRONT_WRITE_DOCS";

/// Several tests write tables of the same document.
static WRITING: Mutex<()> = Mutex::new(());

pub struct Table {
    labels: Vec<String>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    pub fn new(labels: &[&str]) -> Self {
        Self { labels: labels.iter().map(|label| (*label).to_owned()).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, title: &str, fields: impl Iterator<Item = String>) {
        self.rows.push((title.to_owned(), fields.collect()));
    }

    /// Compares this table with the table `name` of the document at `path`.
    ///
    /// # Panics
    /// If they differ.
    pub fn hold(&self, path: &str, name: &str) {
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let document = fs::read_to_string(path).expect("the document");
        let begin = format!("<!-- table: {name} -->\n");
        let (before, rest) = document.split_once(&begin).expect("the table's mark");
        let (told, after) = rest.split_once("<!-- end -->").expect("the table's end");
        let table = self.markdown();
        if env::var_os(WRITE).is_some() {
            fs::write(path, format!("{before}{begin}{table}<!-- end -->{after}")).expect("the document can be written");
        } else {
            assert_eq!(told, table, "{path} has another table: if the new one is right, run this test with {WRITE}=1");
        }
    }

    fn markdown(&self) -> String {
        let column = |number: usize| self.rows.iter().map(|(_, fields)| fields[number].as_str()).collect::<Vec<_>>();
        let mut columns = Vec::<(Vec<&str>, Vec<&str>)>::new();
        for (number, label) in self.labels.iter().enumerate() {
            let fields = column(number);
            match columns.iter_mut().find(|(_, known)| *known == fields) {
                Some((labels, _)) => labels.push(label),
                None => columns.push((vec![label], fields)),
            }
        }
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let heads: Vec<_> = columns.iter().map(|(labels, _)| labels.join("; ")).collect();
        let head = line([""].into_iter().chain(heads.iter().map(String::as_str)).collect());
        let rule = line(vec!["---"; columns.len() + 1]);
        let rows = self.rows.iter().enumerate().map(|(row, (title, _))| {
            line([title.as_str()].into_iter().chain(columns.iter().map(|(_, fields)| fields[row])).collect())
        });
        [head, rule].into_iter().chain(rows).collect()
    }
}
