//! A stored page as the bytes under `cache:{hash}`, and back. What does not read back as the page that was asked for is no
//! page: not a collision's, not another version's, not the bare body that the book stores there.
//!
//! Three parts: a line that the scripts read, `edgefront/1 <stamp> <stored> <fresh until> <tag,tag,…>`; a line of JSON with
//! key, status and headers; the body, any bytes.

use std::{borrow::Cow, str::FromStr};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use super::key::Page;
use crate::{ids::Tag, time::Timestamp};

/// A page as the origin sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Redis' clock before the page was rendered, Unix microseconds: a purge since then makes it void.
    pub stamp: u64,
    /// When it was rendered.
    pub stored: Timestamp,
    /// Until when it is served without asking the origin.
    pub fresh_until: Timestamp,
    /// What a purge may name it by, besides its item and its URL.
    pub tags: Vec<Tag>,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Serialize, Deserialize)]
struct Head<'a> {
    key: Cow<'a, str>,
    status: u16,
    /// Each byte of a value is one character (ISO 8859-1), so that JSON carries any of them.
    headers: Vec<(Cow<'a, str>, String)>,
}

const FORMAT: &str = "edgefront/1";

impl Entry {
    /// The value to store.
    #[must_use]
    pub fn encode(&self, page: &Page) -> Vec<u8> {
        let tags = self.tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(",");
        let Self { stamp, stored, fresh_until, .. } = self;
        let header = |(name, value): (&'_ HeaderName, &HeaderValue)| {
            (Cow::Owned(name.as_str().to_owned()), value.as_bytes().iter().copied().map(char::from).collect())
        };
        let head = Head {
            key: page.url().into(),
            status: self.status.as_u16(),
            headers: self.headers.iter().map(header).collect(),
        };
        // Strings and a number: writing them as JSON can not fail.
        let head = serde_json::to_string(&head).unwrap_or_default();
        let (stored, fresh_until) = (stored.as_millis(), fresh_until.as_millis());
        let mut value = format!("{FORMAT} {stamp} {stored} {fresh_until} {tags}\n{head}\n").into_bytes();
        value.extend_from_slice(&self.body);
        value
    }

    /// Reads a stored value; None if it is not `page`.
    #[must_use]
    pub fn decode(value: &Bytes, page: &Page) -> Option<Self> {
        let (line, rest) = split_line(value)?;
        let (head, body) = split_line(&rest)?;
        let mut words = std::str::from_utf8(&line).ok()?.split(' ');
        if words.next() != Some(FORMAT) {
            return None;
        }
        let stamp = number(words.next())?;
        let stored = Timestamp::from_millis(number(words.next())?);
        let fresh_until = Timestamp::from_millis(number(words.next())?);
        let tags = words.next()?.split(',').filter_map(|tag| Tag::parse(tag).ok()).collect();
        let head: Head = serde_json::from_slice(&head).ok()?;
        if head.key != page.url() {
            return None;
        }
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        for (name, value) in head.headers {
            let bytes = value.chars().map(u8::try_from).collect::<Result<Vec<_>, _>>().ok()?;
            headers.append(HeaderName::from_str(&name).ok()?, HeaderValue::from_bytes(&bytes).ok()?);
        }
        let status = StatusCode::from_u16(head.status).ok()?;
        Some(Self { stamp, stored, fresh_until, tags, status, headers, body })
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::item_routes::ItemRoutes;

    fn page(item: &str) -> Page {
        Page::of_url(&format!("https://shop.example/products/{item}"), &ItemRoutes::default()).unwrap()
    }

    fn entry(value: &[u8], body: Vec<u8>) -> Entry {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_bytes(value).unwrap());
        headers.append("x-a", HeaderValue::from_static("two"));
        Entry {
            stamp: 1_795_000_000_123_456,
            stored: Timestamp::from_millis(1_795_000_000_123),
            fresh_until: Timestamp::from_millis(1_795_000_300_123),
            tags: vec![Tag::parse("mugs").unwrap(), Tag::parse("sale").unwrap()],
            status: StatusCode::OK,
            headers,
            body: body.into(),
        }
    }

    #[test]
    fn the_scripts_line_comes_first() {
        let value = entry(b"one", b"body".to_vec()).encode(&page("mug"));
        let head =
            r#"{"key":"https://shop.example/products/mug","status":200,"headers":[["x-a","one"],["x-a","two"]]}"#;
        let line = "edgefront/1 1795000000123456 1795000000123 1795000300123 mugs,sale";
        assert_eq!(String::from_utf8(value).unwrap(), format!("{line}\n{head}\nbody"));
    }

    // D12
    #[test]
    fn a_page_is_not_served_for_another_that_shares_its_key() {
        let value = Bytes::from(entry(b"", Vec::new()).encode(&page("Aa")));
        assert!(Entry::decode(&value, &page("Aa")).is_some());
        assert_eq!(Entry::decode(&value, &page("BB")), None);
    }

    #[test]
    fn age_and_ttl_are_whole_seconds() {
        let entry = entry(b"", Vec::new());
        let after = |millis: u64| Timestamp::from_millis(1_795_000_000_123 + millis);
        assert_eq!((entry.age(after(1999)), entry.ttl(after(1999))), (1, 298));
        assert_eq!((entry.age(after(310_000)), entry.ttl(after(310_000))), (310, -10));
        assert!(entry.is_fresh(after(299_999)) && !entry.is_fresh(after(300_000)));
    }

    proptest! {
        #[test]
        fn any_page_is_read_back_as_it_was(body: Vec<u8>, value in "[\\x20-\\x7e]{0,20}", latin in prop::collection::vec(0x80u8.., 0..9)) {
            let entry = entry(&[value.trim().as_bytes(), &latin].concat(), body);
            let value = Bytes::from(entry.encode(&page("mug")));
            prop_assert_eq!(Entry::decode(&value, &page("mug")), Some(entry));
        }

        #[test]
        fn whatever_else_is_stored_is_no_page(value: Vec<u8>, cut in 0usize..60) {
            prop_assert_eq!(Entry::decode(&value.into(), &page("mug")), None);
            let whole = Bytes::from(entry(b"", Vec::new()).encode(&page("mug")));
            prop_assert_eq!(Entry::decode(&whole.slice(..cut), &page("mug")), None);
        }
    }
}
