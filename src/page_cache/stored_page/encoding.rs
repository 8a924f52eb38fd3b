//! The format of a stored page in Redis. Decoding fails for a hash collision, another format version, and the bare body
//! that the book's code stores.
//!
//! Three parts: a line for the scripts, `edgefront/3 <stamp> <stored> <fresh until> <dies> <render> <tag,tag,…>`; a
//! line of JSON with key, variant, status and headers; the body as raw bytes. If the origin named the page's item,
//! `, <item>` follows the tags.

use std::{borrow::Cow, str::FromStr};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use super::StoredPage;
use crate::{
    page_cache::{
        holes::{self, Hole},
        key::PageKey,
        policy::{VaryFields, freshness::is_declared_shared},
        selecting::SelectingHeaders,
    },
    ports::{held::Content, time::Timestamp},
    schema::ids::{ItemId, Tag},
};

#[derive(Serialize, Deserialize)]
struct Head<'a> {
    key: Cow<'a, str>,
    vary: Cow<'a, str>,
    variant: Cow<'a, str>,
    stale_until: u64,
    error_until: u64,
    strict: bool,
    #[serde(rename = "own_etag")]
    has_generated_etag: bool,
    status: u16,
    /// Each byte of a value is one character (ISO 8859-1), so that JSON carries every byte.
    #[serde(borrow)]
    headers: Vec<(Text<'a>, Text<'a>)>,
    #[serde(default, skip_serializing_if = "<[Hole]>::is_empty")]
    holes: Cow<'a, [Hole]>,
}

/// Text that is borrowed from the input where it has no escape.
#[derive(Serialize, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

const FORMAT: &str = "edgefront/3";

impl StoredPage {
    /// The value for Redis, in two pieces; the second one is the body.
    #[must_use]
    pub fn encode(&self, key: &PageKey) -> [Bytes; 2] {
        let names = encode_names(&self.tags, self.item.as_ref());
        let head = Head {
            key: key.url().into(),
            vary: self.vary.to_text().into(),
            variant: self.variant.as_str().into(),
            stale_until: self.stale_until.as_millis(),
            error_until: self.error_until.as_millis(),
            strict: self.strict,
            has_generated_etag: self.has_generated_etag,
            status: self.status.as_u16(),
            headers: self.headers.iter().map(|(name, value)| (Text(name.as_str().into()), Text::of(value))).collect(),
            holes: Cow::Borrowed(&self.holes),
        };
        let (stamp, stored) = (self.stamp, self.stored.as_millis());
        let (fresh_until, dies) = (self.fresh_until.as_millis(), self.dies.as_millis());
        let mut value =
            format!("{FORMAT} {stamp} {stored} {fresh_until} {dies} {} {names}\n", self.render).into_bytes();
        // Serializing strings and numbers cannot fail.
        let _ = serde_json::to_writer(&mut value, &head);
        value.push(b'\n');
        [value.into(), self.body.read()]
    }

    /// Decodes a stored value; None if it is not the page of `key` for a request with the headers `selecting`.
    #[must_use]
    pub fn decode(value: &Bytes, key: &PageKey, selecting: &SelectingHeaders) -> Option<Self> {
        Self::decode_around(value, None, key, selecting)
    }

    /// Does the same as [`StoredPage::decode`]. With `held_body`, the value has no body, and `held_body` is the body.
    #[must_use]
    pub fn decode_around(
        value: &Bytes,
        held_body: Option<Content>,
        key: &PageKey,
        selecting: &SelectingHeaders,
    ) -> Option<Self> {
        let (line, rest) = split_line(value)?;
        let (head, body) = split_line(&rest)?;
        let body = held_body.unwrap_or_else(|| body.into());
        let mut words = std::str::from_utf8(&line).ok()?.split(' ');
        if words.next() != Some(FORMAT) {
            return None;
        }
        let stamp = number(words.next())?;
        let mut moment = || Some(Timestamp::from_millis(number(words.next())?));
        let (stored, fresh_until, dies) = (moment()?, moment()?, moment()?);
        let render = words.next()?.to_owned();
        let tags = words.next()?.split(',').filter_map(|tag| Tag::parse(tag).ok()).collect();
        let item = words.next().and_then(|item| ItemId::parse(item).ok());
        let head: Head = serde_json::from_slice(&head).ok()?;
        let vary = VaryFields::from_text(&head.vary);
        // Key and variant are part of the name; a mismatch is a collision.
        if head.key != key.url() || selecting.variant(&vary).is_none_or(|variant| variant != head.variant) {
            return None;
        }
        let holes = head.holes.into_owned();
        if !holes::are_in_order(&holes, body.len()) {
            return None;
        }
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        for (Text(name), value) in head.headers {
            headers.append(HeaderName::from_str(&name).ok()?, value.to_header()?);
        }
        let mut page = Self {
            stamp,
            render,
            stored,
            fresh_until,
            stale_until: Timestamp::from_millis(head.stale_until),
            error_until: Timestamp::from_millis(head.error_until),
            dies,
            strict: head.strict,
            is_declared_shared: is_declared_shared(&headers, stored.into(), key.is_at_shared_path()),
            vary,
            variant: head.variant.into_owned(),
            has_generated_etag: head.has_generated_etag,
            item,
            tags,
            status: StatusCode::from_u16(head.status).ok()?,
            headers,
            body,
            holes,
        };
        page.is_declared_shared |= page.has_includes();
        Some(page)
    }
}

/// The names of a page for the scripts' purges: `tag,tag,…`, and behind them `, item`. No tag begins with a space.
pub fn encode_names(tags: &[Tag], item: Option<&ItemId>) -> String {
    let mut names = tags.iter().map(Tag::as_str).collect::<Vec<_>>().join(",");
    if let Some(item) = item {
        names.push_str(", ");
        names.push_str(item.as_str());
    }
    names
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        config::{Forward, rules::UrlRules},
        page_cache::{stored_page::tests::entry, visitor_cookies::VisitorCookies},
    };

    fn page(item: &str) -> PageKey {
        PageKey::of_url(&format!("https://shop.example/products/{item}"), &UrlRules::default()).unwrap()
    }

    fn asked(foo: &'static str) -> SelectingHeaders {
        let headers = [("foo".parse().unwrap(), HeaderValue::from_static(foo))].into_iter().collect();
        SelectingHeaders::of(&headers, &Forward::All.into(), &VisitorCookies::default())
    }

    #[test]
    fn the_line_for_the_scripts_comes_first() {
        let value = entry(b"one", b"body".to_vec()).encode(&page("mug")).concat();
        let text = String::from_utf8(value).unwrap();
        let (line, rest) = text.split_once('\n').unwrap();
        assert_eq!(
            line,
            "edgefront/3 1795000000123456 1795000000123 1795000300123 1795000900123 0123456789abcdef mugs,sale"
        );
        assert!(rest.starts_with(r#"{"key":"https://shop.example/products/mug","vary":"foo","#), "{rest}");
        assert!(rest.ends_with("\"headers\":[[\"x-a\",\"one\"],[\"x-a\",\"two\"]]}\nbody"), "{rest}");
    }

    #[test]
    fn the_named_item_follows_the_tags() {
        let item = Some(ItemId::parse("enamel-mug").unwrap());
        for (tags, names) in [(entry(b"", Vec::new()).tags, "mugs,sale, enamel-mug"), (Vec::new(), ", enamel-mug")] {
            let entry = StoredPage { item: item.clone(), tags, ..entry(b"", Vec::new()) };
            let value = Bytes::from(entry.encode(&page("mug")).concat());
            let line = String::from_utf8_lossy(&value).lines().next().unwrap().to_owned();
            assert!(line.ends_with(&format!(" 0123456789abcdef {names}")), "{line}");
            assert_eq!(StoredPage::decode(&value, &page("mug"), &asked("1")), Some(entry));
        }
    }

    #[test]
    fn a_page_is_not_served_for_another_page_with_its_hash() {
        let value = Bytes::from(entry(b"", Vec::new()).encode(&page("Aa")).concat());
        assert!(StoredPage::decode(&value, &page("Aa"), &asked("1")).is_some());
        assert_eq!(StoredPage::decode(&value, &page("BB"), &asked("1")), None);
        assert_eq!(StoredPage::decode(&value, &page("Aa"), &asked("2")), None, "another variant");
        assert_eq!(StoredPage::decode(&value, &page("Aa"), &SelectingHeaders::default()), None);
    }

    proptest! {
        #[test]
        fn any_page_survives_encoding(body: Vec<u8>, value in "[\\x20-\\x7e]{0,20}", latin in prop::collection::vec(0x80u8.., 0..9)) {
            let entry = entry(&[value.trim().as_bytes(), &latin].concat(), body);
            let value = Bytes::from(entry.encode(&page("mug")).concat());
            prop_assert_eq!(StoredPage::decode(&value, &page("mug"), &asked("1")), Some(entry));
        }

        #[test]
        fn any_other_value_is_no_page(value: Vec<u8>, cut in 0usize..60) {
            prop_assert_eq!(StoredPage::decode(&value.into(), &page("mug"), &asked("1")), None);
            let whole = Bytes::from(entry(b"", Vec::new()).encode(&page("mug")).concat());
            prop_assert_eq!(StoredPage::decode(&whole.slice(..cut), &page("mug"), &asked("1")), None);
        }
    }
}
