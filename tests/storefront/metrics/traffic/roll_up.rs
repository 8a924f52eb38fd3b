use std::time::Duration;

use edgefront::{
    metrics::traffic::{LatencyKind, Metric, TrafficSample, read_series, read_totals, roll_up},
    ports::time::{Clock, Timestamp},
};
use edgefront_gateway::Fault;
use futures_util::future::join;
use serde_json::json;
use upstash_rest::Command;

use crate::support::Store;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// A store, and the moment five minutes and a half into an hour.
async fn store() -> (Store, Timestamp) {
    let store = Store::new().await;
    let now = in_hour(&store);
    (store, now)
}

/// Five and a half minutes after the start of the store's hour.
fn in_hour(store: &Store) -> Timestamp {
    Timestamp::from_millis(store.clock.now().as_millis() / HOUR * HOUR + 330_000)
}

/// Writes an entry of that moment with some hits, each of 40 ms, and as many errors.
async fn enter(store: &Store, at: Timestamp, hits: u64) {
    let (id, hits) = (format!("{}-*", at.as_millis()), hits.to_string());
    let latency = format!("{} 36:{hits}", 40 * hits.parse::<u64>().unwrap());
    let error = ["error:404 storefront origin", hits.as_str()];
    store.raw(&["XADD", "traffic:", &id, "hit", &hits, "ms:hit", &latency, error[0], error[1]]).await;
}

/// Writes an entry with one hit for each of the last `count` full minutes. Pipelines have at most 500 commands.
async fn enter_each_minute(store: &Store, now: Timestamp, count: u64) {
    let last = now.as_millis() / MINUTE - 1;
    let minutes: Vec<_> = (last - count + 1..=last).collect();
    for minutes in minutes.chunks(500) {
        let add = |minute: &u64| Command::write("XADD").arg("traffic:").arg(format!("{}-*", minute * MINUTE));
        let entries: Vec<_> = minutes.iter().map(|minute| add(minute).arg("hit").num(1)).collect();
        store.aside.all::<Vec<String>>(&entries).await.unwrap();
    }
}

fn figures(sample: &TrafficSample) -> [u64; 3] {
    let errors = sample.errors.counts().iter().map(|(_, count)| count).sum();
    [sample.counts.get(Metric::Hit), sample.latencies.of(LatencyKind::Hit).count(), errors]
}

/// The sums of an hour, a day, a week, and since the beginning.
async fn sums(store: &Store, now: Timestamp) -> [[u64; 3]; 4] {
    let mut sums = [[0; 3]; 4];
    for (sum, minutes) in sums.iter_mut().zip([60, 1_440, 10_080]) {
        *sum = figures(&read_series(&store.redis, minutes, now).await.unwrap().totals());
    }
    sums[3] = figures(&read_totals(&store.redis).await.unwrap());
    sums
}

#[tokio::test]
async fn every_entry_counts_once_in_each_range() {
    let (store, now) = store().await;
    for (minutes, hits) in [(50, 1), (49, 2), (20, 4), (4, 8), (0, 16)] {
        enter(&store, now - Duration::from_mins(minutes), hits).await;
    }
    assert_eq!(sums(&store, now).await, [[31; 3]; 4], "before the first roll-up");
    store.raw(&["ZADD", "recent:", &now.to_string(), "a-token"]).await;

    let (one, other) = join(roll_up(&store.redis, now), roll_up(&store.redis, now)).await;

    assert_eq!((one.unwrap().unwrap().minutes, other.unwrap().unwrap().hours), (4, 1), "two runs at once");
    let lengths = async || {
        let mut lengths = Vec::new();
        for key in ["traffic:minutes", "traffic:hours", "traffic:totals"] {
            lengths.push(store.raw(&["XLEN", key]).await);
        }
        lengths
    };
    assert_eq!(lengths().await, [4, 1, 1]);
    assert_eq!(sums(&store, now).await, [[31; 3]; 4], "the newest entry is not rolled up yet");
    let day = read_series(&store.redis, 1_440, now).await.unwrap();
    assert_eq!(day.online.iter().map(|(_, online)| *online).collect::<Vec<_>>(), [1]);

    // A run that ended before its last write is repeated.
    store.raw(&["DEL", "traffic:totals"]).await;
    roll_up(&store.redis, now).await.unwrap();
    assert_eq!((lengths().await, sums(&store, now).await), (vec![json!(4), json!(1), json!(1)], [[31; 3]; 4]));

    enter(&store, now + Duration::from_mins(1), 32).await;
    let later = now + Duration::from_hours(1);
    roll_up(&store.redis, later).await.unwrap();
    assert_eq!(lengths().await, [6, 2, 1]);
    assert_eq!(sums(&store, later).await[1..], [[63; 3]; 3]);
}

/// The crons were silent for longer than the stream of minutes lasts.
#[tokio::test]
async fn runs_after_a_long_outage_roll_up_every_minute_and_hour() {
    let (store, now) = store().await;
    enter_each_minute(&store, now, 2_000).await;
    store.raw(&["ZADD", "recent:", &now.to_string(), "a-token"]).await;

    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(roll_up(&store.redis, now).await.unwrap().unwrap().minutes);
    }

    assert_eq!(runs, [900, 900, 200, 0]);
    let hours = read_series(&store.redis, 10_080, now).await.unwrap();
    assert_eq!(hours.totals().counts.get(Metric::Hit), 2_000);
    assert_eq!(hours.online.len(), 1, "only the newest minute has the visitors online");
    // The hours have all but the five minutes of the present hour.
    let mut in_hours = TrafficSample::default();
    let entries = store.raw(&["XRANGE", "traffic:hours", "-", "+"]).await;
    for entry in entries.as_array().unwrap() {
        let fields: Vec<_> = entry[1].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        fields.chunks(2).for_each(|field| in_hours.add_field(field[0], field[1]));
    }
    assert_eq!(in_hours.counts.get(Metric::Hit), 1_995);
    assert_eq!(read_totals(&store.redis).await.unwrap().counts.get(Metric::Hit), 2_000);
}

/// A kind that left the sums would make a counter of Prometheus fall.
#[tokio::test]
async fn no_count_of_errors_falls_with_a_roll_up() {
    let (store, now) = store().await;
    let kind = |number: u64| {
        format!("error:{} storefront cause-{number:02}", if number.is_multiple_of(2) { 503 } else { 404 })
    };
    for minute in 0..12 {
        let id = format!("{}-*", (now - Duration::from_mins(13 - minute)).as_millis());
        let counts: Vec<_> = (6 * minute..6 * minute + 6).flat_map(|n| [kind(n), (100 - n).to_string()]).collect();
        let counts = counts.iter().map(String::as_str);
        store.raw(&["XADD", "traffic:", &id].into_iter().chain(counts).collect::<Vec<_>>()).await;
    }
    let before = read_totals(&store.redis).await.unwrap().errors;
    assert_eq!(before.counts().iter().filter(|(kind, _)| kind.route == "storefront").count(), 64);

    for earlier in [8, 3, 0] {
        roll_up(&store.redis, now - Duration::from_mins(earlier)).await.unwrap();
        let after = read_totals(&store.redis).await.unwrap().errors;
        assert_eq!(after.counts(), before.counts(), "{earlier} minutes before the end");
    }
}

/// Redis refuses an old identifier with the same code.
#[tokio::test]
async fn a_minute_that_is_not_stored_is_an_error() {
    // With one shard, the commands that store the minutes are the only pipeline.
    let store = Store::book().await;
    let now = in_hour(&store);
    for minutes in [4, 3, 2] {
        enter(&store, now - Duration::from_mins(minutes), 1).await;
    }
    store.gateway.set_fault(Some(Fault::HalfPipeline));
    let error = roll_up(&store.redis, now).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(store.raw(&["XLEN", "traffic:minutes"]).await, 2);
}

#[tokio::test]
async fn without_traffic_a_run_costs_one_command() {
    let (store, now) = store().await;
    for minutes in [None, Some(300)] {
        if let Some(minutes) = minutes {
            enter(&store, now - Duration::from_mins(minutes), 1).await;
        }
        let before = store.counts().commands;
        assert_eq!(roll_up(&store.redis, now).await.unwrap(), None);
        assert_eq!(store.counts().commands - before, 1);
    }
}
