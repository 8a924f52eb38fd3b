//! `GET /_edge/v1/metrics` is read by the parser of Prometheus's official client for Python. `docs/grafana.json` and
//! `docs/alerts.yml` name only metrics that exist. Without Python 3.11, `cargo xtask test` skips this module.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    process::Stdio,
    time::Duration,
};

use edgefront::{metrics::traffic::roll_up, ports::time::Clock};
use http::Method;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    routes::api::{Visitor, service},
    support::{Reply, SERVICE_KEY, Shop, Store, TestClock, eventually},
};

/// Sample names with their labels → values.
type Samples = BTreeMap<String, f64>;

async fn scrape(shop: &Shop) -> String {
    let answer = shop.get("/_edge/v1/metrics").bearer_auth(SERVICE_KEY).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(answer.headers()["cache-control"], "private, no-store");
    answer.text().await.unwrap()
}

/// The families in `text`, as the official parser reads them.
async fn parse(text: &str) -> Value {
    let packages = env::var_os("EDGEFRONT_SCHEMATHESIS").expect("EDGEFRONT_SCHEMATHESIS: run `cargo xtask test`");
    let mut python = Command::new("python3");
    python.arg("tests/storefront/system/prometheus/read.py").env("PYTHONPATH", packages);
    python.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut python = python.spawn().expect("Python starts");
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).await.unwrap();
    drop(stdin);
    let output = python.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{text}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn samples(families: &Value) -> Samples {
    let families = families.as_object().unwrap().values();
    let samples = families.flat_map(|family| family["samples"].as_array().unwrap());
    samples
        .map(|sample| (format!("{} {}", sample[0].as_str().unwrap(), sample[1]), sample[2].as_f64().unwrap()))
        .collect()
}

/// Counters and the parts of histograms: they may only grow.
fn cumulative(families: &Value) -> Samples {
    let mut families = families.clone();
    families.as_object_mut().unwrap().retain(|_, family| family["type"] != "gauge");
    samples(&families)
}

#[tokio::test]
async fn prometheus_reads_every_metric_and_no_counter_falls() {
    let shop = Shop::native_on(Store::new().await, &[("TRAFFIC_INTERVAL", "1")]);
    shop.store.raw(&["ZADD", "viewed:", "-9", "mug"]).await;
    for path in ["/products/mug", "/products/mug", "/_edge/v1/cart", "/_edge/v1/rows/none"] {
        shop.visit(path).await;
        shop.settled().await;
    }
    shop.origin.answer(Reply::nothing());
    assert_eq!(shop.visit("/about").await.status(), 502);
    Visitor::new(&shop).post("/cart/items", &json!({"id": "mug", "quantity": 1})).await;
    service(&shop, Method::POST, "/jobs/rescale", None).await;
    let failures = "edgefront_responses_total {\"source\":\"failed\"}";
    eventually("the failure is counted", async || samples(&parse(&scrape(&shop).await).await)[failures] >= 1.0).await;

    let before = parse(&scrape(&shop).await).await;

    for (name, family) in before.as_object().unwrap() {
        let (kind, help) = (family["type"].as_str().unwrap(), family["help"].as_str().unwrap());
        assert!(["counter", "gauge", "histogram"].contains(&kind) && help.ends_with('.'), "{name}: {family}");
        assert!(name.starts_with("edgefront_"), "{name}");
        for sample in family["samples"].as_array().unwrap() {
            let is_counter = sample[0].as_str().unwrap().ends_with("_total");
            assert_eq!(is_counter, kind == "counter", "{sample}");
        }
    }
    assert_documents_name_metrics_of(&before);
    assert_histograms_are_sound(&before);
    let found = samples(&before);
    for (sample, least) in [
        ("edgefront_responses_total {\"source\":\"hit\"}", 1.0),
        ("edgefront_errors_total {\"status\":\"502\",\"route\":\"storefront\",\"cause\":\"origin-down\"}", 1.0),
        ("edgefront_cart_additions_total {}", 1.0),
        ("edgefront_upstream_duration_seconds_count {\"upstream\":\"origin\"}", 2.0),
        ("edgefront_visitors_online {}", 1.0),
        ("edgefront_job_failed {\"cron_job\":\"rescale\"}", 0.0),
    ] {
        assert!(found.get(sample).is_some_and(|value| *value >= least), "{sample}: {found:?}");
    }

    // A roll-up moves counts from the entries to the sums.
    let later = TestClock::ticking().now() + Duration::from_mins(2);
    assert!(roll_up(&shop.store.aside, later).await.unwrap().is_some_and(|report| report.minutes >= 1));
    let after = cumulative(&parse(&scrape(&shop).await).await);
    for (sample, value) in cumulative(&before) {
        assert!(after.get(&sample).is_some_and(|after| *after >= value), "{sample} falls from {value}: {after:?}");
    }
}

/// Checks that the limits of each histogram ascend, that its counts do not fall, and that the last one is its count.
fn assert_histograms_are_sound(families: &Value) {
    let families = families.as_object().unwrap();
    for (name, family) in families.iter().filter(|(_, family)| family["type"] == "histogram") {
        let mut counts = BTreeMap::<String, Vec<(f64, f64)>>::new();
        let all = family["samples"].as_array().unwrap();
        for sample in all.iter().filter(|sample| sample[0] == format!("{name}_bucket")) {
            let mut labels = sample[1].as_object().unwrap().clone();
            let limit = labels.remove("le").unwrap();
            let limit = limit.as_str().unwrap().replace("+Inf", "inf").parse().unwrap();
            counts.entry(Value::from(labels).to_string()).or_default().push((limit, sample[2].as_f64().unwrap()));
        }
        assert_eq!(counts.len(), 3, "{name}");
        for (labels, buckets) in counts {
            assert!(buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1), "{name}{labels}: {buckets:?}");
            let count = samples(&json!({ "": family }))[&format!("{name}_count {labels}")];
            assert_eq!(buckets.last().map(|(limit, count)| (limit.is_infinite(), *count)), Some((true, count)));
        }
    }
}

fn assert_documents_name_metrics_of(families: &Value) {
    let known: BTreeSet<_> = families
        .as_object()
        .unwrap()
        .values()
        .flat_map(|family| family["samples"].as_array().unwrap().iter().map(|sample| sample[0].as_str().unwrap()))
        // Absent before the first run of a cron.
        .chain(["edgefront_cron_heartbeat_timestamp_seconds"])
        .collect();
    for path in ["docs/grafana.json", "docs/alerts.yml"] {
        let text = fs::read_to_string(path).unwrap();
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let names: BTreeSet<_> = text.split(|c| !is_in_name(c)).filter(|word| word.starts_with("edgefront_")).collect();
        assert!(names.len() > 5 && names.is_subset(&known), "{path}: {:?}", names.difference(&known));
    }
    let dashboard: Value = serde_json::from_str(&fs::read_to_string("docs/grafana.json").unwrap()).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 10);
}
