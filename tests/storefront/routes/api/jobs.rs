//! `/jobs`: the state of the jobs, and a run on request.

use std::time::SystemTime;

use http::Method;
use serde_json::json;

use super::{Visitor, service};
use crate::support::{SERVICE_KEY, Shop, scenarios};

scenarios!(&[];
    a_job_runs_and_its_report_is_stored,
    a_job_whose_failure_is_old_has_not_failed,
);

async fn a_job_runs_and_its_report_is_stored(shop: &Shop) {
    for age in [0, 1, 2] {
        let mut guest = Visitor::new(shop);
        guest.put("/cart/items/mug", &json!({"quantity": 1})).await;
        if age > 0 {
            shop.store.raw(&["ZADD", "recent:", &age.to_string(), &guest.token()]).await;
        }
    }
    let before = service(shop, Method::GET, "/jobs", None).await;
    assert_eq!((before.status, &before.json["reports"]), (200, &json!({})), "{before:?}");
    let next = |job: &str| before.json["next"][job].as_u64().expect("a Unix second");
    assert_eq!((next("clean-sessions") % 60, next("refresh-rows") % 60, next("rescale") % 300), (0, 0, 0));

    let report = service(shop, Method::POST, "/jobs/clean-sessions", None).await;

    assert_eq!((report.status, &report.json["done"]["sessions"]), (200, &json!(2)), "{report:?}");
    assert_eq!(shop.store.raw(&["ZCARD", "recent:"]).await, 1);
    let after = service(shop, Method::GET, "/jobs", None).await;
    assert_eq!(after.json["reports"]["clean-sessions"], report.json);
    assert_eq!(after.header("cache-control"), "private, no-store");
    for job in ["rescale", "refresh-rows"] {
        assert_eq!(service(shop, Method::POST, &format!("/jobs/{job}"), None).await.status, 200, "{job}");
    }
    for job in ["", "tidy-up", "clean%2Dsessions%00"] {
        assert_eq!(service(shop, Method::POST, &format!("/jobs/{job}"), None).await.status, 404, "{job}");
    }
}

async fn a_job_whose_failure_is_old_has_not_failed(shop: &Shop) {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    for (job, age) in [("rescale", 60), ("roll-up", 660)] {
        let report = json!({"started": now - age, "finished": now - age, "error": "redis: timeout", "done": {}});
        shop.store.raw(&["HSET", "jobs:", job, &report.to_string()]).await;
    }
    let metrics = shop.get("/_edge/v1/metrics").bearer_auth(SERVICE_KEY).send().await.unwrap().text().await.unwrap();
    for (job, failed) in [("rescale", 1), ("roll-up", 0)] {
        let line = format!("edgefront_job_failed{{cron_job=\"{job}\"}} {failed}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}
