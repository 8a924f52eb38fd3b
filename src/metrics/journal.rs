//! The log: a line of JSON for each thing that an operator may have to know. Whatever is logged passes [`line`], on every platform, and
//! no line holds a token or a mail address, whoever's words it quotes.
//!
//! | `event` | fields besides `level` | when |
//! |---|---|---|
//! | `request` | `method`, `route`, `status`, `cause`, `ms`, `cache` | a request was answered 5xx |
//! | `cron` | `cron`, `seconds`, `jobs`: job → what it did, in numbers, and `error` | a cron has run |
//! | `job` | `job`, `seconds`, `done`, `error` | a job has run because somebody asked |
//! | `note` | `at` (the module), `message` | what did not fail a request: Redis was silent, work behind an answer was not done |
//!
//! A route is a pattern, or `storefront`: paths and queries are visitors', and may name anybody.

use http::Method;
use log::{Level, Record, log};
use serde_json::{Map, Value, json};

use crate::{ports::fetch::Response, schema::token::Token};

/// Why an answer is a failure: whoever makes the answer says so in its extensions, and the line is written when it goes out. So an answer
/// that is replaced (by a stale page) leaves none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub route: String,
    pub cause: String,
}

const REQUEST: &str = "request";
const CRON: &str = "cron";
const JOB: &str = "job";

/// Logs an answer if it is a failure. `asked` is where it was asked for, should nobody have said it better; `millis` says how long it took.
pub fn request(method: &Method, asked: &str, response: &Response, millis: impl FnOnce() -> u128) {
    if !response.status().is_server_error() {
        return;
    }
    let told = response.extensions().get::<Failure>();
    let cache = response.headers().get_all("cache-status").iter().next_back().and_then(|value| value.to_str().ok());
    // An answer of the origin's own is its to explain.
    let cause = told.map_or("answered so by the origin", |failure| &failure.cause);
    let fields = json!({
        "method": method.as_str(),
        "route": told.map_or(asked, |failure| &failure.route),
        "status": response.status().as_u16(),
        "cause": without_names(cause),
        "ms": u64::try_from(millis()).unwrap_or(u64::MAX),
        "cache": cache,
    });
    log!(target: REQUEST, Level::Error, "{fields}");
}

/// The work of a job as named numbers, and why it stopped early.
pub type Run<'a> = (&'a str, Map<String, Value>, Option<String>);

/// Logs a run of a cron and of each of its jobs.
pub fn cron(cron: &str, seconds: f64, runs: &[Run]) {
    let has_failed = runs.iter().any(|(.., error)| error.is_some());
    let job = |(name, done, error): &Run| {
        let error = error.iter().map(|error| ("error".to_owned(), without_names(error).into()));
        ((*name).to_owned(), Value::Object(done.clone().into_iter().chain(error).collect()))
    };
    let jobs: Map<_, _> = runs.iter().map(job).collect();
    let fields = json!({"cron": cron, "seconds": to_millis(seconds), "jobs": jobs});
    log!(target: CRON, if has_failed { Level::Error } else { Level::Info }, "{fields}");
}

/// Logs a run of a job that somebody asked for.
pub fn job((name, done, error): Run, seconds: f64) {
    let level = if error.is_some() { Level::Error } else { Level::Info };
    let error = error.as_deref().map(without_names);
    let fields = json!({"job": name, "seconds": to_millis(seconds), "done": done, "error": error});
    log!(target: JOB, level, "{fields}");
}

/// Seconds, to the millisecond, which is what the platform's clock tells.
fn to_millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// The line of a record.
#[must_use]
pub fn line(record: &Record) -> String {
    let level = record.level().as_str().to_ascii_lowercase();
    let text = record.args().to_string();
    match record.target() {
        // Their fields are an object already.
        event @ (REQUEST | CRON | JOB) => {
            format!(r#"{{"level":"{level}","event":"{event}",{}"#, text.trim_start_matches('{'))
        }
        module => {
            let at = module.strip_prefix("edgefront::").unwrap_or(module);
            json!({"level": level, "event": "note", "at": at, "message": without_names(&text)}).to_string()
        }
    }
}

/// The text with `…` for what may be a session's token or a mail address. Our own messages hold none; what the database, the platform or
/// a panic says is not ours.
#[must_use]
pub fn without_names(text: &str) -> String {
    let is_of_mail = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+' | '%');
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut clean = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_of_mail(c)) {
        let word = piece.trim_end_matches(|c| !is_of_mail(c));
        if word.contains('@') || word.contains("%40") {
            clean.push('…');
            clean.extend(piece.strip_prefix(word));
            continue;
        }
        for piece in piece.split_inclusive(|c| !is_of_token(c)) {
            let word = piece.trim_end_matches(|c| !is_of_token(c));
            clean.push_str(if Token::parse(word).is_some() { "…" } else { word });
            clean.extend(piece.strip_prefix(word));
        }
    }
    clean
}

/// Marks an answer as a failure, with its cause.
pub fn mark(response: &mut Response, route: String, cause: String) {
    response.extensions_mut().insert(Failure { route, cause });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ports::time::Timestamp;

    fn logged(target: &str, text: &str) -> Value {
        let line = line(&Record::builder().args(format_args!("{text}")).level(Level::Warn).target(target).build());
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_note_says_where_it_comes_from() {
        let note = json!({"level": "warn", "event": "note", "at": "routes::storefront", "message": "a \"b\""});
        assert_eq!(logged("edgefront::routes::storefront", "a \"b\""), note);
        assert_eq!(logged("worker", "a")["at"], "worker");
    }

    #[test]
    fn an_event_has_its_fields_beside_its_name() {
        let event = json!({"level": "warn", "event": "cron", "cron": "* * * * *", "jobs": {}});
        assert_eq!(logged(CRON, r#"{"cron":"* * * * *","jobs":{}}"#), event);
    }

    #[test]
    fn names_do_not_pass() {
        let token = Token::new(Timestamp::from_millis(1_795_000_000_000)).unwrap();
        let token = token.as_str();
        for (text, clean) in [
            (format!("no user {token}."), "no user ….".to_owned()),
            (format!("cookie {token}.abc"), "cookie ….abc".to_owned()),
            (format!("viewed:{token}"), "viewed:…".to_owned()),
            ("to ada.lovelace+x@example.org, twice".to_owned(), "to …, twice".to_owned()),
            ("?mail=ada%40example.org&x".to_owned(), "?mail=…&x".to_owned()),
            ("D1_ERROR: no such table: orders".to_owned(), "D1_ERROR: no such table: orders".to_owned()),
            (String::new(), String::new()),
        ] {
            assert_eq!(without_names(&text), clean);
        }
    }

    proptest! {
        #[test]
        fn no_token_passes_wherever_it_stands(before in "[^A-Za-z0-9_-]", after in "[^A-Za-z0-9_-]", millis in 0u64..4_000_000_000_000) {
            let token = Token::new(Timestamp::from_millis(millis)).unwrap();
            let clean = without_names(&format!("a{before}{}{after}b", token.as_str()));
            prop_assert!(!clean.contains(token.as_str()), "{clean}");
        }
    }
}
