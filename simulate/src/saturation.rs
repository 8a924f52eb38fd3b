//! The size at which each component is full.

use crate::{
    report::{markdown, short},
    scenario::Layout,
    summary::Summary,
};

/// A component, what it carries, and the setting that moves its limit.
struct Limit {
    component: &'static str,
    most: f64,
    figure: fn(&Summary) -> f64,
    setting: &'static str,
}

const LIMITS: [Limit; 7] = [
    Limit {
        component: "Upstash's free plan: 500,000 commands a month",
        most: 500_000.0 / 2_592_000.0,
        figure: Summary::commands,
        setting: "another plan",
    },
    Limit {
        component: "200 GB of free traffic a month (pay as you go)",
        most: 200e9 / 2_592_000.0,
        figure: Summary::bytes,
        setting: "`PAGE_MEMORY`, `PAGE_LOCATION_MS`, smaller pages",
    },
    Limit {
        component: "an origin that renders 100 pages a second",
        most: 100.0,
        figure: Summary::renders,
        setting: "`Cache-Control` of the origin, `PAGE_RANK_LIMIT`, `PAGE_TOTAL_BYTES`",
    },
    Limit {
        component: "one gateway on two cores: 76,000 requests a second",
        most: 76_000.0,
        figure: Summary::redis_requests,
        setting: "more gateways, which share nothing",
    },
    Limit {
        component: "one Valkey: 130,000 commands a second",
        most: 130_000.0,
        figure: Summary::commands,
        setting: "`SHARDS` and a Redis Cluster, for sessions and carts",
    },
    Limit {
        component: "the server of the hottest key: 130,000 commands a second",
        most: 130_000.0,
        figure: |summary| summary.hottest().1,
        setting: "stated freshness (no rank is read); no number of shards",
    },
    Limit {
        component: "a network of 1 Gbit/s at Redis",
        most: 125e6,
        figure: Summary::bytes,
        setting: "`PAGE_LOCATION_MS`, two tiers, smaller pages",
    },
];

/// The table in Markdown.
#[must_use]
pub fn table(summaries: &[Summary]) -> String {
    let layouts = Layout::ALL.map(|layout| layout.name().to_owned());
    let headings = ["Component".to_owned()].into_iter().chain(layouts).chain(["Setting".to_owned()]).collect();
    let rows = LIMITS.iter().map(|limit| {
        let sizes = Layout::ALL.map(|layout| {
            size(layout, summaries, limit).map_or_else(|| "beyond".to_owned(), |size| short(size) + "/s")
        });
        [limit.component.to_owned()].into_iter().chain(sizes).chain([limit.setting.to_owned()]).collect()
    });
    markdown([headings].into_iter().chain(rows))
}

/// Requests of visitors a second at which the figure reaches the limit. Between two runs, the figure is a power of the
/// traffic; below the first run, it is proportional.
fn size(layout: Layout, summaries: &[Summary], limit: &Limit) -> Option<f64> {
    let mut before: Option<(f64, f64)> = None;
    for summary in summaries.iter().filter(|summary| summary.scenario.layout == layout) {
        let (traffic, figure) = (summary.scenario.requests_per_second, (limit.figure)(summary));
        if figure >= limit.most {
            let Some((traffic_before, figure_before)) = before.filter(|(_, figure)| *figure > 0.0) else {
                return Some(traffic * limit.most / figure);
            };
            let part = (limit.most / figure_before).ln() / (figure / figure_before).ln();
            return Some(traffic_before * (traffic / traffic_before).powf(part));
        }
        before = Some((traffic, figure));
    }
    None
}
