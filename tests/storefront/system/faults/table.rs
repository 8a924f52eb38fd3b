//! The outcomes as a table of a document. Equal columns are merged.

use crate::schema::document;

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
        document::hold(path, name, &self.markdown());
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
