//! Schedules the refresh of the demo shop's sale rows, so that its pages show the live stock from the first visit on.

use std::time::Duration;

use xtask::{
    failure::Failure,
    steps::{done, run_step},
    variables::Variables,
};

use crate::edgefront_crate;

/// The refresh period of a sale row, seconds: that of the book's flash sale.
const PERIOD: u32 = 5;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Schedules the rows if the demo shop is the origin and its table is the source of rows. `worker_url` has no slash at
/// its end.
///
/// # Errors
/// When the Worker rejects a request.
pub async fn schedule(worker_url: &str, variables: &Variables) -> Result<(), Failure> {
    let variable = |name| variables.get(name).map_or("", String::as_str);
    if !variable("ORIGIN_URL").is_empty() || variable("ROWS_TABLE") != "inventory" {
        return Ok(());
    }
    run_step("sale rows", async |_| {
        let client = reqwest::Client::new();
        let rows = edgefront_crate::sale_rows();
        for row in rows.clone() {
            let put = client
                .put(format!("{worker_url}/_edge/v1/rows/{row}/schedule"))
                .bearer_auth(variable("SERVICE_KEY"))
                .header("content-type", "application/json")
                .body(format!(r#"{{"every": {PERIOD}}}"#));
            let error = match put.timeout(REQUEST_TIMEOUT).send().await {
                Ok(response) if response.status().is_success() => continue,
                Ok(response) => response.status().to_string(),
                Err(cause) => cause.without_url().to_string(),
            };
            return Err(Failure::new(format!("row {row}: {error}"), "see the Worker's log above"));
        }
        Ok(done(format!("{} rows of the inventory, refreshed every {PERIOD} s", rows.count())))
    })
    .await
}
