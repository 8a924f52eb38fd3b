//! The `curl` lines of `docs/api.md`, run with curl in the order of the page; [`packages`]: those of the packages.

mod packages;

use std::{collections::BTreeSet, env, fs};

use edgefront::ports::time::Clock;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{
    Answer,
    contract::{self, Sent},
};
use crate::support::{Reply, SERVICE_KEY, Shop, TestClock};

/// Adds the response's head, its body and the request's method to the output of curl.
const WRAPPER: &str =
    r#"curl() { command curl --silent --show-error --include --write-out '\n%{method} %{url}' "$@"; }; "#;

#[tokio::test]
async fn every_call_has_a_curl_line_that_works() {
    let shop = open().await;
    let directory = env::temp_dir().join(format!("edgefront-examples-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let page = fs::read_to_string("docs/api.md").expect("the page");
    let mut variables = vec![("API", format!("{}/_edge/v1", shop.url)), ("KEY", SERVICE_KEY.to_owned())];
    let mut called = BTreeSet::new();

    for line in page.lines().filter(|line| line.starts_with("curl ")) {
        let (_, status) = line.rsplit_once("  # ").unwrap_or_else(|| panic!("{line}: no status"));
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("{WRAPPER}{line}")]).envs(variables.iter().cloned()).current_dir(&directory);
        let output = bash.env("no_proxy", "*").output().await.expect("bash and curl");
        let (sent, answer) = read(&String::from_utf8_lossy(&output.stdout));

        assert_eq!(answer.status.to_string(), status, "{line}: {answer:?}{}", String::from_utf8_lossy(&output.stderr));
        contract::check(&sent, &answer);
        called.extend(contract::operation(&sent.method, sent.path.trim_start_matches("/_edge/v1")));
        for (variable, pointer) in [("RESERVATION", "/reservation/id"), ("DEVICE", "/sessions/0/id")] {
            if let Some(id) = answer.json.pointer(pointer) {
                variables.push((variable, id.as_str().expect("an id").to_owned()));
            }
        }
    }

    fs::remove_dir_all(directory).expect("the directory");
    assert_eq!(called, contract::operations(), "docs/api.md has no example of a call, or of one that does not exist");
}

/// A shop with the items and the sale of the examples.
async fn open() -> Shop {
    let shop = Shop::native(&[("ROWS_URL", "{origin}/rows"), ("ITEM_ROUTES", "/products/{item}")]).await;
    let now = TestClock::ticking().now().as_secs();
    let sale = json!({"id": "mug", "sale_starts_at": now - 60, "sale_ends_at": now + 3600, "sale_pieces": 3});
    shop.origin.answer(Reply::html(json!([sale, {"id": "pan", "stock": 7}]).to_string()));
    shop.store.raw(&["ZADD", "viewed:", "-3", "mug"]).await;
    shop
}

/// Reads the output of the wrapped curl. The body of the request is not known: the server has checked it.
fn read(output: &str) -> (Sent, Answer) {
    let (head, body) = output.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {output}"));
    let (body, request) = body.rsplit_once('\n').expect("the request");
    let (method, url) = request.split_once(' ').expect("a method");
    let path = url.split_once("/_edge/").expect("a path of the API").1.split('?').next().unwrap_or_default();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers: HeaderMap = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| {
            let name = name.parse::<HeaderName>().expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        })
        .collect();
    let is_text = headers.get("content-type").is_some_and(|value| value.as_bytes().starts_with(b"text/plain"));
    let json = match body {
        "" => Value::Null,
        text if is_text => text.into(),
        json => serde_json::from_str(json).expect("JSON"),
    };
    let sent = Sent { method: method.parse::<Method>().expect("a method"), path: format!("/_edge/{path}"), json: None };
    (sent, Answer { status: status.expect("a status"), headers, json })
}
