//! The jobs of the crons.

use std::time::Duration;

use edgefront::{
    jobs::{self, EVERY_FIVE_MINUTES, EVERY_MINUTE, Job, Jobs},
    ports::error::Error,
};
use edgefront_gateway::Fault;
use futures_util::future::join3;

use crate::support::{Reply, Stock};

async fn cron(stock: &Stock, cron: &str) {
    jobs::run_cron(&stock.app, cron, stock.now()).await;
}

async fn jobs(stock: &Stock) -> Jobs {
    jobs::jobs(&stock.app.redis, stock.now()).await.unwrap()
}

/// Moves on to the next minute whose number leaves `rest` when divided by three.
fn next_minute(stock: &Stock, rest: u64) {
    let into_three = stock.now().as_millis() % 180_000;
    stock.store.clock.advance(Duration::from_millis(180_000 - into_three + rest * 60_000));
}

/// An idle session of somebody: by the time that the test's clock shows, long not seen.
async fn forgotten_session(stock: &Stock) {
    let token = edgefront::schema::token::Token::new(stock.now()).unwrap();
    stock.store.raw(&["HSET", "login:", token.as_str(), "ada"]).await;
    stock.store.raw(&["ZADD", "recent:", "1000", token.as_str()]).await;
}

#[tokio::test]
async fn an_idle_cron_sends_one_command_for_each_job() {
    let stock = Stock::new().await;
    // A script may have to be sent in full, once in the life of a server.
    cron(&stock, EVERY_FIVE_MINUTES).await;
    for minute in 0..3 {
        next_minute(&stock, minute);
        let before = stock.store.counts().commands;
        cron(&stock, EVERY_MINUTE).await;
        // One for the rows, and one for the sessions of each shard; every third time one that says so instead.
        let shards = if minute < 2 { stock.store.shards() } else { 1 };
        assert_eq!(stock.store.counts().commands - before, 1 + shards, "minute {minute}");
        cron(&stock, EVERY_FIVE_MINUTES).await;
        assert_eq!(stock.store.counts().commands - before, 2 + shards, "minute {minute}");
    }
    let jobs = jobs(&stock).await;
    assert!(jobs.reports.is_empty(), "{jobs:?}");
    assert_eq!(jobs.heartbeat, Some(stock.now().as_score()));
}

#[tokio::test]
async fn a_cron_that_did_something_shows_that_it_runs() {
    let stock = Stock::new().await;
    jobs::run_job(&stock.app, Job::Rescale, stock.now()).await.unwrap();
    assert_eq!(jobs(&stock).await.heartbeat, None, "somebody asked, which says nothing of the crons");
    stock.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    next_minute(&stock, 5);
    cron(&stock, EVERY_FIVE_MINUTES).await;
    let jobs = jobs(&stock).await;
    assert_eq!(jobs.heartbeat, Some(jobs.reports["rescale"].finished));
}

#[tokio::test]
async fn every_kind_of_session_that_must_go_is_found_within_three_minutes() {
    let stock = Stock::new().await;
    forgotten_session(&stock).await;
    for minute in 0..3 {
        next_minute(&stock, minute);
        cron(&stock, EVERY_MINUTE).await;
    }
    assert_eq!(stock.store.raw(&["EXISTS", "recent:", "login:"]).await, 0);
    assert_eq!(jobs(&stock).await.reports["clean-sessions"].done["sessions"], 1);
}

#[tokio::test]
async fn one_run_keeps_a_row_of_5_s_new_for_the_minute() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let started = stock.now();
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!((stock.origin.count(), stock.now().since(started).as_secs()), (12, 55));
    assert_eq!(jobs(&stock).await.reports["refresh-rows"].done["refreshed"], 12);
}

#[tokio::test]
async fn a_row_that_is_always_due_does_not_keep_a_run_beyond_its_minute() {
    let stock = with_requests(Stock::new().await, 10_000);
    stock.put("mug", 1);
    stock.schedule("mug", 0.5).await;
    let started = stock.now();
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.now().since(started).as_secs(), 55);
}

#[tokio::test]
async fn doubled_and_overlapping_crons_do_their_work_once() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 60.0).await;
    forgotten_session(&stock).await;
    stock.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    next_minute(&stock, 1);
    join3(cron(&stock, EVERY_MINUTE), cron(&stock, EVERY_MINUTE), cron(&stock, EVERY_MINUTE)).await;
    join3(cron(&stock, EVERY_FIVE_MINUTES), cron(&stock, EVERY_FIVE_MINUTES), cron(&stock, EVERY_FIVE_MINUTES)).await;
    assert_eq!(stock.origin.count(), 1);
    assert_eq!(stock.store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-4");
    assert_eq!(stock.store.raw(&["EXISTS", "recent:", "login:"]).await, 0);
}

#[tokio::test]
async fn after_missed_crons_the_next_one_does_what_was_left() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 60.0).await;
    cron(&stock, EVERY_MINUTE).await;
    stock.put("mug", 2);
    stock.store.clock.advance(Duration::from_hours(1));
    assert!(jobs(&stock).await.rows_late > 3_500.0);
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.copied("mug").await, 2);
    assert!(jobs(&stock).await.rows_late < 1.0);
}

#[tokio::test]
async fn a_job_that_fails_does_not_stop_the_other_and_says_why() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 60.0).await;
    stock.store.raw(&["SET", "recent:", "somebody else's"]).await;
    next_minute(&stock, 0);
    cron(&stock, EVERY_MINUTE).await;
    assert_eq!(stock.copied("mug").await, 1);
    let cleaning = jobs(&stock).await.reports.remove("clean-sessions").unwrap();
    assert_eq!(cleaning.error.as_deref(), Some("redis: refused: WRONGTYPE"));

    stock.store.raw(&["DEL", "recent:"]).await;
    forgotten_session(&stock).await;
    stock.origin.answer(Reply::status(500));
    next_minute(&stock, 1);
    cron(&stock, EVERY_MINUTE).await;
    let reports = jobs(&stock).await.reports;
    assert_eq!((&reports["clean-sessions"].error, &reports["clean-sessions"].done["sessions"]), (&None, &1.into()));
    assert_eq!(reports["refresh-rows"].error.as_deref(), Some("ROWS_URL answered with status 500"));
    assert!(reports["refresh-rows"].done["failed"].as_u64() > Some(0));
}

#[tokio::test]
async fn a_job_that_is_asked_for_runs_at_once_and_reports() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    forgotten_session(&stock).await;
    stock.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    next_minute(&stock, 2);
    let started = stock.now();
    for (job, figure) in [(Job::CleanSessions, "sessions"), (Job::RefreshRows, "refreshed"), (Job::Rescale, "halvings")]
    {
        let report = jobs::run_job(&stock.app, job, started).await.unwrap();
        assert_eq!((&report.error, &report.done[figure]), (&None, &1.into()), "{job}");
        assert_eq!(jobs(&stock).await.reports[job.name()], report);
    }
    assert_eq!(stock.now(), started, "it does not wait for what is due later");
}

#[tokio::test]
async fn a_job_without_redis_fails_and_changes_nothing() {
    let stock = Stock::new().await;
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

/// The lease is taken, and nobody knows: the row must come back by itself.
#[tokio::test]
async fn a_lost_reply_delays_a_row_by_a_lease_and_no_longer() {
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
async fn a_heart_that_stops_is_noticed_and_one_that_never_beat_is_not() {
    let stock = Stock::new().await;
    assert!(jobs(&stock).await.are_ticking(stock.now()));
    next_minute(&stock, 2);
    cron(&stock, EVERY_MINUTE).await;
    stock.store.clock.advance(Duration::from_mins(9));
    assert!(jobs(&stock).await.are_ticking(stock.now()));
    stock.store.clock.advance(Duration::from_mins(1));
    assert!(!jobs(&stock).await.are_ticking(stock.now()));
}

#[tokio::test]
async fn an_unknown_cron_or_a_spoilt_report_harms_nothing() {
    let stock = Stock::new().await;
    cron(&stock, "0 0 * * *").await;
    stock.store.raw(&["HSET", "jobs:", "rescale", "no JSON", "heartbeat", "never"]).await;
    let jobs = jobs(&stock).await;
    assert!(jobs.reports.is_empty() && jobs.heartbeat.is_none());
}

#[test]
fn the_crons_of_wrangler_toml_are_those_of_the_code() {
    let (_, crons) = include_str!("../../wrangler.toml").split_once("\ncrons = [").unwrap();
    let (crons, _) = crons.split_once("\n]").unwrap();
    let crons: Vec<_> = crons.split('"').skip(1).step_by(2).collect();
    assert_eq!(crons, [EVERY_MINUTE, EVERY_FIVE_MINUTES]);
}

#[test]
fn a_job_goes_by_its_name() {
    for job in Job::ALL {
        assert_eq!(Job::from_name(job.name()), Some(job));
    }
    assert_eq!(Job::from_name("clean-all"), None);
}

/// An edgefront whose crons may send so many requests.
fn with_requests(stock: Stock, subrequests: u64) -> Stock {
    let mut stock = stock;
    stock.app.config.subrequests = subrequests;
    stock
}

/// Requests of a run, to Redis and to the rows' address.
async fn requests_of(stock: &Stock, cron_trigger: &str) -> u64 {
    let (redis, rows) = (stock.store.counts().requests, stock.origin.count());
    cron(stock, cron_trigger).await;
    stock.store.counts().requests - redis + (stock.origin.count() - rows) as u64
}

#[tokio::test]
async fn a_run_never_sends_more_than_it_may_and_the_next_ones_do_what_is_left() {
    let stock = with_requests(Stock::new().await, 20);
    // Each due at another moment, so that without a budget each would be a round of its own.
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
        assert!(requests_of(&stock, EVERY_MINUTE).await <= 20, "minute {minute}");
        assert!(stock.now().since(started) <= Duration::from_secs(56), "minute {minute}");
        let report = jobs(&stock).await.reports.remove("refresh-rows").unwrap();
        assert_eq!(report.error, None, "minute {minute}");
        refreshed += report.done["refreshed"].as_u64().unwrap();
        if refreshed == 40 {
            break;
        }
        assert_eq!(report.done["unfinished"], true, "minute {minute}");
        stock.store.clock.advance(Duration::from_mins(1).saturating_sub(stock.now().since(started)));
    }
    assert_eq!(refreshed, 40, "nothing is lost");
}

#[tokio::test]
async fn few_requests_are_spread_over_the_minute() {
    let stock = with_requests(Stock::new().await, 50);
    for number in 0..10_u64 {
        let id = format!("row-{number}");
        stock.put(&id, 1);
        stock.schedule(&id, 5.0).await;
        let due = (stock.now() + Duration::from_millis(500 * number)).to_string();
        stock.store.raw(&["ZADD", "schedule:", &due, &id]).await;
    }
    let started = stock.now();
    assert!(requests_of(&stock, EVERY_MINUTE).await <= 50);
    assert!(stock.now().since(started) > Duration::from_secs(45), "there are some left for the minute's end");
    let refreshed = jobs(&stock).await.reports["refresh-rows"].done["refreshed"].as_u64().unwrap();
    assert!(refreshed >= 90, "{refreshed} of 110 turns");
}

#[tokio::test]
async fn a_cleaning_stops_with_its_requests_and_the_next_one_goes_on() {
    let stock = with_requests(Stock::new().await, 10);
    // One that went before has sent the script in full.
    forgotten_session(&stock).await;
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
        assert!(requests_of(&stock, EVERY_MINUTE).await <= 10);
        runs += 1;
        assert!(runs < 10, "each run does something");
    }
    assert!(runs > 1, "one run has no requests for all of them");
    assert_eq!(stock.store.raw(&["EXISTS", "login:"]).await, 0);
}
