//! The cron jobs.

use std::time::Duration;

use edgefront::{
    jobs::{self, EVERY_FIVE_MINUTES, EVERY_MINUTE, Job, JobsStatus},
    ports::error::Error,
};
use edgefront_gateway::Fault;
use futures_util::future::join3;

use crate::{
    ranking::{LONG_HALF_LIFE, make_halving_due},
    support::{Reply, Stock, Store},
};

async fn cron(stock: &Stock, cron: &str) {
    jobs::run_cron(&stock.app, cron, stock.now()).await;
}

async fn status(stock: &Stock) -> JobsStatus {
    jobs::status(&stock.app.redis, stock.now()).await.unwrap()
}

/// Advances the clock to the next minute of the cleanup's turn: 0 looks for surplus sessions, 1 for idle ones, 2 writes
/// the heartbeat.
fn next_minute(stock: &Stock, turn: u64) {
    let into_rotation = stock.now().as_millis() % 540_000;
    stock.store.clock.advance(Duration::from_millis(540_000 - into_rotation + turn * 180_000));
}

/// A shop whose ranking is halved only if a test [makes that due](make_halving_due).
async fn with_long_half_life() -> Stock {
    Stock::on(Store::new().await, &[("RANKING_HALF_LIFE", LONG_HALF_LIFE)])
}

/// Stores a session that was last seen in 1970.
async fn store_idle_session(stock: &Stock) {
    let token = edgefront::schema::token::Token::new(stock.now()).unwrap();
    stock.store.raw(&["HSET", "login:", token.as_str(), "ada"]).await;
    stock.store.raw(&["ZADD", "recent:", "1000", token.as_str()]).await;
}

#[tokio::test]
async fn an_idle_cron_sends_one_command_per_job() {
    let stock = Stock::new().await;
    // The first run of a script on a server sends its source, too.
    cron(&stock, EVERY_FIVE_MINUTES).await;
    // The next run of an idle job is skipped.
    let before = stock.store.counts().commands;
    cron(&stock, EVERY_FIVE_MINUTES).await;
    assert_eq!(stock.store.counts().commands, before);
    for minute in 0..3 {
        next_minute(&stock, minute);
        let before = stock.store.counts().commands;
        cron(&stock, EVERY_MINUTE).await;
        // One command for the rows, and one for the sessions of each shard; every third time only the heartbeat.
        let shards = if minute < 2 { stock.store.shards() } else { 1 };
        assert_eq!(stock.store.counts().commands - before, 1 + shards, "minute {minute}");
        cron(&stock, EVERY_FIVE_MINUTES).await;
        assert_eq!(stock.store.counts().commands - before, 2 + shards, "minute {minute}");
    }
    let status = status(&stock).await;
    assert!(status.reports.is_empty(), "{status:?}");
    assert_eq!(status.heartbeat, Some(stock.now().as_score()));
}

#[tokio::test]
async fn the_report_of_a_cron_is_a_heartbeat() {
    let stock = with_long_half_life().await;
    jobs::run_job(&stock.app, Job::Rescale, stock.now()).await.unwrap();
    assert_eq!(status(&stock).await.heartbeat, None, "a run on request shows nothing about the crons");
    stock.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    next_minute(&stock, 5);
    make_halving_due(&stock.store).await;
    cron(&stock, EVERY_FIVE_MINUTES).await;
    let status = status(&stock).await;
    assert_eq!(status.heartbeat, Some(status.reports["rescale"].finished));
}

#[tokio::test]
async fn the_crons_of_nine_minutes_end_an_idle_session() {
    let stock = Stock::new().await;
    store_idle_session(&stock).await;
    for minute in 0..3 {
        next_minute(&stock, minute);
        cron(&stock, EVERY_MINUTE).await;
    }
    assert_eq!(stock.store.raw(&["EXISTS", "recent:", "login:"]).await, 0);
    assert_eq!(status(&stock).await.reports["clean-sessions"].done["sessions"], 1);
}

#[tokio::test]
async fn one_run_refreshes_a_row_every_5_seconds_for_a_minute() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let started = stock.now();
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!((stock.origin.count(), stock.now().since(started).as_secs()), (12, 55));
    assert_eq!(status(&stock).await.reports["refresh-rows"].done["refreshed"], 12);
}

#[tokio::test]
async fn a_row_that_is_always_due_does_not_prolong_a_run() {
    let stock = with_subrequests(Stock::new().await, 10_000);
    stock.put("mug", 1);
    stock.schedule("mug", 0.5).await;
    let started = stock.now();
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.now().since(started).as_secs(), 55);
}

#[tokio::test]
async fn concurrent_crons_do_their_work_once() {
    let stock = with_long_half_life().await;
    stock.put("mug", 1);
    stock.schedule("mug", 60.0).await;
    store_idle_session(&stock).await;
    stock.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    next_minute(&stock, 1);
    join3(cron(&stock, EVERY_MINUTE), cron(&stock, EVERY_MINUTE), cron(&stock, EVERY_MINUTE)).await;
    make_halving_due(&stock.store).await;
    join3(cron(&stock, EVERY_FIVE_MINUTES), cron(&stock, EVERY_FIVE_MINUTES), cron(&stock, EVERY_FIVE_MINUTES)).await;
    assert_eq!(stock.origin.count(), 1);
    assert_eq!(stock.store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-4");
    assert_eq!(stock.store.raw(&["EXISTS", "recent:", "login:"]).await, 0);
}

#[tokio::test]
async fn a_cron_catches_up_after_missed_ones() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 60.0).await;
    cron(&stock, EVERY_MINUTE).await;
    stock.put("mug", 2);
    stock.store.clock.advance(Duration::from_hours(1));
    assert!(status(&stock).await.rows_late > 3_500.0);
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.copied("mug").await, 2);
    assert!(status(&stock).await.rows_late < 1.0);
}

#[tokio::test]
async fn a_failing_job_reports_its_error_and_stops_no_other() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 60.0).await;
    stock.store.raw(&["SET", "recent:", "a string of another program"]).await;
    next_minute(&stock, 0);
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.copied("mug").await, 1);
    let cleanup = status(&stock).await.reports.remove("clean-sessions").unwrap();
    assert_eq!(cleanup.error.as_deref(), Some("redis: refused: WRONGTYPE"));
    assert_eq!(cleanup.public_error.as_deref(), Some("redis"));
    assert!(cleanup.is_failing(stock.now()));

    stock.store.raw(&["DEL", "recent:"]).await;
    store_idle_session(&stock).await;
    stock.origin.answer(Reply::status(500));
    next_minute(&stock, 1);
    cron(&stock, EVERY_MINUTE).await;
    let reports = status(&stock).await.reports;
    assert_eq!((&reports["clean-sessions"].error, &reports["clean-sessions"].done["sessions"]), (&None, &1.into()));
    assert_eq!(reports["refresh-rows"].error.as_deref(), Some("ROWS_URL answered with status 500"));
    assert_eq!(reports["refresh-rows"].public_error, reports["refresh-rows"].error);
    assert!(reports["refresh-rows"].done["failed"].as_u64() > Some(0));
}

#[tokio::test]
async fn a_job_on_request_runs_at_once_and_stores_its_report() {
    let stock = with_long_half_life().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    store_idle_session(&stock).await;
    stock.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    next_minute(&stock, 2);
    let started = stock.now();
    make_halving_due(&stock.store).await;
    for (job, figure) in [(Job::CleanSessions, "sessions"), (Job::RefreshRows, "refreshed"), (Job::Rescale, "halvings")]
    {
        let report = jobs::run_job(&stock.app, job, started).await.unwrap();
        assert_eq!((&report.error, &report.done[figure]), (&None, &1.into()), "{job}");
        assert_eq!(status(&stock).await.reports[job.name()], report);
    }
    assert_eq!(stock.now(), started, "it does not wait for rows that are due later");
}

#[tokio::test]
async fn a_job_without_redis_fails_and_changes_nothing() {
    // With an interval of 0, there is nothing to roll up.
    let stock = Stock::on(Store::new().await, &[("TRAFFIC_INTERVAL", "2")]);
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    stock.store.gateway.set_fault(Some(Fault::Refuse));
    for job in Job::ALL {
        let answer = jobs::run_job(&stock.app, job, stock.now()).await;
        assert!(matches!(answer, Err(Error::Redis(_))), "{job}");
    }
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.origin.count(), 0);
    stock.store.gateway.set_fault(None);
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.copied("mug").await, 1);
}

/// Redis has granted the lease and the reply is lost: the row becomes due again when the lease expires.
#[tokio::test]
async fn a_lost_reply_delays_a_row_by_at_most_a_lease() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 60.0).await;
    stock.store.gateway.set_fault(Some(Fault::LoseReply));
    assert!(jobs::run_job(&stock.app, Job::RefreshRows, stock.now()).await.is_err());
    stock.store.gateway.set_fault(None);
    stock.store.clock.advance(Duration::from_secs(30));
    let report = jobs::run_job(&stock.app, Job::RefreshRows, stock.now()).await.unwrap();
    assert_eq!(report.done["refreshed"], 1);
}

#[tokio::test]
async fn an_old_heartbeat_means_silent_crons_and_a_missing_one_does_not() {
    let stock = Stock::new().await;
    assert!(status(&stock).await.crons_are_running(stock.now()));
    next_minute(&stock, 2);
    cron(&stock, EVERY_MINUTE).await;
    stock.store.clock.advance(Duration::from_mins(19));
    assert!(status(&stock).await.crons_are_running(stock.now()));
    stock.store.clock.advance(Duration::from_mins(1));
    assert!(!status(&stock).await.crons_are_running(stock.now()));
}

#[tokio::test]
async fn an_unknown_cron_and_a_corrupt_report_are_ignored() {
    let stock = Stock::new().await;
    cron(&stock, "0 0 * * *").await;
    stock.store.raw(&["HSET", "jobs:", "rescale", "no JSON", "heartbeat", "never"]).await;
    let status = status(&stock).await;
    assert!(status.reports.is_empty() && status.heartbeat.is_none());
}

#[test]
fn wrangler_toml_and_the_code_have_the_same_crons() {
    let (_, crons) = include_str!("../../wrangler.toml").split_once("\ncrons = [").unwrap();
    let (crons, _) = crons.split_once("\n]").unwrap();
    let crons: Vec<_> = crons.split('"').skip(1).step_by(2).collect();
    assert_eq!(crons, [EVERY_MINUTE, EVERY_FIVE_MINUTES]);
}

#[test]
fn a_job_is_found_by_its_name() {
    for job in Job::ALL {
        assert_eq!(Job::from_name(job.name()), Some(job));
    }
    assert_eq!(Job::from_name("clean-all"), None);
}

/// Sets the number of requests that one run may send.
fn with_subrequests(stock: Stock, subrequests: u64) -> Stock {
    let mut stock = stock;
    stock.app.config.subrequests = subrequests;
    stock
}

/// Runs a cron trigger and returns the number of its requests to Redis and to `ROWS_URL`.
async fn count_requests(stock: &Stock, cron_trigger: &str) -> u64 {
    let (redis, rows) = (stock.store.counts().requests, stock.origin.count());
    cron(stock, cron_trigger).await;
    stock.store.counts().requests - redis + (stock.origin.count() - rows) as u64
}

#[tokio::test]
async fn a_run_stays_within_its_subrequests_and_later_runs_finish_the_work() {
    let stock = with_subrequests(Stock::new().await, 20);
    // Each row is due at another moment, so that each would take a round of its own without a budget.
    for number in 0..40 {
        let id = format!("row-{number}");
        stock.put(&id, number);
        stock.schedule(&id, 3_600.0).await;
        let due = (stock.now() + Duration::from_millis(1_000 + u64::from(number) * 700)).to_string();
        stock.store.raw(&["ZADD", "schedule:", &due, &id]).await;
    }
    let mut refreshed = 0;
    for minute in 0..4 {
        let started = stock.now();
        assert!(count_requests(&stock, EVERY_MINUTE).await <= 20, "minute {minute}");
        assert!(stock.now().since(started) <= Duration::from_secs(56), "minute {minute}");
        let report = status(&stock).await.reports.remove("refresh-rows").unwrap();
        assert_eq!(report.error, None, "minute {minute}");
        refreshed += report.done["refreshed"].as_u64().unwrap();
        if refreshed == 40 {
            break;
        }
        assert_eq!(report.done["unfinished"], true, "minute {minute}");
        stock.store.clock.advance(Duration::from_mins(1).saturating_sub(stock.now().since(started)));
    }
    assert_eq!(refreshed, 40, "every row was refreshed");
}

#[tokio::test]
async fn a_small_budget_is_spread_over_the_minute() {
    let stock = with_subrequests(Stock::new().await, 50);
    for number in 0..10_u64 {
        let id = format!("row-{number}");
        stock.put(&id, 1);
        stock.schedule(&id, 5.0).await;
        let due = (stock.now() + Duration::from_millis(500 * number)).to_string();
        stock.store.raw(&["ZADD", "schedule:", &due, &id]).await;
    }
    let started = stock.now();
    assert!(count_requests(&stock, EVERY_MINUTE).await <= 50);
    assert!(stock.now().since(started) > Duration::from_secs(45), "requests are left for the end of the minute");
    let refreshed = status(&stock).await.reports["refresh-rows"].done["refreshed"].as_u64().unwrap();
    assert!(refreshed >= 90, "{refreshed} of 110 refreshes");
}

#[tokio::test]
async fn a_cleanup_stops_at_its_budget_and_the_next_one_continues() {
    let stock = with_subrequests(Stock::new().await, 10);
    // An earlier run has sent the script's source.
    store_idle_session(&stock).await;
    next_minute(&stock, 1);
    cron(&stock, EVERY_MINUTE).await;
    for start in (0..8_000).step_by(500) {
        let tokens: Vec<_> = (start..start + 500).map(|number| format!("token-{number}")).collect();
        for (command, key, value) in [("HSET", "login:", None), ("ZADD", "recent:", Some("1000"))] {
            let pairs = tokens.iter().flat_map(|token| value.map_or([token, ""], |value| [value, token]));
            stock.store.raw(&[command, key].into_iter().chain(pairs).collect::<Vec<_>>()).await;
        }
    }
    let mut runs = 0;
    while stock.store.raw(&["EXISTS", "recent:"]).await == 1 {
        next_minute(&stock, 1);
        assert!(count_requests(&stock, EVERY_MINUTE).await <= 10);
        runs += 1;
        assert!(runs < 10, "each run makes progress");
    }
    assert!(runs > 1, "the sessions need more requests than one run has");
    assert_eq!(stock.store.raw(&["EXISTS", "login:"]).await, 0);
}

/// The next runs find nothing to do, so they store no report.
#[tokio::test]
async fn a_failure_is_over_after_ten_minutes_without_another_one() {
    let stock = Stock::new().await;
    stock.store.raw(&["SET", "recent:", "a string of another program"]).await;
    for _ in 0..2 {
        next_minute(&stock, 0);
        cron(&stock, EVERY_MINUTE).await;
        let report = status(&stock).await.reports.remove("clean-sessions").unwrap();
        // Until the job fails again.
        assert!(report.is_failing(stock.now() + Duration::from_secs(599)));
    }
    stock.store.raw(&["DEL", "recent:"]).await;
    next_minute(&stock, 0);
    cron(&stock, EVERY_MINUTE).await;
    stock.store.clock.advance(Duration::from_mins(1));
    assert!(!status(&stock).await.reports["clean-sessions"].is_failing(stock.now()));
}
