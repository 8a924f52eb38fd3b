//! The results as a table.

use crate::{cities::Continent, numbers::to_f64, scenario::Layout, summary::Summary, tally::Source};

/// A column: its heading, and its figure.
struct Column {
    heading: &'static str,
    text: fn(&Summary) -> String,
}

/// The tables of a layout; the first column of each is the traffic.
pub struct Table {
    pub title: &'static str,
    columns: &'static [Column],
}

pub const TABLES: [Table; 3] = [
    Table {
        title: "Where pages come from, and what Redis has to do",
        columns: &[
            Column { heading: "requests/s", text: |summary| short(summary.scenario.requests_per_second) },
            Column { heading: "memory", text: |summary| percent(summary.tally.share(Source::Memory)) },
            Column { heading: "location", text: |summary| percent(summary.tally.share(Source::Location)) },
            Column { heading: "home", text: |summary| percent(summary.tally.share(Source::Home)) },
            Column { heading: "Redis", text: |summary| percent(summary.tally.share(Source::Redis)) },
            Column { heading: "all hits", text: |summary| percent(summary.tally.hit_ratio()) },
            Column { heading: "origin/s", text: |summary| short(summary.renders()) },
            Column { heading: "Redis requests/s", text: |summary| short(summary.redis_requests()) },
            Column { heading: "commands/s", text: |summary| short(summary.commands()) },
            Column { heading: "peak", text: |summary| short(summary.peak) },
            Column { heading: "MB/s", text: |summary| short(summary.bytes() / 1e6) },
        ],
    },
    Table {
        title: "Hot keys, staleness, memory, cost",
        columns: &[
            Column { heading: "requests/s", text: |summary| short(summary.scenario.requests_per_second) },
            Column { heading: "hottest key", text: |summary| summary.hottest().0 },
            Column { heading: "its commands/s", text: |summary| short(summary.hottest().1) },
            Column { heading: "stale p50, s", text: |summary| seconds(summary.tally.stale.quantile(0.5)) },
            Column { heading: "stale max, s", text: |summary| seconds(summary.tally.stale.longest()) },
            Column { heading: "isolates", text: |summary| short(summary.isolates) },
            Column { heading: "pages in an isolate, MB", text: |summary| short(to_f64(summary.memory) / 1e6) },
            Column { heading: "pages in Redis", text: |summary| short(to_f64(summary.pages)) },
            Column { heading: "dollars/month", text: |summary| short(summary.dollars()) },
            Column {
                heading: "dollars/million",
                text: |summary| format!("{:.2}", summary.dollars() / (summary.requests() * 2.592)),
            },
        ],
    },
    Table {
        title: "Response times of all requests by continent, p50 / p99 in ms",
        columns: &[
            Column { heading: "requests/s", text: |summary| short(summary.scenario.requests_per_second) },
            Column { heading: Continent::Africa.name(), text: |summary| times(summary, Continent::Africa) },
            Column { heading: Continent::Asia.name(), text: |summary| times(summary, Continent::Asia) },
            Column { heading: Continent::Europe.name(), text: |summary| times(summary, Continent::Europe) },
            Column { heading: Continent::NorthAmerica.name(), text: |summary| times(summary, Continent::NorthAmerica) },
            Column { heading: Continent::Oceania.name(), text: |summary| times(summary, Continent::Oceania) },
            Column { heading: Continent::SouthAmerica.name(), text: |summary| times(summary, Continent::SouthAmerica) },
        ],
    },
];

/// The effect of a Redis that is full.
pub const FULL_REDIS: Table = Table {
    title: "Without an answer of Redis in time",
    columns: &[
        Column { heading: "requests/s", text: |summary| short(summary.scenario.requests_per_second) },
        Column { heading: "pages from an old copy", text: |summary| percent(summary.tally.share(Source::Fallback)) },
        Column { heading: "pages from the origin", text: |summary| percent(summary.tally.share(Source::Forwarded)) },
        Column { heading: "failed requests", text: |summary| percent(summary.tally.failed_share()) },
    ],
};

impl Table {
    /// The table of one layout in Markdown.
    #[must_use]
    pub fn render(&self, layout: Layout, summaries: &[Summary]) -> String {
        let headings = self.columns.iter().map(|column| column.heading.to_owned()).collect();
        let of_layout = summaries.iter().filter(|summary| summary.scenario.layout == layout);
        let rows = of_layout.map(|summary| self.columns.iter().map(|column| (column.text)(summary)).collect());
        markdown([headings].into_iter().chain(rows))
    }
}

/// A table in Markdown with columns of equal width. The first row has the headings.
#[must_use]
pub fn markdown(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |cells: Vec<String>| ["| ", &cells.join(" | "), " |\n"].concat();
    let rule = line(widths.iter().map(|width| "-".repeat(width.saturating_sub(1)) + ":").collect());
    let mut lines =
        rows.iter().map(|row| line(row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect()));
    let headings = lines.next().unwrap_or_default();
    [headings, rule].into_iter().chain(lines).collect()
}

#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Seconds with one digit.
#[must_use]
pub fn seconds(time: std::time::Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

fn times(summary: &Summary, continent: Continent) -> String {
    let [p50, p99] = [0.5, 0.99].map(|quantile| summary.tally.latency(continent, quantile).as_secs_f64() * 1e3);
    format!("{p50:.0} / {p99:.0}")
}

/// Three significant digits, with a unit from a thousand on.
#[must_use]
pub fn short(number: f64) -> String {
    let (scaled, unit) = match number {
        1e9.. => (number / 1e9, " G"),
        1e6.. => (number / 1e6, " M"),
        1e3.. => (number / 1e3, " k"),
        _ => (number, ""),
    };
    let digits = match scaled {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{scaled:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::{FULL_REDIS, short};
    use crate::{
        scenario::{Layout, Scenario},
        world::World,
    };

    #[test]
    fn the_table_shows_what_redis_does_not_answer_in_time() {
        let row = |redis_commands: f64| {
            let mut scenario = Scenario::new(Layout::OneTier, 100.0);
            scenario.simulated_requests = 3_000.0;
            scenario.platform.redis_commands = redis_commands;
            let summary = World::new(scenario).unwrap().run();
            let table = FULL_REDIS.render(Layout::OneTier, &[summary]);
            let cells: Vec<_> = table.lines().nth(2).unwrap().split('|').map(|cell| cell.trim().to_owned()).collect();
            cells[2..5].to_vec()
        };
        assert_eq!(row(f64::INFINITY), ["0.0 %"; 3]);
        let full = row(100.0);
        assert!(full.iter().all(|cell| cell != "0.0 %"), "{full:?}");
    }

    #[test]
    fn a_number_has_three_digits_and_a_unit() {
        let numbers = [(0.0, "0"), (9.5, "9.5"), (123.4, "123"), (1_000.0, "1 k"), (12_345.0, "12.3 k"), (2e9, "2 G")];
        for (number, text) in numbers {
            assert_eq!(short(number), text);
        }
    }
}
