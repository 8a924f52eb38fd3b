//! Markdown tables with aligned columns, readable in a terminal and in a document.

use std::fmt;

/// Rows of cells. The first column is text, the others are numbers.
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        Self { header: header.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }

    pub fn push_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
        };
        let widths: Vec<_> = (0..self.header.len()).map(width).collect();
        for (number, line) in lines().enumerate() {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if column == 0 { write!(f, "| {cell:<width$} ")? } else { write!(f, "| {cell:>width$} ")? }
            }
            writeln!(f, "|")?;
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width - 1);
                    if column == 0 { write!(f, "| {dashes}- ")? } else { write!(f, "| {dashes}: ")? }
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Formats a number with about three significant digits.
pub fn format_figure(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => group_thousands(&format!("{value:.0}")),
        medium if medium >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// As [`format_figure`]; a dash for an unknown or infinite value.
pub fn format_figure_or_dash(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| "–".to_owned(), format_figure)
}

fn group_thousands(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["candidate", "requests/s"]);
        table.push_row(["edgefront".to_owned(), format_figure(12_345.6)]);
        table.push_row(["book".to_owned(), format_figure_or_dash(None)]);
        let expected = "\
            | candidate | requests/s |\n\
            | --------- | ---------: |\n\
            | edgefront |     12,346 |\n\
            | book      |          – |\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_figure_has_three_significant_digits() {
        let figures = [0.126, 1.0, 12.34, 123.4, 1_234_567.0].map(format_figure);
        assert_eq!(figures, ["0.13", "1.00", "12.3", "123", "1,234,567"]);
    }
}
