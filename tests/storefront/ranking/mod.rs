//! The ranking: counting, reading, rescaling.

/// The background writes of views and touches.
mod activity;
/// The sample of views at a reduced pace.
mod sampling;

use std::time::Duration;

use edgefront::{
    config::RankingConfig,
    ports::time::Timestamp,
    ranking::{self, RankedItem, RescaleReport},
};
use futures_util::future::join_all;

use crate::support::{Store, item};

const CONFIG: RankingConfig = RankingConfig { keep: 20_000, half_life: Duration::from_mins(5) };
/// The start of a half-life.
const NOON: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// `RANKING_HALF_LIFE` of 127 years: the present one began in 1970.
pub const LONG_HALF_LIFE: &str = "4000000000";

/// Makes one halving with [`LONG_HALF_LIFE`] due, at any time.
pub async fn make_halving_due(store: &Store) {
    store.raw(&["SET", "rescaled:", &format!("-{LONG_HALF_LIFE}")]).await;
}

fn after(seconds: u64) -> Timestamp {
    NOON + Duration::from_secs(seconds)
}

async fn rescale(store: &Store, now: Timestamp) -> RescaleReport {
    ranking::rescale(&store.redis, now, &CONFIG).await.unwrap()
}

async fn views(store: &Store, item: &str) -> Option<f64> {
    let reply = store.raw(&["ZSCORE", "viewed:", item]).await;
    reply.as_str().map(|score| 0.0 - score.parse::<f64>().unwrap())
}

async fn store_views(store: &Store, items: &[(String, u32)]) {
    for chunk in items.chunks(5_000) {
        let words: Vec<_> = chunk.iter().flat_map(|(item, views)| [format!("-{views}"), item.clone()]).collect();
        let command: Vec<_> = ["ZADD", "viewed:"].into_iter().chain(words.iter().map(String::as_str)).collect();
        store.raw(&command).await;
    }
}

/// The book's `ZREMRANGEBYRANK viewed: 0 -20001` would delete ranks 0 to 4,999 here.
#[tokio::test]
async fn a_rescale_keeps_the_most_viewed_items() {
    let store = Store::new().await;
    let items: Vec<_> = (0..25_000).map(|rank| (format!("item-{rank}"), 30_000 - rank)).collect();
    rescale(&store, NOON).await;
    store_views(&store, &items).await;
    assert_eq!(rescale(&store, after(300)).await, RescaleReport { halvings: 1, trimmed: 5_000, forgotten: 0 });
    assert_eq!(store.raw(&["ZCARD", "viewed:"]).await, 20_000);
    assert_eq!(crate::support::rank(&store.redis, &item("item-0")).await.unwrap(), Some(0));
    assert_eq!(crate::support::rank(&store.redis, &item("item-19999")).await.unwrap(), Some(19_999));
    assert_eq!(views(&store, "item-0").await, Some(15_000.0));
    assert_eq!(views(&store, "item-20000").await, None);
}

#[tokio::test]
async fn a_rescale_of_100_000_items_is_one_request() {
    let store = Store::new().await;
    // The first run sends the script's source, too.
    rescale(&store, NOON).await;
    let items: Vec<_> = (0..100_000).map(|rank| (format!("item-{rank}"), 200_000 - rank)).collect();
    store_views(&store, &items).await;
    let before = store.counts();
    assert_eq!(rescale(&store, after(300)).await, RescaleReport { halvings: 1, trimmed: 80_000, forgotten: 0 });
    let counts = store.counts();
    assert_eq!((counts.requests - before.requests, counts.commands - before.commands), (1, 1));
}

#[tokio::test]
async fn the_most_viewed_item_has_rank_0_and_an_unknown_item_has_none() {
    let store = Store::new().await;
    store_views(&store, &[("mug".to_owned(), 2), ("lamp".to_owned(), 1)]).await;
    for (id, rank) in [("mug", Some(0)), ("lamp", Some(1)), ("unknown", None)] {
        assert_eq!(crate::support::rank(&store.redis, &item(id)).await.unwrap(), rank, "{id}");
    }
}

#[tokio::test]
async fn a_reported_view_counts_only_for_a_ranked_item() {
    let store = Store::new().await;
    let keys = store.redis.keys();
    store.redis.run::<()>(ranking::count_if_ranked_command(keys, &item("made-up"), 1)).await.unwrap();
    assert_eq!(views(&store, "made-up").await, None);
    store.redis.run::<()>(ranking::count_command(keys, &item("mug"), 1)).await.unwrap();
    store.redis.run::<()>(ranking::count_if_ranked_command(keys, &item("mug"), 1)).await.unwrap();
    assert_eq!(views(&store, "mug").await, Some(2.0));
}

#[tokio::test]
async fn the_top_is_ordered_by_views_and_skips_members_that_are_no_items() {
    let store = Store::new().await;
    store_views(&store, &[("lamp".to_owned(), 7), ("not/an/item".to_owned(), 8), ("mug".to_owned(), 9)]).await;
    let ranked = |id, rank, views| RankedItem { item: item(id), rank, views };
    let top = ranking::top(&store.redis, 10).await.unwrap();
    assert_eq!(top, [ranked("mug", 0, 9.0), ranked("lamp", 2, 7.0)]);
    assert_eq!(ranking::top(&store.redis, 1).await.unwrap(), [ranked("mug", 0, 9.0)]);
    assert_eq!(ranking::top(&store.redis, 0).await.unwrap(), []);
}

#[tokio::test]
async fn concurrent_rescales_halve_once() {
    let store = Store::new().await;
    rescale(&store, NOON - CONFIG.half_life).await;
    store_views(&store, &[("mug".to_owned(), 1_024)]).await;
    rescale(&store, NOON).await;
    assert_eq!(rescale(&store, after(299)).await.halvings, 0);
    assert_eq!(views(&store, "mug").await, Some(512.0));
    join_all((0..8).map(|_| rescale(&store, after(300)))).await;
    assert_eq!(views(&store, "mug").await, Some(256.0));
}

#[tokio::test]
async fn a_rescale_catches_up_after_missed_ones() {
    let store = Store::new().await;
    rescale(&store, NOON).await;
    store_views(&store, &[("mug".to_owned(), 1_024)]).await;
    // Three runs are missed, and the fourth is half a minute late.
    assert_eq!(rescale(&store, after(4 * 300 + 30)).await.halvings, 4);
    assert_eq!(views(&store, "mug").await, Some(64.0));
    assert_eq!(rescale(&store, after(5 * 300)).await.halvings, 1);
}

#[tokio::test]
async fn a_clock_that_lags_halves_nothing() {
    let store = Store::new().await;
    rescale(&store, NOON).await;
    store_views(&store, &[("mug".to_owned(), 8)]).await;
    rescale(&store, after(300)).await;
    assert_eq!(rescale(&store, NOON).await.halvings, 0);
    assert_eq!(rescale(&store, after(300)).await.halvings, 0);
    assert_eq!(views(&store, "mug").await, Some(4.0));
}

#[tokio::test]
async fn first_views_do_not_decay_for_the_time_before_them() {
    let store = Store::new().await;
    rescale(&store, NOON).await;
    assert_eq!(rescale(&store, after(30_000)).await, RescaleReport::default());
    store_views(&store, &[("mug".to_owned(), 8)]).await;
    rescale(&store, after(30_300)).await;
    assert_eq!(views(&store, "mug").await, Some(4.0));
}

/// The views of a new shop, those of the book's code, and those of a new layout.
#[tokio::test]
async fn views_without_a_marker_are_halved_from_the_next_half_life_on() {
    let store = Store::new().await;
    store_views(&store, &[("mug".to_owned(), 8)]).await;
    assert_eq!(rescale(&store, after(299)).await.halvings, 0);
    assert_eq!(rescale(&store, after(300)).await.halvings, 1);
    assert_eq!(views(&store, "mug").await, Some(4.0));
}

#[tokio::test]
async fn a_view_is_forgotten_after_ten_half_lives() {
    let store = Store::new().await;
    rescale(&store, NOON).await;
    store_views(&store, &[("mug".to_owned(), 1), ("lamp".to_owned(), 2)]).await;
    assert_eq!(rescale(&store, after(9 * 300)).await.forgotten, 0);
    assert_eq!(rescale(&store, after(10 * 300)).await.forgotten, 1);
    assert_eq!((views(&store, "mug").await, views(&store, "lamp").await), (None, Some(2.0 / 1_024.0)));
}

#[tokio::test]
async fn a_change_of_the_half_life_does_not_erase_the_ranking() {
    let store = Store::new().await;
    store_views(&store, &[("mug".to_owned(), 1_024)]).await;
    rescale(&store, NOON).await;
    for seconds in [600, 300, 1] {
        let config = RankingConfig { half_life: Duration::from_secs(seconds), ..CONFIG };
        let report = ranking::rescale(&store.redis, after(1), &config).await.unwrap();
        assert!(report.halvings <= 1, "{seconds} s: {report:?}");
    }
}
