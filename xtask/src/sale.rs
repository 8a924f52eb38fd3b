//! The demo shop's sales: their rows are refreshed every few seconds, so that its pages show live stock from the first visit on.

use std::{collections::BTreeMap, time::Duration};

use edgefront::demo;

use xtask::{
    failure::Failure,
    steps::{done, step},
};

/// How often a row of the sale is refreshed, in seconds: the book's flash sale.
const EVERY: u32 = 5;

/// Schedules the rows of the sale, if the demo shop is the origin and its table the source of rows. `origin` is the Worker's
/// address, without a slash at the end.
///
/// # Errors
/// When the Worker refuses.
pub async fn schedule(origin: &str, vars: &BTreeMap<String, String>) -> Result<(), Failure> {
    let var = |name| vars.get(name).map_or("", String::as_str);
    if !var("ORIGIN_URL").is_empty() || var("ROWS_TABLE") != "inventory" {
        return Ok(());
    }
    step("sale", async |_| {
        let client = reqwest::Client::new();
        let rows = demo::ON_SALE.into_iter().chain(demo::FLASH_SALES);
        for row in rows.clone() {
            let put = client.put(format!("{origin}/_edge/v1/rows/{row}/schedule")).bearer_auth(var("SERVICE_KEY"));
            let put = put.header("content-type", "application/json").body(format!(r#"{{"every": {EVERY}}}"#));
            let refused = match put.timeout(Duration::from_secs(10)).send().await {
                Ok(answer) if answer.status().is_success() => continue,
                Ok(answer) => answer.status().to_string(),
                Err(cause) => cause.without_url().to_string(),
            };
            return Err(Failure::new(format!("row {row}: {refused}"), "the Worker's own words are above"));
        }
        Ok(done(format!("{} rows of the inventory, refreshed every {EVERY} s", rows.count())))
    })
    .await
}
