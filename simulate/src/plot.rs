//! Charts of the results as SVG. Their colours are legible on white and on black.

use std::error::Error;

use plotters::{
    coord::Shift,
    coord::ranged1d::{AsRangedCoord, ValueFormatter},
    prelude::*,
};

use crate::{cities::Continent, report::short, scenario::Layout, summary::Summary, tally::Source};

const TEXT: RGBColor = RGBColor(125, 133, 144);
const FONT: &str = "system-ui, sans-serif";
/// The size of a panel, pixels.
const PANEL: (u32, u32) = (360, 250);
const COLOURS: [RGBColor; 5] = [
    RGBColor(232, 113, 10),
    RGBColor(92, 143, 214),
    RGBColor(60, 160, 110),
    RGBColor(160, 110, 200),
    RGBColor(154, 160, 166),
];

type Outcome = Result<(), Box<dyn Error>>;

/// Lines with common axes.
struct Panel {
    title: String,
    lines: Vec<Line>,
    /// The range of the vertical axis, which is logarithmic unless it begins with 0.
    range: (f64, f64),
    unit: &'static str,
}

struct Line {
    name: String,
    colour: RGBColor,
    is_thin: bool,
    points: Vec<(f64, f64)>,
}

/// A chart: the file's name in `docs/`, and its content.
pub type Chart = (&'static str, String);

/// The names of the charts in `docs/`: one for each of the [`TABLES`](crate::report::TABLES), in their order.
pub const NAMES: [&str; 3] = ["simulation-hits.svg", "simulation-redis.svg", "simulation-times.svg"];

/// All charts.
///
/// # Errors
/// When a chart cannot be drawn.
pub fn charts(summaries: &[Summary]) -> Result<Vec<Chart>, Box<dyn Error>> {
    let hits = Layout::ALL.map(|layout| hits(layout, summaries));
    let redis = redis(summaries);
    let times = Continent::ALL.map(|continent| times(continent, summaries));
    [(NAMES[0], hits.as_slice(), 3), (NAMES[1], &redis, 3), (NAMES[2], &times, 3)]
        .into_iter()
        .map(|(name, panels, columns)| Ok((name, draw(panels, columns)?)))
        .collect()
}

fn line(name: &str, number: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.to_owned(), colour: COLOURS[number % COLOURS.len()], is_thin: false, points }
}

fn points(layout: Layout, summaries: &[Summary], figure: impl Fn(&Summary) -> f64) -> Vec<(f64, f64)> {
    let of_layout = summaries.iter().filter(|summary| summary.scenario.layout == layout);
    of_layout.map(|summary| (summary.scenario.requests_per_second, figure(summary))).collect()
}

fn hits(layout: Layout, summaries: &[Summary]) -> Panel {
    let sources = [Source::Memory, Source::Location, Source::Home, Source::Redis];
    let mut lines: Vec<_> = sources
        .into_iter()
        .enumerate()
        .map(|(number, source)| {
            line(source.name(), number, points(layout, summaries, |summary| summary.tally.share(source) * 100.0))
        })
        .collect();
    lines.push(line("all hits", 4, points(layout, summaries, |summary| summary.tally.hit_ratio() * 100.0)));
    Panel { title: format!("pages by source, %: {}", layout.name()), lines, range: (0.0, 100.0), unit: "" }
}

fn redis(summaries: &[Summary]) -> [Panel; 6] {
    let panel = |title: &str, unit, figure: fn(&Summary) -> f64| {
        let lines: Vec<_> = Layout::ALL
            .into_iter()
            .enumerate()
            .map(|(number, layout)| line(layout.name(), number, points(layout, summaries, figure)))
            .collect();
        let values = || lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let range = (values().fold(f64::INFINITY, f64::min).max(1e-3), values().fold(1.0, f64::max) * 1.5);
        Panel { title: title.to_owned(), lines, range, unit }
    };
    [
        panel("requests to Redis a second", "", Summary::redis_requests),
        panel("commands a second", "", Summary::commands),
        panel("bytes a second to and from Redis", "B", Summary::bytes),
        panel("commands a second on the hottest key", "", |summary| summary.hottest().1),
        panel("renders a second at the origin", "", Summary::renders),
        panel("dollars a month", "$", Summary::dollars),
    ]
}

fn times(continent: Continent, summaries: &[Summary]) -> Panel {
    let mut lines = Vec::new();
    for (number, layout) in Layout::ALL.into_iter().enumerate() {
        for (name, quantile, is_thin) in [("p50", 0.5, false), ("p99", 0.99, true)] {
            let millis = |summary: &Summary| summary.tally.latency(continent, quantile).as_secs_f64() * 1e3;
            let name = format!("{name}, {}", layout.name());
            lines.push(Line { is_thin, ..line(&name, number, points(layout, summaries, millis)) });
        }
    }
    Panel { title: format!("response time, ms: {}", continent.name()), lines, range: (0.0, 1_600.0), unit: "" }
}

fn draw(panels: &[Panel], columns: usize) -> Result<String, Box<dyn Error>> {
    let rows = panels.len().div_ceil(columns);
    let size = |panel: u32, count: usize| panel * u32::try_from(count).unwrap_or(1);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (size(PANEL.0, columns), size(PANEL.1, rows))).into_drawing_area();
        for (area, panel) in area.split_evenly((rows, columns)).into_iter().zip(panels) {
            if panel.range.0 > 0.0 {
                draw_panel(&area, panel, (panel.range.0..panel.range.1).log_scale())?;
            } else {
                draw_panel(&area, panel, panel.range.0..panel.range.1)?;
            }
        }
        area.present()?;
    }
    Ok(svg)
}

fn draw_panel<Y>(area: &DrawingArea<SVGBackend, Shift>, panel: &Panel, vertical: Y) -> Outcome
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let style = |size: f64| (FONT, size).into_font().color(&TEXT);
    let xs = || panel.lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x);
    let (first, last) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, style(13.0))
        .margin(8)
        .x_label_area_size(32)
        .y_label_area_size(48)
        .build_cartesian_2d((first..last).log_scale(), vertical)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(TEXT.mix(0.2))
        .axis_style(TEXT)
        .label_style(style(10.0))
        .x_desc("requests/s")
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| format!("{}{}", short(*value), panel.unit))
        .draw()?;
    for line in &panel.lines {
        let width = if line.is_thin { 1 } else { 2 };
        let colour = line.colour;
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), colour.stroke_width(width)))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 12, y)], colour.stroke_width(width)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font(style(10.0))
        .legend_area_size(16)
        .draw()?;
    Ok(())
}
