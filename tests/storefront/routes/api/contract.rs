//! The contract of the API, `docs/openapi.json`. Every response that the tests read must match it.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use http::Method;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::Answer;
use crate::support::Shop;

const PREFIX: &str = "/_edge/v1";

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document =
        serde_json::from_str(&fs::read_to_string("docs/openapi.json").expect("the document")).expect("JSON");
    close(&mut document);
    document
});

/// A request as it was sent.
pub struct Sent {
    pub method: Method,
    pub path: String,
    /// None if the body is unknown or not JSON.
    pub json: Option<Value>,
}

/// Panics if the response does not match the document, or if the API accepted a body that the document forbids.
pub fn check(sent: &Sent, answer: &Answer) {
    let Some(path) = sent.path.strip_prefix(PREFIX) else { return };
    let status = answer.status.to_string();
    let request = format!("{} {path} → {status}", sent.method);
    let Some(pointer) = operation(&sent.method, path) else {
        assert!(["404", "405"].contains(&&*status), "{request}: the document has no such operation");
        if sent.method == Method::HEAD {
            return;
        }
        return assert_valid("/components/schemas/Problem", &answer.json, &request);
    };
    let mut response = format!("{pointer}/responses/{status}");
    let found = DOCUMENT.pointer(&response).unwrap_or_else(|| panic!("{request}: the status is not documented"));
    if let Some(target) = found["$ref"].as_str() {
        response = target.trim_start_matches('#').to_owned();
    }
    let found = DOCUMENT.pointer(&response).expect("a component");
    for (name, header) in found["headers"].as_object().into_iter().flatten() {
        let is_required = header["required"] == true
            || header["$ref"].as_str().is_some_and(|name| {
                DOCUMENT.pointer(name.trim_start_matches('#')).expect("a header")["required"] == true
            });
        assert!(!is_required || answer.headers.contains_key(name), "{request}: no {name}");
    }
    match found["content"].as_object().and_then(|content| content.iter().next()) {
        None => assert_eq!(answer.json, Value::Null, "{request}: no body is documented"),
        Some(_) if sent.method == Method::HEAD => assert_eq!(answer.json, Value::Null, "{request}"),
        Some((media_type, _)) => {
            assert_eq!(answer.header("content-type"), media_type, "{request}");
            let schema = format!("{response}/content/{}/schema", media_type.replace('/', "~1"));
            assert_valid(&schema, &answer.json, &request);
        }
    }
    let body = format!("{pointer}/requestBody/content/application~1json/schema");
    if let Some(json) = &sent.json
        && answer.status < 300
        && DOCUMENT.pointer(&body).is_some()
    {
        assert_valid(&body, json, &format!("{request}: the body"));
    }
}

/// The JSON pointer of the operation of a request; HEAD has the operation of GET.
pub fn operation(method: &Method, path: &str) -> Option<String> {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let method = method.as_str().to_ascii_lowercase();
    let segments = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
    let (path, paths) = (segments(path), DOCUMENT["paths"].as_object().expect("paths"));
    let pattern = paths.iter().find(|(pattern, item)| {
        let pattern = segments(pattern);
        item.get(&method).is_some()
            && pattern.len() == path.len()
            && pattern.iter().zip(&path).all(|(part, own)| part.starts_with('{') || part == own)
    });
    pattern.map(|(pattern, _)| format!("/paths/{}/{method}", pattern.replace('/', "~1")))
}

/// The JSON pointers of all operations.
pub fn operations() -> BTreeSet<String> {
    let paths = DOCUMENT["paths"].as_object().expect("paths").iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().expect("methods").keys();
        methods.map(move |method| format!("/paths/{}/{method}", path.replace('/', "~1")))
    });
    operations.collect()
}

fn assert_valid(schema: &str, value: &Value, what: &str) {
    let errors: Vec<_> =
        validator(schema).iter_errors(value).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {}\n{value}", errors.join("; "));
}

/// The validator of the schema at a JSON pointer.
fn validator(schema: &str) -> Arc<Validator> {
    static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = validators.entry(schema.to_owned()).or_insert_with(|| {
        let mut root = DOCUMENT.pointer(schema).unwrap_or_else(|| panic!("no schema {schema}")).clone();
        root["components"] = json!({"schemas": DOCUMENT["components"]["schemas"]});
        Arc::new(jsonschema::draft202012::new(&root).unwrap_or_else(|error| panic!("{schema}: {error}")))
    });
    validator.clone()
}

/// Forbids unknown fields in each object of the document. Clients must accept new fields; a test must not.
fn close(schema: &mut Value) {
    if let Value::Object(fields) = schema
        && fields.get("type").is_some_and(|kind| kind == "object")
        && fields.contains_key("properties")
    {
        fields.entry("additionalProperties").or_insert(false.into());
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(close),
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[test]
fn the_examples_of_the_document_match_its_schemas() {
    let mut checked = 0;
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let pointer = format!("/paths/{}/{method}", path.replace('/', "~1"));
            let statuses = operation["responses"]
                .as_object()
                .unwrap()
                .keys()
                .map(|status| format!("{pointer}/responses/{status}"));
            for holder in statuses.chain([format!("{pointer}/requestBody")]) {
                let content = format!("{holder}/content/application~1json");
                let Some(media_type) = DOCUMENT.pointer(&content) else { continue };
                assert_valid(&format!("{content}/schema"), &media_type["example"], &content);
                checked += 1;
            }
        }
    }
    for (name, example) in DOCUMENT["components"]["examples"].as_object().unwrap() {
        assert_valid(
            &format!("/components/responses/{name}/content/application~1problem+json/schema"),
            &example["value"],
            name,
        );
        checked += 1;
    }
    assert!(checked > 60, "{checked}");
}

#[test]
fn a_response_that_differs_from_the_document_is_found() {
    let sent = Sent { method: Method::GET, path: "/_edge/v1/healthz".to_owned(), json: None };
    let mut headers = http::HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    for (status, json, is_right) in [
        (200, json!({"status": "ok"}), true),
        (200, json!({"status": "ill"}), false),
        (200, json!({"status": "ok", "undocumented": 1}), false),
        (200, json!({}), false),
        (503, json!({"status": "ok"}), false),
    ] {
        let answer = Answer { status, headers: headers.clone(), json };
        assert_eq!(std::panic::catch_unwind(|| check(&sent, &answer)).is_ok(), is_right, "{answer:?}");
    }
}

#[tokio::test]
async fn the_platform_serves_the_document_without_running_the_worker_in_workerd() {
    let shop = Shop::workerd(&[]).await;
    let answer = shop.visit("/_edge/v1/openapi.json").await;
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!((answer.status().as_u16(), header("content-type").as_str()), (200, "application/json"));
    assert_eq!(
        (header("access-control-allow-origin").as_str(), header("x-content-type-options").as_str()),
        ("*", "nosniff")
    );
    assert!(answer.headers().contains_key("etag"));
    assert!(answer.text().await.unwrap() == fs::read_to_string("docs/openapi.json").unwrap());
}
