//! The chart for the README: throughput without latency, and response time with a distant Redis. Its colours are
//! legible on white and on black, and every bar has its number.

use std::fmt::Write as _;

use super::{
    candidate::{Candidate, CandidateKind},
    results::{Metrics, ResultKey, Results},
    workload::{Scenario, Workload},
};
use crate::{statistics, table::format_figure};

/// The widths of the columns: candidate names, the longest bar, and the number after a bar.
const NAME_WIDTH: f64 = 150.0;
const BAR_WIDTH: f64 = 250.0;
const NUMBER_WIDTH: f64 = 60.0;
const PANEL_GAP: f64 = 20.0;
const TITLE_HEIGHT: f64 = 40.0;
const HEADING_HEIGHT: f64 = 16.0;
const BAR_HEIGHT: f64 = 15.0;
const GROUP_GAP: f64 = 10.0;
/// From the top of a line to the baseline of its text.
const BASELINE: f64 = 11.0;

/// A column of bars with a common scale.
struct Panel<'a> {
    title: String,
    left: f64,
    latency_ms: u32,
    connections: usize,
    figure: fn(&Metrics) -> f64,
    results: &'a Results,
}

/// The chart as SVG.
pub fn svg(results: &Results) -> String {
    let (connections, latency_ms) = (results.max_connections(), results.max_latency_ms());
    let panels = [
        Panel {
            title: format!("requests/s, {connections} connections (more is better)"),
            left: NAME_WIDTH,
            latency_ms: 0,
            connections,
            figure: |metrics| metrics.requests_per_second,
            results,
        },
        Panel {
            title: format!("p50 in ms, Redis {latency_ms} ms away (less is better)"),
            left: NAME_WIDTH + BAR_WIDTH + NUMBER_WIDTH + PANEL_GAP,
            latency_ms,
            connections: 1,
            figure: |metrics| metrics.p50_ms,
            results,
        },
    ];
    let (mut rows, mut top) = (String::new(), TITLE_HEIGHT);
    for workload in results.workloads() {
        let baseline = top + BASELINE;
        let _ = writeln!(rows, r#"<text x="0" y="{baseline:.0}" class="head">{}</text>"#, workload.title());
        top += HEADING_HEIGHT;
        for candidate in results.candidates.iter().filter(|candidate| candidate.serves(workload)) {
            let (right, baseline) = (NAME_WIDTH - 8.0, top + BASELINE);
            let _ = writeln!(rows, r#"<text x="{right}" y="{baseline:.0}" class="name">{}</text>"#, candidate.name);
            for panel in &panels {
                panel.draw_bar(&mut rows, workload, candidate, top);
            }
            top += BAR_HEIGHT;
        }
        top += GROUP_GAP;
    }
    let mut titles = String::new();
    for panel in &panels {
        let _ = writeln!(titles, r#"<text x="{}" y="20" class="head">{}</text>"#, panel.left, panel.title);
    }
    let width = NAME_WIDTH + 2.0 * (BAR_WIDTH + NUMBER_WIDTH) + PANEL_GAP;
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {top:.0}" font-family="system-ui, sans-serif" font-size="11">
<style>text {{ fill: #7d8590 }} .head {{ font-weight: 600 }} .name {{ text-anchor: end }} .edgefront {{ fill: #e8710a }} .peer {{ fill: #5c8fd6 }} .bare {{ fill: #9aa0a6 }}</style>
{titles}{rows}</svg>
"#
    )
}

impl Panel<'_> {
    fn draw_bar(&self, rows: &mut String, workload: Workload, candidate: &Candidate, top: f64) {
        let Some(value) = self.value(workload, candidate) else { return };
        let longest = self.longest();
        let width = if longest > 0.0 { (BAR_WIDTH * value / longest).max(1.0) } else { 1.0 };
        let class = match candidate.kind {
            CandidateKind::Edgefront(_) => "edgefront",
            CandidateKind::Peer => "peer",
            CandidateKind::Bare => "bare",
        };
        let (left, bar, baseline) = (self.left, top + 2.0, top + BASELINE);
        let _ =
            writeln!(rows, r#"<rect x="{left}" y="{bar:.0}" width="{width:.1}" height="11" rx="2" class="{class}"/>"#);
        let number = format_figure(value);
        let _ = writeln!(rows, r#"<text x="{:.1}" y="{baseline:.0}">{number}</text>"#, left + width + 5.0);
    }

    fn value(&self, workload: Workload, candidate: &Candidate) -> Option<f64> {
        // Latency of Redis has no effect on a Worker that does nothing.
        if candidate.kind == CandidateKind::Bare && self.latency_ms > 0 {
            return None;
        }
        let scenario = Scenario { workload, latency_ms: self.latency_ms, connections: self.connections };
        self.results.metrics(&ResultKey::new(scenario, &candidate.name)).map(|metrics| (self.figure)(&metrics))
    }

    /// The largest value, which determines the scale.
    fn longest(&self) -> f64 {
        let values = self.results.workloads().into_iter().flat_map(|workload| {
            self.results.candidates.iter().filter_map(move |candidate| self.value(workload, candidate))
        });
        statistics::max(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::sample_results;

    #[test]
    fn every_bar_has_a_number_and_bare_workers_have_no_bar_for_latency() {
        let svg = svg(&sample_results());
        let bars = |class: &str| svg.matches(&format!("class=\"{class}\"/>")).count();
        assert_eq!((bars("edgefront"), bars("peer"), bars("bare")), (2, 4, 1));
        assert!(svg.contains(">2,250</text>") && svg.contains(">11.0</text>"), "{svg}");
    }
}
