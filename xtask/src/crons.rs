//! The crons tick: `wrangler dev` does not fire them. As in production a tick comes on the full minute, and a late one does not stop the next.

use std::time::{Duration, SystemTime};

use tokio::{task::JoinSet, time};

/// Fires the triggers of wrangler.toml until it is dropped. `origin` is the Worker's address, without a slash at the end.
pub async fn tick(origin: &str) {
    let client = reqwest::Client::new();
    let mut running = JoinSet::new();
    loop {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (minute, wait) = next(now);
        time::sleep(wait).await;
        for cron in due(minute) {
            let url = format!("{origin}/cdn-cgi/local/scheduled?cron={}", cron.replace(' ', "+"));
            running.spawn(fire(client.clone(), url, cron));
        }
        while running.try_join_next().is_some() {}
    }
}

async fn fire(client: reqwest::Client, url: String, cron: &'static str) {
    // A run may loop for 55 s; what takes longer than two minutes is stuck.
    match client.get(url).timeout(Duration::from_mins(2)).send().await {
        Ok(answer) if answer.status().is_success() => {}
        Ok(answer) => println!("cron {cron}: failed, {}", answer.status()),
        Err(cause) => println!("cron {cron}: failed, {}", cause.without_url()),
    }
}

/// The next full minute since the epoch, and how far away it is.
fn next(now: Duration) -> (u64, Duration) {
    let minute = now.as_secs() / 60 + 1;
    (minute, Duration::from_secs(minute * 60).saturating_sub(now))
}

fn due(minute: u64) -> impl Iterator<Item = &'static str> {
    [("* * * * *", 1), ("*/5 * * * *", 5)]
        .into_iter()
        .filter(move |(_, every)| minute.is_multiple_of(*every))
        .map(|(cron, _)| cron)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_comes_on_the_full_minute() {
        assert_eq!(next(Duration::from_millis(59_500)), (1, Duration::from_millis(500)));
        assert_eq!(next(Duration::from_mins(1)), (2, Duration::from_mins(1)));
    }

    #[test]
    fn the_ranking_is_rescaled_every_five_minutes() {
        assert_eq!(due(5).collect::<Vec<_>>(), ["* * * * *", "*/5 * * * *"]);
        assert_eq!(due(6).collect::<Vec<_>>(), ["* * * * *"]);
    }

    #[test]
    fn every_trigger_of_wrangler_toml_ticks() {
        let file: toml::Table = include_str!("../../wrangler.toml").parse().unwrap();
        let crons: Vec<_> =
            file["triggers"]["crons"].as_array().unwrap().iter().filter_map(toml::Value::as_str).collect();
        assert_eq!(crons, due(0).collect::<Vec<_>>());
    }
}
