//! Error responses: counts by status, route and cause, and the latest ones with their reason. A route is a pattern and a
//! reason is redacted, so neither identifies a visitor.

use std::fmt;

use crate::{
    metrics::event_log::redact,
    ports::{sort, time::Timestamp},
};

/// Different kinds in one sample. Further kinds count as one kind for each class of status.
pub(super) const MAX_KINDS: usize = 64;
/// The largest number of kinds in one entry of a long stream: visitors can cause many kinds of errors at no cost.
pub(super) const MAX_ENTRY_KINDS: usize = 8;
/// Latest errors in one sample.
const MAX_LATEST: usize = 20;
/// The longest reason, in characters.
const MAX_REASON: usize = 160;
/// The route and the cause of the kinds above a limit.
const OTHER: &str = "other";

/// The kind of an error: all errors of a kind are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorKind {
    pub status: u16,
    /// The route's pattern, or `storefront`.
    pub route: String,
    /// The problem's type, or `origin` for the origin's own answer.
    pub cause: String,
}

impl ErrorKind {
    /// Reads `status route cause`, and the rest of the text.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let mut parts = text.splitn(4, ' ');
        let (status, route, cause) = (parts.next()?.parse().ok()?, parts.next()?.to_owned(), parts.next()?.to_owned());
        Some((Self { status, route, cause }, parts.next().unwrap_or_default()))
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.status, self.route, self.cause)
    }
}

/// One error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorEvent {
    pub at: Timestamp,
    pub kind: ErrorKind,
    pub reason: String,
}

impl ErrorEvent {
    /// Reads an [entry's field](Errors::latest_fields).
    fn parse(text: &str) -> Option<Self> {
        let (millis, rest) = text.split_once(' ')?;
        let (kind, reason) = ErrorKind::parse(rest)?;
        Some(Self { at: Timestamp::from_millis(millis.parse().ok()?), kind, reason: reason.to_owned() })
    }
}

/// The errors in a period.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Errors {
    /// In order of the kinds.
    counts: Vec<(ErrorKind, u64)>,
    /// Newest first.
    latest: Vec<ErrorEvent>,
}

impl Errors {
    /// Counts an error response and keeps it as one of the latest.
    pub fn record(&mut self, at: Timestamp, kind: ErrorKind, reason: &str) {
        self.add(kind.clone(), 1);
        self.keep(ErrorEvent { at, kind, reason: shown_reason(reason) });
    }

    /// Adds a count.
    pub fn add(&mut self, kind: ErrorKind, count: u64) {
        self.add_to(MAX_KINDS, kind, count);
    }

    /// Adds a count to its kind. Above `limit` kinds, adds it to the kind `other` of its class of status. The kinds `other`
    /// are not part of the limit, so that a full sample can be read back in any order.
    fn add_to(&mut self, limit: usize, kind: ErrorKind, count: u64) {
        let is_other = |kind: &ErrorKind| kind.route == OTHER;
        let has_room = || self.counts.iter().filter(|(own, _)| !is_other(own)).count() < limit;
        let kind = if is_other(&kind) || self.find(&kind).is_ok() || has_room() {
            kind
        } else {
            ErrorKind { status: kind.status / 100 * 100, route: OTHER.to_owned(), cause: OTHER.to_owned() }
        };
        match self.find(&kind).map(|index| self.counts.get_mut(index)) {
            Ok(found) => found.into_iter().for_each(|(_, sum)| *sum = sum.saturating_add(count)),
            Err(index) => self.counts.insert(index, (kind, count)),
        }
    }

    /// The index of a kind, or that at which it belongs.
    fn find(&self, kind: &ErrorKind) -> Result<usize, usize> {
        self.counts.binary_search_by(|(own, _)| own.cmp(kind))
    }

    #[must_use]
    pub fn count(&self, kind: &ErrorKind) -> u64 {
        self.find(kind).ok().and_then(|index| self.counts.get(index)).map_or(0, |(_, count)| *count)
    }

    /// Adds the errors in another period.
    pub fn merge(&mut self, other: &Self) {
        for (kind, count) in &other.counts {
            self.add(kind.clone(), *count);
        }
        for event in &other.latest {
            self.keep(event.clone());
        }
    }

    #[must_use]
    pub fn counts(&self) -> &[(ErrorKind, u64)] {
        &self.counts
    }

    /// The latest errors, newest first.
    #[must_use]
    pub fn latest(&self) -> &[ErrorEvent] {
        &self.latest
    }

    /// Adds a count from an entry's field, `status route cause`.
    pub(super) fn add_field(&mut self, kind: &str, count: &str) {
        if let (Some((kind, _)), Ok(count)) = (ErrorKind::parse(kind), count.parse()) {
            self.add(kind, count);
        }
    }

    /// Adds one of the latest errors from an entry's field.
    pub(super) fn keep_field(&mut self, text: &str) {
        self.latest.extend(ErrorEvent::parse(text));
        self.bound_latest();
    }

    /// The counts for an entry: those of the `limit` most frequent kinds, and the sums of the others.
    pub(super) fn entry_counts(&self, limit: usize) -> Vec<(ErrorKind, u64)> {
        let mut counts = self.counts.clone();
        sort::sort_by(&mut counts, |(_, one), (_, other)| other.cmp(one));
        let mut errors = Self::default();
        for (kind, count) in counts {
            errors.add_to(limit, kind, count);
        }
        errors.counts
    }

    /// The latest errors as values of an entry's fields: `milliseconds status route cause reason`.
    pub(super) fn latest_fields(&self, limit: usize) -> impl Iterator<Item = String> {
        let latest = self.latest.iter().take(limit);
        latest.map(|ErrorEvent { at, kind, reason }| format!("{} {kind} {reason}", at.as_millis()))
    }

    fn keep(&mut self, event: ErrorEvent) {
        self.latest.push(event);
        self.bound_latest();
    }

    fn bound_latest(&mut self) {
        sort::sort_by(&mut self.latest, |one, other| other.at.cmp(&one.at));
        self.latest.truncate(MAX_LATEST);
    }
}

/// A reason in one short line. Tokens, addresses, quoted text and queries are left out.
fn shown_reason(text: &str) -> String {
    let unquoted: String =
        text.split('"').enumerate().map(|(index, part)| if index % 2 == 0 { part } else { "“…”" }).collect();
    let without_query =
        |word: &str| word.split_once('?').map_or_else(|| word.to_owned(), |(path, _)| format!("{path}?…"));
    let words: Vec<_> = unquoted.split_whitespace().map(without_query).collect();
    redact(&words.join(" ")).chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(status: u16, cause: &str) -> ErrorKind {
        ErrorKind { status, route: "storefront".to_owned(), cause: cause.to_owned() }
    }

    const NOON: u64 = 1_795_000_000_000;

    #[test]
    fn a_reason_is_short_and_quotes_nothing() {
        for (reason, shown) in [
            ("redis: no answer in time", "redis: no answer in time"),
            ("body must not have the field \"my secret\"", "body must not have the field “…”"),
            ("no route for https://a.example/x?key=secret\nagain", "no route for https://a.example/x?… again"),
            ("no user ada@example.org", "no user …"),
        ] {
            assert_eq!(shown_reason(reason), shown);
        }
        assert_eq!(shown_reason(&"é".repeat(200)).chars().count(), 160);
    }

    #[test]
    fn kinds_and_latest_errors_are_bounded() {
        let mut errors = Errors::default();
        for number in 0..100 {
            errors.record(Timestamp::from_millis(NOON + number), kind(404, &format!("cause-{number}")), "x");
        }
        assert_eq!((errors.counts.len(), errors.latest.len()), (65, 20));
        let other = ErrorKind { status: 400, route: OTHER.to_owned(), cause: OTHER.to_owned() };
        assert_eq!((errors.count(&other), errors.counts.iter().map(|(_, count)| count).sum::<u64>()), (36, 100));
        assert_eq!(errors.latest[0].at.as_millis(), NOON + 99);

        errors.add(kind(500, "frequent"), 7);
        errors.add(kind(404, "cause-50"), 7);
        let entry = errors.entry_counts(MAX_ENTRY_KINDS);
        assert_eq!(entry.iter().map(|(_, count)| count).sum::<u64>(), 114);
        let has = |kind: &ErrorKind| entry.iter().any(|(own, _)| own == kind);
        assert!(entry.len() <= 10 && has(&other) && has(&kind(404, "cause-50")), "{entry:?}");
    }

    #[test]
    fn errors_are_read_back_from_their_fields() {
        let mut errors = Errors::default();
        errors.record(Timestamp::from_millis(NOON), kind(502, "origin-down"), "origin: no connection");
        let mut read = Errors::default();
        for (kind, count) in &errors.counts {
            read.add_field(&kind.to_string(), &count.to_string());
        }
        for text in errors.latest_fields(5) {
            read.keep_field(&text);
        }
        assert_eq!(read, errors);
        read.add_field("x", "1");
        read.add_field("404 storefront origin", "x");
        read.keep_field("now");
        assert_eq!(read, errors);
    }
}
