//! Rows that a run keeps: it refreshes them again and again under leases that begin when they are due.

use std::{pin::pin, time::Duration};

use edgefront::{
    ports::{budget::Budget, time::Timestamp},
    row_cache::{self, RefreshReport, Schedule},
};
use futures_util::future::{join, select};
use serde_json::{Value, json};

use super::refreshed;
use crate::support::{Stock, eventually, row};

const RUN: Duration = Duration::from_secs(55);

/// A shop with a mug that is due now and then every second.
async fn mug() -> Stock {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 1.0).await;
    stock
}

/// Waits until a run asks the source for a row that it kept. Until `release`, it gets no answer.
async fn hold_the_third_round(stock: &Stock) {
    stock.origin.hold_after(2);
    eventually("the third round", async || stock.origin.count() == 3).await;
}

/// A run, and `work` during its third round.
async fn run_while(stock: &Stock, work: impl Future<Output = ()>) -> RefreshReport {
    let meanwhile = async {
        hold_the_third_round(stock).await;
        work.await;
        stock.origin.release();
    };
    join(stock.refresh_for(RUN), meanwhile).await.0
}

#[tokio::test]
async fn each_further_refresh_of_a_run_takes_one_request() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    // From here on, the server knows the scripts.
    stock.refresh().await;
    stock.store.clock.advance(Duration::from_secs(5));
    let before = stock.store.counts().requests;
    assert_eq!(stock.refresh_for(RUN).await, refreshed(12));
    assert_eq!(stock.store.counts().requests - before, 1 + 1 + 12, "the earliest row, a lease, and twelve commits");
}

#[tokio::test]
async fn a_kept_row_is_not_loaded_by_another_run() {
    let stock = mug().await;
    let meanwhile = async {
        let asked = stock.origin.count();
        stock.store.clock.advance(Duration::from_secs(9));
        assert_eq!(stock.refresh().await, refreshed(0));
        assert_eq!(stock.origin.count(), asked);
    };
    assert_eq!(run_while(&stock, meanwhile).await.lost, 0);
}

#[tokio::test]
async fn a_kept_row_that_is_scheduled_anew_is_refreshed_again() {
    let stock = mug().await;
    let meanwhile = async {
        stock.put("mug", 2);
        stock.schedule("mug", 60.0).await;
    };
    assert_eq!(run_while(&stock, meanwhile).await.lost, 1);
    assert_eq!((stock.copied("mug").await, stock.read("mug").await.unwrap().period.as_secs()), (json!(2), 60));
}

#[tokio::test]
async fn a_kept_row_that_is_unscheduled_gets_no_copy() {
    let stock = mug().await;
    let meanwhile = async { row_cache::unschedule(&stock.app.redis, &row("mug")).await.unwrap() };
    assert_eq!(run_while(&stock, meanwhile).await.lost, 1);
    assert_eq!(stock.store.raw(&["EXISTS", "inv:mug", "schedule:", "delay:"]).await, 0);
}

/// The book's code writes both keys. If other code writes only the period, readers see it at once.
#[tokio::test]
async fn a_period_of_minus_1_without_a_schedule_ends_with_the_run() {
    let stock = mug().await;
    let meanwhile = async { drop(stock.store.raw(&["ZADD", "delay:", "-1", "mug"]).await) };
    assert_eq!(run_while(&stock, meanwhile).await.removed, 0);
    assert_eq!(stock.read("mug").await, None);
    stock.store.clock.advance(Duration::from_secs(1));
    assert_eq!(stock.refresh().await, RefreshReport { removed: 1, ..refreshed(0) });
    assert_eq!(stock.copied("mug").await, Value::Null);
}

#[tokio::test]
async fn a_row_that_is_scheduled_during_a_run_is_refreshed_by_it() {
    let stock = mug().await;
    let meanwhile = async {
        stock.put("lamp", 3);
        stock.schedule("lamp", 60.0).await;
    };
    run_while(&stock, meanwhile).await;
    assert_eq!(stock.copied("lamp").await, 3);
}

#[tokio::test]
async fn the_rows_that_a_dead_run_kept_are_due_when_their_leases_end() {
    let stock = mug().await;
    // The run is dropped in its third round.
    select(pin!(stock.refresh_for(RUN)), pin!(hold_the_third_round(&stock))).await;
    stock.origin.release();
    stock.put("mug", 2);
    assert_eq!(stock.refresh().await, refreshed(0));
    assert_eq!(stock.due_in("mug").await, Some(30.0));
    // The digits of the holder are below a millisecond.
    stock.store.clock.advance(Duration::from_millis(30_001));
    assert_eq!(stock.refresh().await, refreshed(1));
    assert_eq!(stock.copied("mug").await, 2);
}

#[tokio::test]
async fn a_run_without_time_gives_its_rows_back() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let budget = Budget::new(stock.app.clock.clone(), Duration::from_secs(10), 1_000);
    let report =
        row_cache::refresh_due(&stock.app.redis, &stock.source(), &budget, stock.now() + RUN).await.map(|run| run.0);
    assert_eq!(report.unwrap(), refreshed(3), "after 0, 5 and 10 seconds");
    assert_eq!(stock.due_in("mug").await, Some(5.0));
}

/// A run that gives the mug back makes it due in four seconds, and so ends the lease of the other refresh.
#[tokio::test]
async fn a_row_that_a_run_gives_back_during_another_refresh_is_loaded_all_the_same() {
    let stock = mug().await;
    stock.origin.hold();
    stock.put("mug", 2);
    let (redis, source, id, now) = (&stock.app.redis, stock.source(), row("mug"), stock.now());
    let give_back = async {
        eventually("the source is asked", async || stock.origin.count() == 1).await;
        let begins = (now + Duration::from_secs(4)).to_string();
        stock.store.raw(&["ZADD", "schedule:", "XX", "LT", &begins, "mug"]).await;
        stock.origin.release();
    };
    let report = join(row_cache::refresh_now(redis, &source, &id, now), give_back).await.0;
    assert_eq!((report.unwrap().refreshed, stock.copied("mug").await), (1, json!(2)));
    assert_eq!(stock.due_in("mug").await, Some(1.0));
}

/// The script finds the lease of the mug behind the other rows.
#[tokio::test]
async fn kept_rows_and_rows_with_long_periods_are_refreshed_in_one_run() {
    let stock = mug().await;
    let soon = (stock.now() + Duration::from_secs(10)).to_string();
    for number in 0..20 {
        let id = format!("row-{number}");
        stock.put(&id, 1);
        stock.schedule(&id, 60.0).await;
        stock.store.raw(&["ZADD", "schedule:", &soon, &id]).await;
    }
    assert_eq!(stock.refresh_for(Duration::from_secs(12)).await, refreshed(13 + 20));
    assert_eq!((stock.due_in("mug").await, stock.due_in("row-7").await), (Some(1.0), Some(58.0)));
}

#[test]
fn people_see_when_a_kept_row_is_due() {
    let now = Timestamp::from_millis(1_800_000_000_000);
    let shown = |every: f64, seconds: u64| {
        let schedule = Schedule { every, next: now + Duration::from_secs(seconds) };
        schedule.next_refresh(now).since(now).as_secs()
    };
    assert_eq!((shown(5.0, 33), shown(5.0, 29), shown(5.0, 4)), (3, 0, 4), "kept, during its refresh, free");
    assert_eq!(shown(60.0, 33), 33);
}
