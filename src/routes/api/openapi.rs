//! Holds `docs/openapi.json` equal to the code.
//!
//! The shapes, the descriptions and the examples of success are written in the document. This test writes what the code
//! knows: the summary, the callers and the errors of each operation, and the names of problems, metrics and jobs. The
//! list `x-problems` of an operation names the problems that only its handler knows. The storefront tests check the
//! shapes: every response of the API that they read must match the document.

use std::{collections::BTreeMap, env, fs};

use http::Method;
use serde_json::{Map, Value, json};

use super::{
    ROUTES,
    access::Access,
    reference::{WRITE_DOCS, problems},
    route::ApiRoute,
};
use crate::{jobs::Job, metrics::traffic::Metric, ports::error::Error, routes::problem::Problem};

const PATH: &str = "docs/openapi.json";

#[test]
fn the_openapi_document_describes_every_route_and_problem() {
    let text = fs::read_to_string(PATH).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(operations(&document), sorted(ROUTES.iter().map(|route| (route.path.to_owned(), method(route)))));
    for route in ROUTES {
        update(&mut document["paths"][route.path][method(route)], route);
    }
    let problems = kinds();
    let components = &mut document["components"];
    components["schemas"]["ProblemType"]["enum"] = problems.keys().map(|kind| urn(kind)).collect();
    components["schemas"]["Metric"]["enum"] = Metric::ALL.iter().map(|metric| metric.name()).collect();
    components["schemas"]["JobName"]["enum"] = Job::ALL.iter().map(|job| job.name()).collect();
    components["examples"] = problems.iter().map(|(kind, problem)| ((*kind).to_owned(), example(problem))).collect();
    components["responses"] = problems.keys().map(|kind| ((*kind).to_owned(), problem_response(&[kind]))).collect();
    let updated = format!("{document:#}\n");
    if env::var_os(WRITE_DOCS).is_some() {
        fs::write(PATH, updated).unwrap();
    } else {
        assert!(text == updated, "{PATH} is stale: run this test with {WRITE_DOCS}=1");
    }
}

fn method(route: &ApiRoute) -> String {
    route.method.as_str().to_ascii_lowercase()
}

/// The paths and methods of the document, sorted.
fn operations(document: &Value) -> Vec<(String, String)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths
        .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone())));
    sorted(operations)
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<_> = items.collect();
    items.sort();
    items
}

/// Writes the summary, the callers and the errors of an operation.
fn update(operation: &mut Value, route: &ApiRoute) {
    operation["summary"] = route.summary.into();
    operation["security"] = match route.access {
        Access::Open => json!([]),
        Access::Visitor => json!([{}, {"session": []}]),
        Access::Service => json!([{"serviceKey": []}]),
    };
    if route.access == Access::Open {
        return;
    }
    let has_body = operation["requestBody"].is_object();
    let own: Vec<_> = operation["x-problems"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
    let mut by_status = BTreeMap::<u16, Vec<&str>>::new();
    let problems = kinds();
    for kind in common_problems(route, has_body).into_iter().chain(own) {
        let problem = problems.get(kind).unwrap_or_else(|| panic!("{}: no problem {kind}", route.path));
        by_status.entry(problem.problem_type().status.as_u16()).or_default().push(kind);
    }
    let responses = operation["responses"].as_object().unwrap().iter();
    let success =
        responses.filter(|(status, _)| status.as_str() < "400").map(|(s, response)| (s.clone(), response.clone()));
    let errors = by_status.iter().map(|(status, kinds)| {
        let response = match kinds[..] {
            [kind] => json!({"$ref": format!("#/components/responses/{kind}")}),
            _ => problem_response(kinds),
        };
        (status.to_string(), response)
    });
    operation["responses"] = success.chain(errors).collect::<Map<_, _>>().into();
}

/// The problems that the steps before the handler cause, and those of Redis and the platform.
fn common_problems(route: &ApiRoute, has_body: bool) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let is_write = route.method != Method::GET;
    if route.access == Access::Service {
        kinds.extend(["service-key", "too-often"]);
    } else if is_write {
        kinds.extend(["foreign-origin", "too-often"]);
    }
    if is_write {
        kinds.push("too-large");
    }
    if has_body {
        kinds.extend(["malformed", "not-json"]);
    }
    kinds.extend(["unavailable", "internal"]);
    kinds
}

/// An example of each kind of problem.
fn kinds() -> BTreeMap<&'static str, Problem> {
    // The first example of a kind stays.
    problems().into_iter().rev().map(|problem| (problem.problem_type().kind, problem)).collect()
}

fn urn(kind: &str) -> String {
    format!("urn:edgefront:{kind}")
}

fn example(problem: &Problem) -> Value {
    let problem_type = problem.problem_type();
    let detail = problem_type.detail(problem.to_string());
    let mut value = json!({
        "type": urn(problem_type.kind),
        "title": problem_type.title,
        "status": problem_type.status.as_u16(),
        "detail": detail,
    });
    if let Problem::Domain(Error::Invalid { field, .. }) = problem {
        value["field"] = (*field).into();
    }
    json!({"summary": problem_type.title, "value": value})
}

/// A response with one of several problems of the same status.
fn problem_response(kinds_of_status: &[&str]) -> Value {
    let problems = kinds();
    let titles: Vec<_> =
        kinds_of_status.iter().map(|kind| format!("{} (`{kind}`)", problems[kind].problem_type().title)).collect();
    let mut response = json!({"description": format!("{}.", titles.join(", "))});
    let header = |name: &str, description: &str, kind: &str| {
        let header = json!({"required": true, "description": description, "schema": {"type": kind}});
        json!({name: header})
    };
    match problems[kinds_of_status[0]].problem_type().status.as_u16() {
        401 => response["headers"] = header("WWW-Authenticate", "The authentication scheme.", "string"),
        405 => response["headers"] = header("Allow", "The methods of the path.", "string"),
        429 | 503 => response["headers"] = header("Retry-After", "Seconds to wait.", "integer"),
        _ => {}
    }
    let types: Vec<_> = kinds_of_status.iter().map(|kind| urn(kind)).collect();
    let examples: Map<_, _> = kinds_of_status
        .iter()
        .map(|kind| ((*kind).to_owned(), json!({"$ref": format!("#/components/examples/{kind}")})))
        .collect();
    let schema = json!({"$ref": "#/components/schemas/Problem", "properties": {"type": {"enum": types}}});
    response["content"] = json!({"application/problem+json": {"schema": schema, "examples": examples}});
    response
}
