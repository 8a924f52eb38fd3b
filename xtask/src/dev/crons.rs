//! Fires the cron triggers, because `wrangler dev` does not. As in production, a trigger fires on the full minute, and
//! a slow run does not delay the next one.

use std::time::{Duration, SystemTime};

use tokio::{task::JoinSet, time};

/// A run may loop for 55 s. A run of more than two minutes is stuck.
const RUN_TIMEOUT: Duration = Duration::from_mins(2);

/// Fires the triggers of wrangler.toml until it is dropped. `worker_url` has no slash at its end.
pub async fn tick(worker_url: &str) {
    let client = reqwest::Client::new();
    let mut runs = JoinSet::new();
    loop {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (minute, wait) = next_minute(now);
        time::sleep(wait).await;
        for cron in due(minute) {
            let url = format!("{worker_url}/cdn-cgi/local/scheduled?cron={}", cron.replace(' ', "+"));
            runs.spawn(fire(client.clone(), url, cron));
        }
        while runs.try_join_next().is_some() {}
    }
}

async fn fire(client: reqwest::Client, url: String, cron: &'static str) {
    match client.get(url).timeout(RUN_TIMEOUT).send().await {
        Ok(response) if response.status().is_success() => {}
        Ok(response) => println!("cron {cron}: failed, {}", response.status()),
        Err(cause) => println!("cron {cron}: failed, {}", cause.without_url()),
    }
}

/// The next full minute since the Unix epoch, and the time until then.
fn next_minute(now: Duration) -> (u64, Duration) {
    let minute = now.as_secs() / 60 + 1;
    (minute, Duration::from_secs(minute * 60).saturating_sub(now))
}

/// The triggers that fire in this minute.
fn due(minute: u64) -> impl Iterator<Item = &'static str> {
    [("* * * * *", 1), ("*/5 * * * *", 5)]
        .into_iter()
        .filter(move |(_, period)| minute.is_multiple_of(*period))
        .map(|(cron, _)| cron)
}

#[cfg(test)]
mod tests {
    use xtask::wrangler_toml::WranglerToml;

    use super::*;

    #[test]
    fn a_trigger_fires_on_the_full_minute() {
        assert_eq!(next_minute(Duration::from_millis(59_500)), (1, Duration::from_millis(500)));
        assert_eq!(next_minute(Duration::from_mins(1)), (2, Duration::from_mins(1)));
    }

    #[test]
    fn the_ranking_is_rescaled_every_five_minutes() {
        assert_eq!(due(5).collect::<Vec<_>>(), ["* * * * *", "*/5 * * * *"]);
        assert_eq!(due(6).collect::<Vec<_>>(), ["* * * * *"]);
    }

    #[test]
    fn every_trigger_of_wrangler_toml_fires() {
        let file = WranglerToml::parse(include_str!("../../../wrangler.toml")).unwrap();
        let crons = file.table()["triggers"]["crons"].as_array().unwrap();
        let crons: Vec<_> = crons.iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(crons, due(0).collect::<Vec<_>>());
    }
}
