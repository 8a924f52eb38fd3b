//! A stored page as the bytes that Redis holds, and back. What does not read back as the page that was asked for is no page: not
//! a collision's, not another version's, not the bare body that the book stores there.
//!
//! Three parts: a line that the scripts read, `edgefront/2 <stamp> <stored> <fresh until> <dies> <tag,tag,…>`; a line of JSON
//! with key, variant, status and headers; the body, any bytes.

use std::{borrow::Cow, str::FromStr};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use super::{
    key::Page,
    vary::{Fields, Selecting},
};
use crate::{ports::time::Timestamp, schema::ids::Tag};

/// A page as the origin sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Redis' clock before the page was rendered, Unix microseconds: a purge since then makes it void.
    pub stamp: u64,
    /// When it was rendered.
    pub stored: Timestamp,
    /// Until when it is served without asking the origin.
    pub fresh_until: Timestamp,
    /// Until when it is served while it is rendered anew.
    pub stale_until: Timestamp,
    /// Until when it is served where the origin fails.
    pub error_until: Timestamp,
    /// When it is forgotten.
    pub dies: Timestamp,
    /// Not served stale because we or the client want so.
    pub strict: bool,
    /// By which headers of the request it is told apart.
    pub vary: Fields,
    /// Which of these it is; empty if there is but one.
    pub variant: String,
    /// The `ETag` is ours: the origin would not know it.
    pub own_etag: bool,
    /// What a purge may name it by, besides its item and its URL.
    pub tags: Vec<Tag>,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Serialize, Deserialize)]
struct Head<'a> {
    key: Cow<'a, str>,
    vary: Cow<'a, str>,
    variant: Cow<'a, str>,
    stale_until: u64,
    error_until: u64,
    strict: bool,
    own_etag: bool,
    status: u16,
    /// Each byte of a value is one character (ISO 8859-1), so that JSON carries any of them.
    #[serde(borrow)]
    headers: Vec<(Text<'a>, Text<'a>)>,
}

/// Text that is not copied if it stands there as it is.
#[derive(Serialize, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

const FORMAT: &str = "edgefront/2";

impl Entry {
    /// The value to store, in two pieces; the second is the body.
    #[must_use]
    pub fn encode(&self, page: &Page) -> [Bytes; 2] {
        let tags = self.tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(",");
        let head = Head {
            key: page.url().into(),
            vary: self.vary.to_text().into(),
            variant: self.variant.as_str().into(),
            stale_until: self.stale_until.as_millis(),
            error_until: self.error_until.as_millis(),
            strict: self.strict,
            own_etag: self.own_etag,
            status: self.status.as_u16(),
            headers: self.headers.iter().map(|(name, value)| (Text(name.as_str().into()), Text::of(value))).collect(),
        };
        let (stamp, stored) = (self.stamp, self.stored.as_millis());
        let (fresh_until, dies) = (self.fresh_until.as_millis(), self.dies.as_millis());
        let mut value = format!("{FORMAT} {stamp} {stored} {fresh_until} {dies} {tags}\n").into_bytes();
        // Strings and numbers: writing them as JSON can not fail.
        let _ = serde_json::to_writer(&mut value, &head);
        value.push(b'\n');
        [value.into(), self.body.clone()]
    }

    /// Reads a stored value; None if it is not `page` for a request like `selecting`.
    #[must_use]
    pub fn decode(value: &Bytes, page: &Page, selecting: &Selecting) -> Option<Self> {
        let (line, rest) = split_line(value)?;
        let (head, body) = split_line(&rest)?;
        let mut words = std::str::from_utf8(&line).ok()?.split(' ');
        if words.next() != Some(FORMAT) {
            return None;
        }
        let stamp = number(words.next())?;
        let mut moment = || Some(Timestamp::from_millis(number(words.next())?));
        let (stored, fresh_until, dies) = (moment()?, moment()?, moment()?);
        let tags = words.next()?.split(',').filter_map(|tag| Tag::parse(tag).ok()).collect();
        let head: Head = serde_json::from_slice(&head).ok()?;
        let vary = Fields::from_text(&head.vary);
        // Both were part of what named it; what names something else is not looked at.
        if head.key != page.url() || selecting.variant(&vary).is_none_or(|variant| variant != head.variant) {
            return None;
        }
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        for (Text(name), value) in head.headers {
            headers.append(HeaderName::from_str(&name).ok()?, value.to_header()?);
        }
        Some(Self {
            stamp,
            stored,
            fresh_until,
            stale_until: Timestamp::from_millis(head.stale_until),
            error_until: Timestamp::from_millis(head.error_until),
            dies,
            strict: head.strict,
            vary,
            variant: head.variant.into_owned(),
            own_etag: head.own_etag,
            tags,
            status: StatusCode::from_u16(head.status).ok()?,
            headers,
            body,
        })
    }

    /// Whether it may be served without asking the origin.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.fresh_until
    }

    /// Whole seconds since it was rendered: `Age`.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> u64 {
        now.since(self.stored).as_secs()
    }

    /// Whole seconds that it stays fresh, below zero when it is stale: `ttl`.
    #[must_use]
    pub fn ttl(&self, now: Timestamp) -> i64 {
        let seconds = |moment: Timestamp| i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
        seconds(self.fresh_until) - seconds(now)
    }

    /// Lets it be stale from `since` on, as if its time had run out then: a soft purge.
    pub fn expire(&mut self, since: Timestamp) {
        if since < self.fresh_until {
            self.stale_until = since + self.stale_until.since(self.fresh_until);
            self.error_until = since + self.error_until.since(self.fresh_until);
            self.fresh_until = since;
        }
    }
}

impl<'a> Text<'a> {
    fn of(header: &'a HeaderValue) -> Self {
        let text = header.to_str().map(Cow::Borrowed);
        Self(text.unwrap_or_else(|_| header.as_bytes().iter().copied().map(char::from).collect()))
    }

    fn to_header(&self) -> Option<HeaderValue> {
        if self.0.is_ascii() {
            return HeaderValue::from_bytes(self.0.as_bytes()).ok();
        }
        let bytes = self.0.chars().map(u8::try_from).collect::<Result<Vec<_>, _>>().ok()?;
        HeaderValue::from_bytes(&bytes).ok()
    }
}

fn split_line(bytes: &Bytes) -> Option<(Bytes, Bytes)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let mut line = bytes.clone();
    let mut rest = line.split_off(end);
    let _newline = rest.split_to(1);
    Some((line, rest))
}

fn number(word: Option<&str>) -> Option<u64> {
    word?.parse().ok()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{Forward, item_routes::ItemRoutes};

    pub fn page(item: &str) -> Page {
        Page::of_url(&format!("https://shop.example/products/{item}"), &ItemRoutes::default()).unwrap()
    }

    /// Stored at …123 s, fresh for 300 s, then stale for 60 s.
    pub fn entry(value: &[u8], body: Vec<u8>) -> Entry {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_bytes(value).unwrap());
        headers.append("x-a", HeaderValue::from_static("two"));
        let at = |seconds: u64| Timestamp::from_millis(1_795_000_000_123 + seconds * 1000);
        Entry {
            stamp: 1_795_000_000_123_456,
            stored: at(0),
            fresh_until: at(300),
            stale_until: at(360),
            error_until: at(330),
            dies: at(900),
            strict: false,
            vary: Fields::from_text("foo"),
            variant: "foo=1\n".to_owned(),
            own_etag: true,
            tags: vec![Tag::parse("mugs").unwrap(), Tag::parse("sale").unwrap()],
            status: StatusCode::OK,
            headers,
            body: body.into(),
        }
    }

    fn asked(foo: &'static str) -> Selecting {
        let headers = [("foo".parse().unwrap(), HeaderValue::from_static(foo))].into_iter().collect();
        Selecting::of(&headers, &Forward::All, false)
    }

    #[test]
    fn the_scripts_line_comes_first() {
        let value = entry(b"one", b"body".to_vec()).encode(&page("mug")).concat();
        let text = String::from_utf8(value).unwrap();
        let (line, rest) = text.split_once('\n').unwrap();
        assert_eq!(line, "edgefront/2 1795000000123456 1795000000123 1795000300123 1795000900123 mugs,sale");
        assert!(rest.starts_with(r#"{"key":"https://shop.example/products/mug","vary":"foo","#), "{rest}");
        assert!(rest.ends_with("\"headers\":[[\"x-a\",\"one\"],[\"x-a\",\"two\"]]}\nbody"), "{rest}");
    }

    // D12
    #[test]
    fn a_page_is_not_served_for_another_that_shares_its_key() {
        let value = Bytes::from(entry(b"", Vec::new()).encode(&page("Aa")).concat());
        assert!(Entry::decode(&value, &page("Aa"), &asked("1")).is_some());
        assert_eq!(Entry::decode(&value, &page("BB"), &asked("1")), None);
        assert_eq!(Entry::decode(&value, &page("Aa"), &asked("2")), None, "another variant");
        assert_eq!(Entry::decode(&value, &page("Aa"), &Selecting::default()), None);
    }

    #[test]
    fn age_and_ttl_are_whole_seconds() {
        let entry = entry(b"", Vec::new());
        let after = |millis: u64| Timestamp::from_millis(1_795_000_000_123 + millis);
        assert_eq!((entry.age(after(1999)), entry.ttl(after(1999))), (1, 298));
        assert_eq!((entry.age(after(310_000)), entry.ttl(after(310_000))), (310, -10));
        assert!(entry.is_fresh(after(299_999)) && !entry.is_fresh(after(300_000)));
    }

    #[test]
    fn a_softly_purged_page_has_become_stale_then() {
        let mut entry = entry(b"", Vec::new());
        let purged = entry.stored + std::time::Duration::from_secs(10);
        let (now, later) = (purged, entry.fresh_until);
        entry.expire(later);
        assert!(entry.is_fresh(now), "it was to become stale by then anyway");
        entry.expire(purged);
        assert!(!entry.is_fresh(now));
        assert_eq!(entry.stale_until.since(purged).as_secs(), 60);
        assert_eq!(entry.error_until.since(purged).as_secs(), 30);
    }

    proptest! {
        #[test]
        fn any_page_is_read_back_as_it_was(body: Vec<u8>, value in "[\\x20-\\x7e]{0,20}", latin in prop::collection::vec(0x80u8.., 0..9)) {
            let entry = entry(&[value.trim().as_bytes(), &latin].concat(), body);
            let value = Bytes::from(entry.encode(&page("mug")).concat());
            prop_assert_eq!(Entry::decode(&value, &page("mug"), &asked("1")), Some(entry));
        }

        #[test]
        fn whatever_else_is_stored_is_no_page(value: Vec<u8>, cut in 0usize..60) {
            prop_assert_eq!(Entry::decode(&value.into(), &page("mug"), &asked("1")), None);
            let whole = Bytes::from(entry(b"", Vec::new()).encode(&page("mug")).concat());
            prop_assert_eq!(Entry::decode(&whole.slice(..cut), &page("mug"), &asked("1")), None);
        }
    }
}
