//! The log: one line of JSON for each event that concerns an operator. [`line()`] formats every record on every platform,
//! and no line holds a token or an email address, except `mail`.
//!
//! | `event` | fields besides `level` | logged when |
//! |---|---|---|
//! | `request` | `method`, `route`, `status`, `cause`, `ms`, `cache` | a request was answered 5xx |
//! | `cron` | `cron`, `seconds`, `jobs`: job → its report in numbers, and `error` | a cron trigger has run |
//! | `job` | `job`, `seconds`, `done`, `error` | a job has run on request |
//! | `mail` | `to`, `subject`, `text` | the demo shop sends a mail, with `DEMO_MAIL=log` for development |
//! | `note` | `at` (the module), `message` | a problem failed no request: Redis was silent, or a background task failed |
//!
//! A route is a pattern, or `storefront`: a path or a query can identify a visitor.

mod redact;

use http::Method;
use log::{Level, Record, log};
use serde_json::{Map, Value, json};

pub use self::redact::redact;
use crate::ports::{fetch::Response, mail::MAIL_EVENT, problem::Failure};

const REQUEST: &str = "request";
const CRON: &str = "cron";
const JOB: &str = "job";

/// The cause of an error response that edgefront passes on.
pub const ORIGIN_CAUSE: &str = "the origin answered with this status";

/// Logs a 5xx response. `route` stands in if the response carries no [`Failure`]. `millis` is the time since the
/// request, in milliseconds.
pub fn request(method: &Method, route: &str, response: &Response, millis: impl FnOnce() -> u128) {
    if !response.status().is_server_error() {
        return;
    }
    let failure = response.extensions().get::<Failure>();
    let cache = response.headers().get_all("cache-status").iter().next_back().and_then(|value| value.to_str().ok());
    let cause = failure.map_or(ORIGIN_CAUSE, |failure| &failure.cause);
    let fields = json!({
        "method": method.as_str(),
        "route": failure.map_or(route, |failure| &failure.route),
        "status": response.status().as_u16(),
        "cause": redact(cause),
        "ms": u64::try_from(millis()).unwrap_or(u64::MAX),
        "cache": cache,
    });
    log!(target: REQUEST, Level::Error, "{fields}");
}

pub struct JobRun {
    pub name: &'static str,
    /// The job's report: numbers with names.
    pub done: Map<String, Value>,
    /// The cause if the job failed as a whole or in part.
    pub error: Option<String>,
}

/// Logs a run of a cron trigger with the runs of its jobs.
pub fn cron(cron: &str, seconds: f64, runs: Vec<JobRun>) {
    let has_failed = runs.iter().any(|run| run.error.is_some());
    let describe = |JobRun { name, done, error }: JobRun| {
        let error = error.map(|error| ("error".to_owned(), redact(&error).into()));
        (name.to_owned(), Value::Object(done.into_iter().chain(error).collect()))
    };
    let jobs: Map<_, _> = runs.into_iter().map(describe).collect();
    let fields = json!({"cron": cron, "seconds": round_to_millis(seconds), "jobs": jobs});
    log!(target: CRON, if has_failed { Level::Error } else { Level::Info }, "{fields}");
}

/// Logs a run of a job on request.
pub fn job(JobRun { name, done, error }: JobRun, seconds: f64) {
    let level = if error.is_some() { Level::Error } else { Level::Info };
    let error = error.as_deref().map(redact);
    let fields = json!({"job": name, "seconds": round_to_millis(seconds), "done": done, "error": error});
    log!(target: JOB, level, "{fields}");
}

/// Rounds seconds to milliseconds, the resolution of the platform's clock.
fn round_to_millis(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[must_use]
pub fn line(record: &Record) -> String {
    let level = record.level().as_str().to_ascii_lowercase();
    let text = record.args().to_string();
    match record.target() {
        // The text of these events is a JSON object already.
        event @ (REQUEST | CRON | JOB | MAIL_EVENT) => {
            format!(r#"{{"level":"{level}","event":"{event}",{}"#, text.trim_start_matches('{'))
        }
        module => {
            let at = module.strip_prefix("edgefront::").unwrap_or(module);
            json!({"level": level, "event": "note", "at": at, "message": redact(&text)}).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(target: &str, text: &str) -> Value {
        let line = line(&Record::builder().args(format_args!("{text}")).level(Level::Warn).target(target).build());
        serde_json::from_str(&line).unwrap()
    }

    #[test]
    fn a_note_names_its_module() {
        let note = json!({"level": "warn", "event": "note", "at": "routes::storefront", "message": "a \"b\""});
        assert_eq!(logged("edgefront::routes::storefront", "a \"b\""), note);
        assert_eq!(logged("worker", "a")["at"], "worker");
    }

    #[test]
    fn an_event_has_its_fields_beside_its_name() {
        let event = json!({"level": "warn", "event": "cron", "cron": "* * * * *", "jobs": {}});
        assert_eq!(logged(CRON, r#"{"cron":"* * * * *","jobs":{}}"#), event);
    }
}
