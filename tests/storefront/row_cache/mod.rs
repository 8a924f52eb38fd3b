//! The row cache: schedules, refreshes, and copies.

mod address;
mod kept;
mod read;
mod table;

use std::{cell::Cell, pin::pin, time::Duration};

use edgefront::{
    ports::error::Error,
    row_cache::{self, RefreshReport},
};
use futures_util::future::{join_all, select};
use serde_json::{Value, json};

use crate::support::{Reply, Stock, eventually, row};

/// The report of a refresh that made `rows` new copies and had no other result.
fn refreshed(rows: u64) -> RefreshReport {
    RefreshReport { refreshed: rows, ..RefreshReport::default() }
}

/// The book's test of this job.
#[tokio::test]
async fn a_row_is_refreshed_every_5_s_and_unscheduled_by_a_delay_of_minus_1() {
    let stock = Stock::new().await;
    stock.put("itemX", 10);
    stock.schedule("itemX", 5.0).await;
    assert_eq!(stock.store.raw(&["ZSCORE", "delay:", "itemX"]).await, "5");
    assert_eq!(stock.refresh().await, refreshed(1));
    let copy: Value = serde_json::from_slice(&stock.read("itemX").await.unwrap().json).unwrap();
    assert_eq!(copy, json!({"id": "itemX", "name": "Enamel mug", "quantity": 10}));

    stock.put("itemX", 9);
    stock.store.clock.advance(Duration::from_millis(4_900));
    assert_eq!(stock.refresh().await, refreshed(0));
    assert_eq!(stock.copied("itemX").await, 10);
    stock.store.clock.advance(Duration::from_millis(100));
    assert_eq!(stock.refresh().await, refreshed(1));
    assert_eq!(stock.copied("itemX").await, 9);

    stock.schedule("itemX", -1.0).await;
    assert_eq!(stock.copied("itemX").await, Value::Null);
    assert_eq!(stock.read("itemX").await, None);
    stock.store.clock.advance(Duration::from_secs(5));
    assert_eq!(stock.refresh().await, refreshed(0));
    assert_eq!(stock.store.raw(&["EXISTS", "schedule:", "delay:"]).await, 0);
}

/// The book's code unschedules a row by a delay of -1 and leaves the rest to the daemon.
#[tokio::test]
async fn a_delay_of_minus_1_from_the_books_code_unschedules_the_row() {
    let stock = Stock::new().await;
    stock.put("itemX", 10);
    stock.schedule("itemX", 5.0).await;
    stock.refresh().await;
    stock.store.raw(&["ZADD", "delay:", "-1", "itemX"]).await;
    assert_eq!(stock.read("itemX").await, None);
    stock.store.clock.advance(Duration::from_secs(5));
    assert_eq!(stock.refresh().await, RefreshReport { removed: 1, ..refreshed(0) });
    assert_eq!(stock.store.raw(&["EXISTS", "schedule:", "delay:", "inv:itemX"]).await, 0);
}

/// In the book's code such a row stays first and blocks all others.
#[tokio::test]
async fn a_row_without_a_delay_is_unscheduled_and_blocks_no_other_row() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    stock.store.raw(&["ZADD", "schedule:", "1", "no-delay"]).await;
    stock.store.raw(&["SET", "inv:no-delay", "{}"]).await;
    assert_eq!(stock.refresh().await, RefreshReport { removed: 1, ..refreshed(1) });
    assert_eq!(stock.due_in("no-delay").await, None);
    assert_eq!(stock.copied("no-delay").await, Value::Null);
    assert_eq!(stock.copied("mug").await, 1);
    assert_eq!(stock.origin.count(), 1);
}

#[tokio::test]
async fn a_name_that_is_not_a_row_id_blocks_no_row() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    stock.store.raw(&["ZADD", "schedule:", "1", "row:with/odd name", "1", ""]).await;
    assert_eq!(stock.refresh().await, refreshed(1));
}

#[tokio::test]
async fn many_rows_take_few_queries() {
    let stock = Stock::new().await;
    for number in 0..250 {
        stock.put(&format!("row-{number}"), number);
        stock.schedule(&format!("row-{number}"), 60.0).await;
    }
    let before = stock.store.counts().requests;
    assert_eq!(stock.refresh().await, refreshed(250));
    assert_eq!(stock.origin.count(), 3);
    // The earliest row, a lease and a commit; a new server needs each of the two scripts in full once more.
    assert!(stock.store.counts().requests - before <= 1 + 2 + 2);
}

#[tokio::test]
async fn a_refresh_commits_at_most_four_mebibytes_in_a_request() {
    let stock = Stock::new().await;
    for number in 0..250 {
        let id = format!("row-{number}");
        stock.schedule(&id, 60.0).await;
        stock.put_large(&id, 40_000);
    }
    assert_eq!(stock.refresh().await, refreshed(250));
    let log = stock.store.gateway.log();
    let calls = log.iter().map(|entry| entry.commands.iter().filter(|name| *name == "EVALSHA").count());
    let commits: Vec<_> = calls.filter(|calls| *calls > 1).collect();
    assert_eq!(commits, [4, 4, 2], "at most 1 MiB in a call");
}

/// This cost makes 10,000 rows with a period of 5 s possible (`cargo bench --bench refresh` measures how late they
/// are).
#[tokio::test]
async fn ten_thousand_rows_take_two_requests_per_thousand() {
    let stock = Stock::new().await;
    stock.put("one", 1);
    stock.schedule("one", 60.0).await;
    // From here on, the server knows the scripts.
    stock.refresh().await;
    let due = stock.now().to_string();
    for start in (0..10_000).step_by(1_000) {
        let ids: Vec<_> = (start..start + 1_000).map(|number| format!("row-{number}")).collect();
        for id in &ids {
            stock.put(id, 1);
        }
        for (key, score) in [("delay:", "5"), ("schedule:", due.as_str())] {
            let members = ids.iter().flat_map(|id| [score, id]);
            stock.store.raw(&["ZADD", key].into_iter().chain(members).collect::<Vec<_>>()).await;
        }
    }
    let (before, asked) = (stock.store.counts().requests, stock.origin.count());
    assert_eq!(stock.refresh().await, refreshed(10_000));
    assert_eq!(stock.store.counts().requests - before, 1 + 10 * 2);
    assert_eq!(stock.origin.count() - asked, 100, "a URL holds a hundred ids");
    assert_eq!((stock.copied("row-0").await, stock.due_in("row-9999").await), (json!(1), Some(5.0)));
}

/// Makes the source fail for each query with `row-0`.
fn fail_for_row_0(stock: &Stock) {
    stock.origin.answer_with(|asked| {
        let ids: Vec<_> = asked.path.strip_prefix("/rows?ids=").expect("the rows' address").split(',').collect();
        let rows: Vec<_> = ids.iter().map(|id| json!({"id": id, "quantity": 1})).collect();
        if ids.contains(&"row-0") { Reply::status(500) } else { Reply::html(json!(rows).to_string()) }
    });
}

#[tokio::test]
async fn a_failed_query_does_not_affect_the_rows_of_other_queries() {
    let stock = Stock::new().await;
    for number in 0..250 {
        stock.put(&format!("row-{number}"), number);
        stock.schedule(&format!("row-{number}"), 60.0).await;
    }
    fail_for_row_0(&stock);
    let report = stock.refresh().await;
    assert_eq!((report.refreshed, report.failed), (150, 100));
    assert_eq!(stock.copied("row-0").await, Value::Null);
    assert!((21.0..=30.0).contains(&stock.due_in("row-0").await.unwrap()));
}

#[tokio::test]
async fn a_row_that_always_fails_does_not_keep_its_query_from_being_refreshed() {
    for every in [0.5, 5.0, 3_600.0] {
        let stock = Stock::new().await;
        for number in 0..50 {
            stock.schedule(&format!("row-{number}"), every).await;
        }
        fail_for_row_0(&stock);
        let (wait, rounds) = (every.clamp(1.0, 30.0), 20);
        for _ in 0..rounds * 15 {
            stock.refresh().await;
            stock.store.clock.advance(Duration::from_secs_f64(wait / 10.0));
        }
        for number in 1..50 {
            assert_eq!(stock.copied(&format!("row-{number}")).await, 1, "row-{number}, every {every} s");
        }
        assert_eq!(stock.copied("row-0").await, Value::Null);
    }
}

#[tokio::test]
async fn rows_of_a_failing_source_keep_their_copies_and_are_retried_with_backoff() {
    let stock = Stock::new().await;
    for (id, every) in [("often", 0.5), ("mug", 5.0), ("seldom", 3_600.0)] {
        stock.put(id, 10);
        stock.schedule(id, every).await;
    }
    stock.refresh().await;
    let failures = [
        Reply::status(500),
        Reply::status(302).header("location", "/elsewhere"),
        Reply::html("no JSON"),
        Reply::html("[1, 2]"),
        Reply::html("{\"rows\": []}"),
        Reply::nothing(),
        Reply::truncated("[{\"id\": \"mug\""),
        Reply::zeros(5 << 20),
    ];
    for failure in failures {
        stock.origin.answer(failure.clone());
        stock.store.clock.advance(Duration::from_hours(1));
        let asked = stock.origin.count();
        let report = stock.refresh().await;
        assert_eq!((report.failed, stock.origin.count()), (3, asked + 1), "{failure:?}");
        assert!(report.cause.is_some());
        for (id, wait) in [("often", 1.0..=2.0), ("mug", 5.0..=10.0), ("seldom", 21.0..=30.0)] {
            assert_eq!(stock.copied(id).await, 10, "{failure:?}");
            assert!(wait.contains(&stock.due_in(id).await.unwrap()), "{failure:?}");
        }
    }
    stock.put("mug", 9);
    stock.works();
    stock.store.clock.advance(Duration::from_secs(30));
    assert_eq!(stock.refresh().await, refreshed(3));
    assert_eq!(stock.copied("mug").await, 9);
}

#[tokio::test]
async fn a_row_gone_from_the_database_is_unscheduled_and_its_copy_deleted() {
    let stock = Stock::new().await;
    for id in ["mug", "lamp"] {
        stock.put(id, 1);
        stock.schedule(id, 5.0).await;
    }
    stock.refresh().await;
    stock.delete("mug");
    stock.store.clock.advance(Duration::from_secs(5));
    assert_eq!(stock.refresh().await, RefreshReport { removed: 1, ..refreshed(1) });
    assert_eq!(stock.read("mug").await, None);
    assert_eq!(stock.store.raw(&["EXISTS", "inv:mug"]).await, 0);
    assert_eq!(stock.store.raw(&["ZSCORE", "delay:", "mug"]).await, Value::Null);
}

/// The book's code writes the copy after the row was unscheduled, and that copy stays forever.
#[tokio::test]
async fn a_row_unscheduled_during_its_refresh_gets_no_copy() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let meanwhile = async {
        row_cache::unschedule(&stock.app.redis, &row("mug")).await.unwrap();
    };
    let report = stock.refresh_while(meanwhile).await;
    assert_eq!(report, RefreshReport { lost: 1, ..refreshed(0) });
    assert_eq!(stock.store.raw(&["EXISTS", "inv:mug", "schedule:", "delay:"]).await, 0);
}

#[tokio::test]
async fn a_row_scheduled_anew_during_its_refresh_is_refreshed_again() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let meanwhile = async {
        stock.put("mug", 2);
        stock.schedule("mug", 60.0).await;
    };
    let report = stock.refresh_while(meanwhile).await;
    assert_eq!(report, RefreshReport { lost: 1, ..refreshed(1) });
    assert_eq!((stock.copied("mug").await, stock.due_in("mug").await), (json!(2), Some(60.0)));
}

#[tokio::test]
async fn overlapping_refreshes_load_each_row_once() {
    let stock = Stock::new().await;
    for number in 0..50 {
        stock.put(&format!("row-{number}"), number);
        stock.schedule(&format!("row-{number}"), 60.0).await;
    }
    let reports = join_all((0..8).map(|_| stock.refresh())).await;
    assert_eq!(reports.iter().map(|report| report.refreshed).sum::<u64>(), 50);
    assert_eq!(stock.origin.count(), 1);
}

/// The end of a lease identifies its holder. Two crons may begin in the same millisecond.
#[tokio::test]
async fn of_two_leases_in_one_millisecond_only_the_second_can_commit() {
    // Once in a thousand times, both draw the same three digits.
    for _ in 0..3 {
        if two_leases_in_one_millisecond().await {
            return;
        }
    }
    panic!("all leases have the same digits");
}

/// Returns false if both leases have the same digits.
async fn two_leases_in_one_millisecond() -> bool {
    let stock = Stock::new().await;
    stock.schedule("mug", 5.0).await;
    let lease = async || stock.store.raw(&["ZSCORE", "schedule:", "mug"]).await;
    let differ = Cell::new(false);
    let meanwhile = async {
        let first = lease().await;
        stock.put("mug", 1);
        stock.schedule("mug", 5.0).await;
        let asked = eventually("the second refresh has leased the row", async || stock.origin.count() == 2);
        // The second refresh is dropped here.
        select(pin!(stock.refresh()), pin!(asked)).await;
        differ.set(lease().await != first);
    };
    let report = Box::pin(stock.refresh_while(meanwhile)).await;
    if differ.get() {
        assert_eq!(report, RefreshReport { lost: 1, ..RefreshReport::default() });
        assert_eq!(stock.due_in("mug").await, Some(30.0));
    }
    differ.get()
}

#[tokio::test]
async fn a_lease_ends_if_its_holder_dies() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let lease = (stock.now() + Duration::from_secs(30)).to_string();
    stock.store.raw(&["ZADD", "schedule:", &lease, "mug"]).await;
    assert_eq!(stock.refresh().await, refreshed(0));
    stock.store.clock.advance(Duration::from_secs(30));
    assert_eq!(stock.refresh().await, refreshed(1));
}

#[tokio::test]
async fn a_copy_lives_for_three_periods_or_at_least_a_minute_and_has_an_age() {
    let stock = Stock::new().await;
    for (id, every, lifetime) in [("mug", 5.0, 60_000), ("lamp", 100.0, 300_000)] {
        stock.put(id, 1);
        stock.schedule(id, every).await;
        stock.refresh().await;
        let copy = format!("inv:{id}");
        let left = stock.store.raw(&["PTTL", &copy]).await.as_i64().unwrap();
        assert!((lifetime - 20_000..=lifetime).contains(&left), "{id}: {left}");
        stock.store.raw(&["PEXPIRE", &copy, &(lifetime - 42_500).to_string()]).await;
        assert_eq!(stock.read(id).await.unwrap().age.as_secs(), 42, "{id}");
    }
}

#[tokio::test]
async fn a_copy_from_the_books_code_has_an_age() {
    let stock = Stock::new().await;
    stock.schedule("mug", 60.0).await;
    let next = (stock.now() + Duration::from_secs(50)).to_string();
    stock.store.raw(&["ZADD", "schedule:", &next, "mug"]).await;
    stock.store.raw(&["SET", "inv:mug", "{\"qty\": 629}"]).await;
    let copy = stock.read("mug").await.unwrap();
    assert_eq!((copy.json.as_ref(), copy.age.as_secs()), (b"{\"qty\": 629}".as_slice(), 10));
}

/// Crons run at most once a minute.
#[tokio::test]
async fn a_run_of_55_s_refreshes_a_row_with_a_period_of_5_s_twelve_times() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 5.0).await;
    let started = stock.now();
    assert_eq!(stock.refresh_for(Duration::from_secs(55)).await, refreshed(12));
    assert_eq!(stock.now().since(started), Duration::from_secs(55));
    assert_eq!(stock.due_in("mug").await, Some(5.0));
}

#[tokio::test]
async fn a_period_may_be_a_fraction_of_a_second() {
    let stock = Stock::new().await;
    stock.put("mug", 1);
    stock.schedule("mug", 0.25).await;
    assert_eq!(stock.refresh_for(Duration::from_secs(2)).await, refreshed(9));
}

#[tokio::test]
async fn an_invalid_period_is_refused_and_changes_nothing() {
    let stock = Stock::new().await;
    for every in [0.01, 0.099, 31_536_001.0, f64::INFINITY, f64::NAN] {
        let answer = row_cache::schedule(&stock.app.redis, &row("mug"), every, stock.now()).await;
        assert!(matches!(answer, Err(Error::Invalid { field: "every", .. })), "{every}");
    }
    assert_eq!(stock.store.raw(&["DBSIZE"]).await, 0);
}

#[tokio::test]
async fn the_schedule_of_a_row_is_read_and_an_unscheduled_row_has_none() {
    let stock = Stock::new().await;
    assert_eq!(row_cache::schedule_of(&stock.app.redis, &row("mug")).await.unwrap(), None);
    stock.schedule("mug", 2.5).await;
    let schedule = row_cache::schedule_of(&stock.app.redis, &row("mug")).await.unwrap().unwrap();
    assert_eq!((schedule.every, schedule.next), (2.5, stock.now()));
}
