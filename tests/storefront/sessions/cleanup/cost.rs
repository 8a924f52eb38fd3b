use edgefront::sessions::{CleanupProbe, CleanupReport};

use super::{clean, fill, start_session, store_with_limit};

#[tokio::test]
async fn a_run_that_finds_nothing_costs_one_command() {
    let (store, app) = store_with_limit("10").await;
    start_session(&store, &app, "ada").await;
    for probe in [CleanupProbe::Overflow, CleanupProbe::Idle] {
        let before = store.counts().commands;
        assert_eq!(clean(&app, probe).await, CleanupReport::default());
        assert_eq!(store.counts().commands - before, 1, "{probe:?}");
    }
}

/// The pace of the cleanup (`cargo bench --bench cleanup`) depends on it.
#[tokio::test]
async fn a_thousand_sessions_end_in_one_request() {
    let (store, app) = store_with_limit("1").await;
    // Loads the script.
    fill(&store, &app, 2).await;
    assert_eq!(clean(&app, CleanupProbe::Overflow).await.sessions, 1);
    fill(&store, &app, 10_000).await;
    let before = store.counts();
    let report = clean(&app, CleanupProbe::Overflow).await;
    assert_eq!(report, CleanupReport { sessions: 10_000, carts: 10_000, unfinished: false });
    // Three more: the probe, the first read and the last.
    assert_eq!(store.counts().requests - before.requests, 10 + 3);
}

#[tokio::test]
async fn the_list_of_abandoned_carts_is_bounded() {
    let (store, app) = store_with_limit("1").await;
    fill(&store, &app, 10_301).await;
    assert_eq!(clean(&app, CleanupProbe::Overflow).await.carts, 10_300);
    // Redis trims whole nodes of the stream, which hold 100 entries.
    let length = store.raw(&["XLEN", "abandoned:"]).await;
    assert!(length.as_u64().is_some_and(|length| (10_000..=10_100).contains(&length)), "{length}");
}
