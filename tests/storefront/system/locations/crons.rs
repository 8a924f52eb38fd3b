use edgefront::{
    jobs::{EVERY_FIVE_MINUTES, EVERY_MINUTE},
    ports::time::Clock,
};
use futures_util::future::{join, join_all};
use http::Method;
use serde_json::{Value, json};

use super::{call, rotate_clocks, sign_in, three};
use crate::{
    routes::api::service,
    support::{Reply, Shop, TestClock, eventually},
};

const ROWS: [&str; 3] = ["bag", "cup", "mug"];
const USERS: usize = 5;

/// Runs a job by request at all of these locations at once, twice.
async fn run(shops: &[Shop], job: &str) {
    let path = format!("/jobs/{job}");
    join_all(shops.iter().chain(shops).map(async |shop| {
        let report = service(shop, Method::POST, &path, None).await;
        assert_eq!(report.status, 200, "{report:?}");
    }))
    .await;
}

#[tokio::test]
async fn crons_that_overlap_do_their_work_once() {
    let now = TestClock::ticking().now();
    // The next half-life begins in a moment; where the clock is ahead, it has begun.
    let half_life = now.as_secs() + 4;
    let shops = three(&[("ROWS_URL", "{origin}/rows"), ("RANKING_HALF_LIFE", &half_life.to_string())]).await;
    let (store, origin) = (&shops[0].store, &shops[0].origin);
    origin.answer(Reply::html(json!(ROWS.map(|id| json!({"id": id, "quantity": 1}))).to_string()));

    let cookies = join_all((0..USERS).map(async |number| sign_in(&shops[number % 3], &format!("user-{number}")).await));
    for cookie in cookies.await {
        let mug = json!({"id": "mug", "quantity": 1});
        let added = call(&shops[0], &cookie, Method::POST, "/cart/items", Some(&mug)).await;
        assert_eq!(added.expect("an answer").status, 200);
        let token = cookie.trim_start_matches("__Host-session=").split('.').next().expect("a token");
        // SESSION_IDLE is 30 days.
        let idle = (now.as_secs() - 31 * 24 * 3600).to_string();
        store.raw(&["ZADD", "recent:", &idle, token]).await;
    }
    join(run(&shops, "clean-sessions"), join_all(shops.iter().map(|shop| shop.cron(EVERY_MINUTE)))).await;
    assert_eq!(store.raw(&["XLEN", "abandoned:"]).await, USERS, "each cart is recorded once");
    assert_eq!(store.raw(&["EXISTS", "login:", "recent:"]).await, 0);

    for row in ROWS {
        let path = format!("/rows/{row}/schedule");
        assert_eq!(service(&shops[0], Method::PUT, &path, Some(&json!({"every": 3600}))).await.status, 200);
    }
    let due = async || {
        for row in ROWS {
            store.raw(&["ZADD", "schedule:", "1", row]).await;
        }
    };
    let asked = || -> usize {
        let ids = |path: &str| path.split_once("ids=").map_or(0, |(_, ids)| ids.split([',', '&']).count());
        origin.asked().iter().map(|asked| ids(&asked.path.replace("%2C", ","))).sum()
    };
    for round in 0..3 {
        rotate_clocks(&shops, round).await;
        let before = asked();
        due().await;
        run(&shops, "refresh-rows").await;
        assert_eq!(asked() - before, ROWS.len(), "each row is read once");
    }

    rotate_clocks(&shops, 0).await;
    store.raw(&["ZADD", "viewed:", "-16", "mug"]).await;
    // The last rescale was a half-life ago where the clock is right, and two where it is ahead.
    store.raw(&["SET", "rescaled:", &format!("-{half_life}")]).await;
    for round in 0..3 {
        join(run(&shops, "rescale"), join_all(shops.iter().map(|shop| shop.cron(EVERY_FIVE_MINUTES)))).await;
        rotate_clocks(&shops, round).await;
    }
    assert_eq!(store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-4", "halved once for each of two half-lives");
}

#[tokio::test]
async fn the_rows_of_a_killed_cron_are_refreshed_by_the_next_one() {
    let shops = three(&[("ROWS_URL", "{origin}/rows")]).await;
    let (store, origin) = (&shops[0].store, &shops[0].origin);
    let rows = |quantity: u32| Reply::html(json!([{"id": "mug", "quantity": quantity}]).to_string());
    origin.answer(rows(1));
    let schedule = service(&shops[0], Method::PUT, "/rows/mug/schedule", Some(&json!({"every": 3600}))).await;
    assert_eq!(schedule.status, 200);
    store.raw(&["ZADD", "schedule:", "1", "mug"]).await;
    origin.answer(rows(2));
    origin.hold();
    let before = origin.count();
    let cut_off = shops[2].get("/cdn-cgi/local/scheduled?cron=*+*+*+*+*").send();
    let kill = async {
        eventually("the row is read", async || origin.count() > before).await;
        shops[2].kill().await;
    };
    assert!(join(cut_off, kill).await.0.is_err(), "the cron was under way");
    origin.release();

    let quantity = async || -> Value {
        let copy = store.raw(&["GET", "inv:mug"]).await;
        serde_json::from_str::<Value>(copy.as_str().expect("a copy")).expect("JSON")["quantity"].clone()
    };
    let asked = origin.count();
    run(&shops[..2], "refresh-rows").await;
    assert_eq!((quantity().await, origin.count()), (json!(1), asked), "the lease of the killed Worker stands");
    // It ends after 30 s.
    for shop in &shops[..2] {
        shop.set_clock(45_000).await;
    }
    run(&shops[..2], "refresh-rows").await;
    assert_eq!((quantity().await, origin.count()), (json!(2), asked + 1));
}
