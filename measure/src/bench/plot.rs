//! The picture for the README: how much each candidate answers, and how long a visitor waits where Redis is far. Its colours are read on
//! white and on black, and every bar has its number.

use std::fmt::Write as _;

use super::{
    candidate::{Candidate, Kind},
    results::{Cell, Figures, Results},
    statistics,
    table::figure,
    workload::Workload,
};

const NAMES: f64 = 150.0;
const BARS: f64 = 250.0;
/// For the number behind a bar.
const NUMBER: f64 = 60.0;
const ROW: f64 = 15.0;
const GAP: f64 = 26.0;
const TOP: f64 = 40.0;

/// A column of bars.
struct Panel<'a> {
    title: String,
    left: f64,
    latency: u32,
    connections: usize,
    figure: fn(&Figures) -> f64,
    results: &'a Results,
}

/// The picture as SVG.
pub fn svg(results: &Results) -> String {
    let (crowd, far) = (results.connections(), results.latency());
    let panels = [
        Panel {
            title: format!("requests/s, {crowd} connections (more is better)"),
            left: NAMES,
            latency: 0,
            connections: crowd,
            figure: |figures| figures.rate,
            results,
        },
        Panel {
            title: format!("p50 in ms, Redis {far} ms away (less is better)"),
            left: NAMES + BARS + NUMBER + 20.0,
            latency: far,
            connections: 1,
            figure: |figures| figures.p50,
            results,
        },
    ];
    let (mut rows, mut top) = (String::new(), TOP);
    for workload in results.workloads() {
        let _ = writeln!(rows, r#"<text x="0" y="{:.0}" class="head">{}</text>"#, top + 11.0, workload.title());
        top += 16.0;
        for candidate in results.candidates.iter().filter(|candidate| candidate.serves(workload)) {
            let _ = writeln!(
                rows,
                r#"<text x="{}" y="{:.0}" class="name">{}</text>"#,
                NAMES - 8.0,
                top + 11.0,
                candidate.name
            );
            for panel in &panels {
                panel.bar(&mut rows, workload, candidate, top);
            }
            top += ROW;
        }
        top += GAP - 16.0;
    }
    let titles: String = panels.iter().fold(String::new(), |mut titles, panel| {
        let _ = writeln!(titles, r#"<text x="{}" y="20" class="head">{}</text>"#, panel.left, panel.title);
        titles
    });
    let width = NAMES + 2.0 * (BARS + NUMBER) + 20.0;
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {top:.0}" font-family="system-ui, sans-serif" font-size="11">
<style>text {{ fill: #7d8590 }} .head {{ font-weight: 600 }} .name {{ text-anchor: end }} .edgefront {{ fill: #e8710a }} .peer {{ fill: #5c8fd6 }} .bare {{ fill: #9aa0a6 }}</style>
{titles}{rows}</svg>
"#
    )
}

impl Panel<'_> {
    fn bar(&self, rows: &mut String, workload: Workload, candidate: &Candidate, top: f64) {
        let Some(value) = self.value(workload, candidate) else { return };
        let longest = self.longest();
        let length = if longest > 0.0 { (BARS * value / longest).max(1.0) } else { 1.0 };
        let class = match candidate.kind {
            Kind::Edgefront(_) => "edgefront",
            Kind::Peer => "peer",
            Kind::Bare => "bare",
        };
        let (left, bar, text) = (self.left, top + 2.0, top + 11.0);
        let _ =
            writeln!(rows, r#"<rect x="{left}" y="{bar:.0}" width="{length:.1}" height="11" rx="2" class="{class}"/>"#);
        let _ = writeln!(rows, r#"<text x="{:.1}" y="{text:.0}">{}</text>"#, left + length + 5.0, figure(value));
    }

    fn value(&self, workload: Workload, candidate: &Candidate) -> Option<f64> {
        // A Worker that asks no Redis waits for none.
        if candidate.kind == Kind::Bare && self.latency > 0 {
            return None;
        }
        let (latency, connections) = (self.latency, self.connections);
        let cell = Cell { workload, latency, connections, candidate: candidate.name.clone() };
        self.results.figures(&cell).map(|figures| (self.figure)(&figures))
    }

    /// The scale of all bars of this panel.
    fn longest(&self) -> f64 {
        let values = self.results.workloads().into_iter().flat_map(|workload| {
            self.results.candidates.iter().filter_map(move |candidate| self.value(workload, candidate))
        });
        statistics::most(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::run;

    #[test]
    fn every_bar_has_its_number_and_a_worker_that_does_nothing_waits_for_nothing() {
        let svg = svg(&run());
        let bars = |class: &str| svg.matches(&format!("class=\"{class}\"/>")).count();
        assert_eq!((bars("edgefront"), bars("peer"), bars("bare")), (2, 4, 1));
        assert!(svg.contains(">2,250</text>") && svg.contains(">11.0</text>"), "{svg}");
    }
}
