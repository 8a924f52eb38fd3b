//! The hit-for-miss note: a page could not be stored a moment ago, so no request waits for its render. [`FollowUp`]
//! decides which responses leave one.
//!
//! 1. A shared render ends without a page that can be stored. The note goes into the isolate, and into Redis in place of the
//!    lease (`execute::lease_end`).
//! 2. While the note holds ([`HIT_FOR_MISS`]), requests go to the origin without a wait. An isolate without the note finds it
//!    by its lookup ([`PageState::Unstorable`](super::PageState::Unstorable)), and keeps it.
//! 3. The note ends early if a visitor's own response can be stored (`execute::noted`), or by a purge. An isolate that has missed
//!    the purge asks Redis again after `PAGE_MEMORY` (`execute::background::confirm_unstorable`).
//!
//! In Redis, the note takes the place of the lease `render:{hash}`: `unstorable <stamp> <reason> <names>`, a newline, and
//! the part of the response that is the cause. The names (tags and item) have the form of those of a stored page. The
//! stamp is the latest purge before the render: a later purge voids the note.

use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode, header};

use super::{policy::Reason, stored_page::encode_names};
use crate::{
    proxy::cookie_name,
    schema::ids::{ItemId, Tag},
};

/// Time for which an unstorable page skips the lookup.
pub const HIT_FOR_MISS: Duration = Duration::from_mins(2);

/// Longest cause, bytes.
const MAX_CAUSE: usize = 200;

/// The reason why a page cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unstorable {
    pub reason: Reason,
    /// The part of the response that gives the reason, for operators.
    pub cause: String,
    /// The response sets only cookies of `COOKIES_VARIED` that the request lacks. It says nothing about requests that have them.
    pub sets_only_varied_cookies: bool,
    /// The item that the response names, for purges.
    pub item: Option<ItemId>,
    /// The response's tags, for purges.
    pub tags: Vec<Tag>,
}

impl Unstorable {
    /// Without names for purges.
    #[must_use]
    pub const fn new(reason: Reason, cause: String) -> Self {
        Self { reason, cause, sets_only_varied_cookies: false, item: None, tags: Vec::new() }
    }

    /// The same page, because the origin refused a shared render with `status` and accepted a visitor's request.
    #[must_use]
    pub fn refused(self, status: StatusCode) -> Self {
        Self { reason: Reason::Refused, cause: cause(Reason::Status, status, &HeaderMap::new()), ..self }
    }

    /// The note for Redis. `stamp`: the latest purge before the render.
    #[must_use]
    pub fn encode(&self, stamp: u64) -> String {
        let names = encode_names(&self.tags, self.item.as_ref());
        format!("unstorable {stamp} {} {names}\n{}", self.reason.as_str(), self.cause)
    }
}

/// The work that follows a response that cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowUp {
    /// None: the next request may render the page.
    Nothing,
    /// Render the page without a coding. It can then be stored.
    RenderUncompressed,
    /// Note that requests of this [class](super::selecting::RequestClass) get no shared render.
    NoteClass,
    /// Note that only popularity can admit the page.
    NoteUnpopular,
    /// Note a failed render. It leaves no page, so requests that wait for it must not wait longer.
    NoteFailure,
    /// Leave a hit-for-miss note: in the isolate, and in Redis for the waiting requests of other isolates.
    NoteUnstorable,
}

impl FollowUp {
    /// `asked_for_gzip`: the origin was asked for a compressed body. `is_of_one_client`: other clients may get
    /// another response. They still have the page, or this client's headers may have caused the response. One client's reload or
    /// variant must not delete the page for the others.
    #[must_use]
    pub const fn of(reason: Reason, asked_for_gzip: bool, is_of_one_client: bool) -> Self {
        match reason {
            Reason::Encoding if asked_for_gzip => Self::RenderUncompressed,
            Reason::Vary => Self::NoteClass,
            Reason::Unpopular if is_of_one_client => Self::NoteClass,
            Reason::Unpopular => Self::NoteUnpopular,
            Reason::Busy if !is_of_one_client => Self::NoteFailure,
            _ if !reason.is_lasting() => Self::Nothing,
            _ if is_of_one_client => Self::NoteClass,
            _ => Self::NoteUnstorable,
        }
    }
}

/// Reason and cause of a note; None for any other text.
pub fn decode(note: &str) -> Option<(Reason, &str)> {
    let note = note.strip_prefix("unstorable")?;
    let (line, cause) = note.split_once('\n').unwrap_or((note, ""));
    let reason = line.split(' ').nth(2).and_then(Reason::from_detail);
    Some((reason.unwrap_or(Reason::Unstorable), cause))
}

/// All values of a header in one line, as `name: value, value`. None without the header.
#[must_use]
pub fn header_lines(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<_> = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    (!values.is_empty()).then(|| format!("{name}: {}", values.join(", ")))
}

/// The part of a response that gives `reason` not to store it: the names of its cookies, or the header.
pub fn cause(reason: Reason, status: StatusCode, headers: &HeaderMap) -> String {
    let lines = |name| header_lines(headers, &name);
    let text = match reason {
        // Only the names: a value can be a secret.
        Reason::SetCookie => {
            let names: Vec<_> = headers.get_all(header::SET_COOKIE).iter().map(cookie_name).collect();
            Some(format!("set-cookie: {}", names.join(", ")))
        }
        Reason::Private | Reason::NoStore | Reason::NoCache | Reason::NotFresh => {
            let names = ["cdn-cache-control", "cache-control", "expires"].map(HeaderName::from_static);
            names.into_iter().find_map(lines)
        }
        Reason::Vary | Reason::VaryStar => lines(header::VARY),
        Reason::Encoding => lines(header::CONTENT_ENCODING),
        Reason::Status => Some(format!("status {}", status.as_u16())),
        Reason::NoItem | Reason::Parameters => Some("the response states no freshness".to_owned()),
        _ => None,
    };
    let text = text.unwrap_or_default();
    text.chars().filter(|character| !character.is_control()).take(MAX_CAUSE).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_note_names_reason_and_cause() {
        let tags = ["mugs", "sale"].map(|tag| Tag::parse(tag).unwrap()).into();
        let mut page = Unstorable { tags, ..Unstorable::new(Reason::SetCookie, "set-cookie: a, b".to_owned()) };
        for (item, line) in [(None, "mugs,sale"), (ItemId::parse("mug").ok(), "mugs,sale, mug")] {
            page.item = item;
            let note = page.encode(17);
            assert_eq!(note, format!("unstorable 17 set-cookie {line}\nset-cookie: a, b"));
            assert_eq!(decode(&note), Some((Reason::SetCookie, "set-cookie: a, b")));
        }
        assert_eq!(decode("unstorable"), Some((Reason::Unstorable, "")), "an older version's");
        assert_eq!(decode("known"), None);
    }

    #[test]
    fn a_response_of_one_client_leaves_no_note_for_others() {
        use FollowUp::{NoteClass, NoteFailure, NoteUnpopular, NoteUnstorable, Nothing, RenderUncompressed};
        for (reason, of_one_client, of_all) in [
            (Reason::Private, NoteClass, NoteUnstorable),
            (Reason::TooLarge, NoteClass, NoteUnstorable),
            (Reason::Encoding, NoteClass, NoteUnstorable),
            (Reason::Esi, NoteClass, NoteUnstorable),
            (Reason::Refused, NoteClass, NoteUnstorable),
            (Reason::Vary, NoteClass, NoteClass),
            (Reason::Unpopular, NoteClass, NoteUnpopular),
            (Reason::Busy, Nothing, NoteFailure),
            (Reason::Spelling, Nothing, Nothing),
        ] {
            let follow_up = [true, false].map(|is_of_one_client| FollowUp::of(reason, false, is_of_one_client));
            assert_eq!(follow_up, [of_one_client, of_all], "{reason:?}");
        }
        let compressed = [Reason::Encoding, Reason::Private].map(|reason| FollowUp::of(reason, true, false));
        assert_eq!(compressed, [RenderUncompressed, NoteUnstorable]);
    }

    #[test]
    fn a_cause_names_cookies_without_their_values() {
        let headers: HeaderMap = [
            ("set-cookie", "csrftoken=secret; Path=/"),
            ("set-cookie", "history"),
            ("cache-control", "private, max-age=0"),
            ("vary", "*"),
        ]
        .into_iter()
        .map(|(name, value)| (name.parse::<header::HeaderName>().unwrap(), HeaderValue::from_static(value)))
        .collect();
        for (reason, expected) in [
            (Reason::SetCookie, "set-cookie: csrftoken, history"),
            (Reason::Private, "cache-control: private, max-age=0"),
            (Reason::VaryStar, "vary: *"),
            (Reason::Status, "status 404"),
            (Reason::TooLarge, ""),
        ] {
            assert_eq!(cause(reason, StatusCode::NOT_FOUND, &headers), expected);
        }
    }
}
