//! Holds `docs/api.md` equal to the code.

use std::{env, fs};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use sha2::Sha256;

use super::{BODY_LIMIT, ROUTES, access::Access};
use crate::{
    config::Config,
    ports::{
        error::{Error, Refusal},
        fetch::FetchError,
    },
    routes::problem::Problem,
    schema::{hex, token::Token},
    sessions::Keyring,
};

/// If this variable is set, the tests write the documents instead of comparing them.
pub(super) const WRITE_DOCS: &str = "EDGEFRONT_WRITE_DOCS";

#[test]
fn the_api_reference_lists_every_route_and_problem() {
    let path = "docs/api.md";
    let document = fs::read_to_string(path).unwrap();
    let updated = with_section(&document, "<!-- table: routes -->", &routes_table());
    let updated = with_section(&updated, "<!-- table: problems -->", &problems_table());
    if env::var_os(WRITE_DOCS).is_some() {
        fs::write(path, updated).unwrap();
    } else {
        assert_eq!(document, updated, "docs/api.md is stale: run this test with {WRITE_DOCS}=1");
    }
}

#[test]
fn the_worked_example_of_the_cookie_is_right() {
    let document = include_str!("../../../docs/api.md");
    let (example, _) = split_section(document, "<!-- example: cookie -->");
    let field = |name: &str| {
        let line = example.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
        line.unwrap_or_else(|| panic!("the example has no {name}")).trim_start().to_owned()
    };
    let token = Token::parse(&field("token")).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(field("key").as_bytes()).unwrap();
    mac.update(field("message").as_bytes());
    let mac = mac.finalize().into_bytes();
    let config = Config::from_lookup(|name| match name {
        "UPSTASH_REDIS_REST_URL" => Some("http://127.0.0.1:8079".to_owned()),
        "UPSTASH_REDIS_REST_TOKEN" => Some("a-token".to_owned()),
        "ORIGIN_URL" => Some("http://127.0.0.1:8080".to_owned()),
        "SESSION_KEYS" => Some(field("key")),
        _ => None,
    });
    let keyring = Keyring::new(&config.ok().unwrap().session);

    assert_eq!(hex(&URL_SAFE_NO_PAD.decode(token.as_str()).unwrap()), field("bytes"));
    assert_eq!(token.began().as_secs().to_string(), field("began"));
    assert_eq!(format!("__Host-session={}", token.as_str()), field("message"));
    assert_eq!(hex(&mac), field("mac"));
    assert_eq!(format!("{}.{}", field("message"), URL_SAFE_NO_PAD.encode(mac)), field("cookie"));
    assert_eq!(keyring.pair(&token).unwrap(), field("cookie"));
}

/// The text from `mark` to the next end mark, and the rest.
fn split_section<'a>(document: &'a str, mark: &str) -> (&'a str, &'a str) {
    let (_, after) = document.split_once(mark).unwrap_or_else(|| panic!("docs/api.md has no {mark}"));
    after.split_once("<!-- end -->").unwrap_or_else(|| panic!("{mark} has no end"))
}

fn with_section(document: &str, mark: &str, table: &str) -> String {
    let (old, _) = split_section(document, mark);
    document.replacen(&format!("{mark}{old}"), &format!("{mark}\n{table}"), 1)
}

fn routes_table() -> String {
    let rows = ROUTES.iter().map(|route| {
        let caller = match route.access {
            Access::Open => "anyone",
            Access::Visitor => "visitor",
            Access::Service => "service",
        };
        format!("| `{} {}` | {caller} | {} |\n", route.method, route.path, route.summary)
    });
    ["| route | caller | purpose |\n|---|---|---|\n".to_owned()].into_iter().chain(rows).collect()
}

fn problems_table() -> String {
    let rows = problems().into_iter().map(|problem| {
        let problem_type = problem.problem_type();
        let (status, detail) = (problem_type.status.as_u16(), problem_type.detail(problem.to_string()));
        format!("| {status} | `urn:edgefront:{}` | {} | {detail} |\n", problem_type.kind, problem_type.title)
    });
    ["| status | `type` | `title` | `detail` |\n|---|---|---|---|\n".to_owned()].into_iter().chain(rows).collect()
}

/// An example of every problem.
pub(super) fn problems() -> Vec<Problem> {
    let errors = [
        Error::invalid("quantity", "must be a whole number"),
        Error::NotFound("row"),
        Error::CartFull { limit: 100 },
        Error::KeyReused,
        Error::Conflict("the sale has another number of pieces than `was`: read it again"),
        Error::NotSignedIn,
        Refusal::NotStarted.into(),
        Refusal::Ended.into(),
        Refusal::SoldOut.into(),
        Refusal::AlreadyBought.into(),
        Error::TooOften,
        Error::Redis(upstash_rest::Error::Unauthorized),
        Error::Origin(FetchError::Timeout),
        Error::Origin(FetchError::Unreachable),
        Error::Esi(String::new()),
        Error::Platform(String::new()),
    ];
    [
        Problem::NoSuchPath,
        Problem::WrongMethod { allow: HeaderValue::from_static("GET, HEAD, DELETE") },
        Problem::WrongServiceKey,
        Problem::NoServiceKey,
        Problem::CrossOrigin,
        Problem::BodyTooLarge { limit: BODY_LIMIT },
        Problem::NotJson,
        Problem::MalformedJson("EOF while parsing an object at line 1 column 1".to_owned()),
    ]
    .into_iter()
    .chain(errors.map(Problem::from))
    .collect()
}
