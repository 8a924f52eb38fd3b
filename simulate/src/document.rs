//! Publishes a run: `docs/simulation.md`, its charts, and the saturation between two markers of `docs/scaling.md`.

use std::{fs, time::Duration};

use crate::{
    plot,
    report::{TABLES, markdown, percent, seconds, short},
    saturation,
    scenario::{Layout, Scenario},
    summary::Summary,
    tally::Source,
    world::World,
};

const FILE: &str = "docs/simulation.md";
const SCALING: &str = "docs/scaling.md";
const BEGIN: &str = "<!-- cargo xtask simulate --write-docs -->";
const END: &str = "<!-- end of the simulation -->";
/// Around the table that the test of the simulation writes.
const VALIDATION: &str = "<!-- table: validation -->";
const TABLE_END: &str = "<!-- end -->";
/// Traffic of the runs that compare settings.
const COMPARED: f64 = 100_000.0;
/// Traffic of the runs that compare a sample with the whole.
const WHOLE: f64 = 10_000.0;

/// Writes the page and the charts.
///
/// # Errors
/// A message about what failed.
pub fn write(summaries: &[Summary], seed: u64) -> Result<(), String> {
    for (name, svg) in plot::charts(summaries).map_err(|cause| cause.to_string())? {
        save(&format!("docs/{name}"), &svg)?;
    }
    let page = fs::read_to_string(FILE).map_err(|cause| format!("{FILE}: {cause}"))?;
    let introduction = with_validation(&page).ok_or_else(|| format!("{FILE} lacks {VALIDATION} or {TABLE_END}"))?;
    let mut page = [&introduction, "\n## Settings\n\n", SETTINGS, "\n", &settings(seed)?].concat();
    for (table, chart) in TABLES.iter().zip(plot::NAMES) {
        page.extend(["\n## ", table.title, "\n\n![", table.title, "](", chart, ")\n"]);
        for layout in Layout::ALL {
            page.extend(["\n", &capital(layout.name()), ":\n\n", &table.render(layout, summaries)]);
        }
    }
    page.extend(["\n## Sampling\n\n", SAMPLING, "\n", &sampling(seed)?]);
    save(FILE, &page)?;
    let scaling = fs::read_to_string(SCALING).map_err(|cause| format!("{SCALING}: {cause}"))?;
    let table = saturation::table(summaries);
    let scaling =
        replace_between_markers(&scaling, &table).ok_or_else(|| format!("{SCALING} lacks {BEGIN} or {END}"))?;
    save(SCALING, &scaling)?;
    println!("written: {FILE}, its charts, {SCALING}");
    Ok(())
}

/// `text` with `content` between the markers; None without markers.
fn replace_between_markers(text: &str, content: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some([before, BEGIN, "\n", content, END, after].concat())
}

/// The introduction with the table that a test has written into the present `page`.
fn with_validation(page: &str) -> Option<String> {
    let (_, rest) = page.split_once(VALIDATION)?;
    let (table, _) = rest.split_once(TABLE_END)?;
    Some(INTRODUCTION.replace(VALIDATION, &[VALIDATION, table.trim_end_matches('\n')].concat()))
}

fn save(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|cause| format!("{path}: {cause}"))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn run(scenario: Scenario, seed: u64) -> Result<Summary, String> {
    Ok(World::new(Scenario { seed, ..scenario })?.run())
}

/// The effect of single settings.
fn settings(seed: u64) -> Result<String, String> {
    let base = || Scenario::new(Layout::TwoTiers, COMPARED);
    let with = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Scenario { variables, ..base() }
    };
    let room = [("PAGE_TOTAL_BYTES", "1073741824")];
    let scenarios = [
        ("the defaults", base()),
        ("`PAGE_MEMORY=30`", with(&[("PAGE_MEMORY", "30")])),
        ("`PAGE_LOCATION_MS=0`", with(&[("PAGE_LOCATION_MS", "0")])),
        ("`PAGE_TOTAL_BYTES` of 1 GiB", with(&room)),
        ("the same, `PAGE_RANK_LIMIT=50000`", with(&[room[0], ("PAGE_RANK_LIMIT", "50000")])),
    ];
    let headings = ["Setting", "memory", "all hits", "renders/s", "commands/s", "MB/s", "stale max, s"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for (name, scenario) in scenarios {
        let summary = run(scenario, seed)?;
        rows.push(vec![
            name.to_owned(),
            percent(summary.tally.share(Source::Memory)),
            percent(summary.tally.hit_ratio()),
            short(summary.renders()),
            short(summary.commands()),
            short(summary.bytes() / 1e6),
            seconds(summary.tally.stale.longest()),
        ]);
    }
    Ok(markdown(rows))
}

/// The same traffic, simulated as a whole and by samples.
fn sampling(seed: u64) -> Result<String, String> {
    let headings = ["Simulated", "all hits", "commands/s", "MB/s", "Redis requests/s"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for share in [1.0, 0.5, 0.2] {
        let mut scenario = Scenario::new(Layout::TwoTiers, WHOLE);
        scenario.duration = Some(Duration::from_secs(30));
        scenario.variables = vec![("PAGE_TOTAL_BYTES".to_owned(), "268435456".to_owned())];
        scenario.simulated_requests = WHOLE * 30.0 * share;
        let summary = run(scenario, seed)?;
        rows.push(vec![
            percent(share),
            percent(summary.tally.hit_ratio()),
            short(summary.commands()),
            short(summary.bytes() / 1e6),
            short(summary.redis_requests()),
        ]);
    }
    Ok(markdown(rows))
}

const INTRODUCTION: &str = "\
# Simulation

This page shows hit ratios, the load of Redis and of the origin, response times and cost, from 10 to a million requests a second. It is for operators who plan a shop that is
larger than any test. `cargo xtask simulate --write-docs --var PAGE_TOTAL_BYTES=268435456` writes it.

A discrete-event simulation ([`simulate/`](../simulate/src/lib.rs)) runs edgefront's own policy code: freshness, decisions and admission of the page cache, the isolate's
memory with its limits in bytes, batches and pace of background writes, traffic counters, circuit breaker, and the defaults of all variables. It does not run Lua, HTTP and
wasm. [One table](../simulate/src/costs.rs) lists the commands of each step; tests compare most of them with a real server.

`cargo xtask test simulation` sends the requests of a small run to edgefront, in front of a Valkey with the gateway, and fails if commands or hit
ratio differ by more than 10 %. [The test](../tests/storefront/system/simulation.rs) also compares the figures of this table with its own:

<!-- table: validation -->
<!-- end -->

## Assumptions

- **Visitors** are in 30 cities, in proportion to Internet users. A visit has 8 pages on average, 15 s apart. A quarter of the visitors are signed in.
  2 % of the pages lead to an addition to the cart, and 30 % of the visitors with a cart buy.
- **Items.** A million; popularity follows Zipf's law with the exponent 0.9. Pages have 20 KB and state no freshness, so popularity decides. This is the hard
  case: half of all views are for items beyond the first 10,000.
- **Events.** Every 7 s, one of the 100 most viewed pages is purged. One flash sale brings four additional visitors for each usual one
  during 5 s. Each of them opens one page and reserves a piece.
- **Distances.** Great circles times 1.5, at two thirds of the speed of light, and a last mile of 15 to 35 ms. Redis, or its primary, is in Frankfurt; the
  regions are Frankfurt, Ashburn, São Paulo, Singapore and Tokyo. A render takes 150 ms on average.
- **Isolates.** A location starts another isolate for every 50 requests a second. An idle one ends after 30 s, a busy one after 30 minutes on average.
  A visitor stays with one isolate. The platform publishes none of these figures.
- **`PAGE_TOTAL_BYTES`** is 256 MiB, so that the 10,000 popular pages fit. The default (64 MiB) holds 3,000 of them. All other
  variables have their defaults.
- **Redis** has no limits here, so the tables show the load that it would have to carry. With `--redis-commands N` it has
  a limit, and a further table shows the requests that it does not answer in time.
- **Prices** are those of [scaling](scaling.md#money): pay as you go; in a database with regions each region executes every write.

## Columns

| column | meaning |
|---|---|
| memory, location, home, Redis | Share of the page views that are answered by: the memory of the isolate near the visitor, the location's cache, the memory of an isolate of the home tier, Redis. |
| all hits | Share of the page views that the origin does not render. |
| origin/s, renders/s | Requests to the origin in a second. |
| Redis requests/s, commands/s, MB/s | Requests, commands and traffic of Redis in a second. |
| peak | Most Redis commands in a second. |
| hottest key | The key with the most commands. |
| stale p50, stale max | Time since the purge of a page that was served after its purge. |
| pages in an isolate | Pages in the fullest isolate. |
| dollars/million | Cost of a million requests of visitors. |
";

const SETTINGS: &str = "\
The same traffic of 100,000 requests a second through two tiers, with other settings.
";

const SAMPLING: &str = "\
A run simulates at most 20,000 requests one by one. Isolates interact only through Redis and their location's cache. So for more traffic, the
simulation runs a sample of each location's isolates, each with all of its requests, and multiplies their figures. For each page, the visitors of all other isolates
are a Poisson process with the rest of the page's rate: it renders the pages that Redis lacks, and fills the locations' caches. Renders and
stores are counted one by one, not multiplied. The error of the sample remains. The table compares samples with the whole: 10,000 requests a second for 30 s
through two tiers, with 256 MiB for pages.
";
