//! A page as it is stored. [`encoding`] is its form in Redis.

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    content_type::{is_file, is_html},
    holes::{self, Hole},
    policy::{StoredState, VaryFields},
    visitor_cookies::VisitorCookies,
};
use crate::{
    config::rules::CookieKind,
    ports::{
        fetch::Fetch,
        header_names::{DIGESTS, make_private, remove_all},
        held::Content,
        time::Timestamp,
    },
    schema::ids::{ItemId, Tag},
};

pub use self::encoding::encode_names;

mod encoding;

/// A complete response of the origin, with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPage {
    /// The latest purge before the render: its mark, Unix microseconds, 0 for none. A later purge voids the page.
    pub stamp: u64,
    /// The id of the lease to render the page, in hexadecimal; empty without one.
    pub render: String,
    /// Time of the render.
    pub stored: Timestamp,
    /// End of freshness.
    pub fresh_until: Timestamp,
    /// End of `stale-while-revalidate`.
    pub stale_until: Timestamp,
    /// End of `stale-if-error`.
    pub error_until: Timestamp,
    /// Time of deletion.
    pub dies: Timestamp,
    /// See [`Freshness::strict`](super::policy::Freshness::strict).
    pub strict: bool,
    /// The origin declared the page shared: by its headers ([`CacheControl::is_declared_shared`]), or because it marked
    /// the fragments that belong to visitors (ESI). Computed from headers and holes.
    pub is_declared_shared: bool,
    /// The request headers that select the page.
    pub vary: VaryFields,
    /// The name of the variant; empty if the URL has only one.
    pub variant: String,
    /// edgefront generated the `ETag`; the origin does not know it.
    pub has_generated_etag: bool,
    /// The item that the origin named (`Edge-Item`). None: the URL names the item, if there is one.
    pub item: Option<ItemId>,
    /// Names for purges, besides item and URL.
    pub tags: Vec<Tag>,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Content,
    /// The parts of the body that belong to one visitor, in order and without overlap.
    pub holes: Vec<Hole>,
}

impl StoredPage {
    /// Returns whether the origin marked parts of the page that belong to visitors (ESI).
    #[must_use]
    pub fn has_includes(&self) -> bool {
        self.holes.iter().any(|hole| hole.include().is_some())
    }

    /// The render that made the page, as a number: pages with the same number are the same page. 0 without a lease.
    #[must_use]
    pub fn render_number(&self) -> u64 {
        u64::from_str_radix(&self.render, 16).unwrap_or_default()
    }

    /// Returns whether the page may be served without the origin.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.fresh_until
    }

    /// The headers for visitors. A page with holes differs between visitors, so each use must be validated. Browsers do
    /// not keep it if the origin says `no-store`. Its validators differ from the origin's. Otherwise a 304 could
    /// confirm the origin's page from an earlier visit with a session, and that page has no script for holes.
    ///
    /// If the origin sets no `Cache-Control`, browsers validate each time, because a purge cannot reach their copies. The
    /// `ETag` keeps the validation cheap. This default is not stored. Otherwise a 304 would make it look like the
    /// origin's own header.
    #[must_use]
    pub fn visible_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        let default = if headers.contains_key(header::EXPIRES) { "public" } else { "no-cache" };
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(default));
        if !self.holes.is_empty() {
            make_private(&mut headers);
            remove_all(&mut headers, &DIGESTS);
            headers.remove(header::LAST_MODIFIED);
            if let Some(etag) = headers.remove(header::ETAG).and_then(|etag| holes::etag(&etag, &self.holes)) {
                headers.insert(header::ETAG, etag);
            }
        }
        headers
    }

    /// Whole seconds since the render: `Age`.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> u64 {
        now.since(self.stored).as_secs()
    }

    /// Remaining freshness in whole seconds, negative if stale: `ttl` of `Cache-Status`.
    #[must_use]
    pub fn ttl(&self, now: Timestamp) -> i64 {
        let seconds = |moment: Timestamp| i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
        seconds(self.fresh_until) - seconds(now)
    }

    /// The page at the moment `now`, for the reuse rules.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> StoredState {
        StoredState {
            age: now.since(self.stored),
            fresh_for: self.is_fresh(now).then(|| self.fresh_until.since(now)),
            staleness: now.since(self.fresh_until),
            while_revalidate: now < self.stale_until,
            if_error: now < self.error_until,
            strict: self.strict,
        }
    }

    /// Returns whether a visitor with these cookies may get the page. A visitor with a cookie that no rule names gets
    /// it only if the origin declared the page shared. Otherwise, the origin may answer this visitor differently. The
    /// same holds for a request that asks for a part of the page, or accepts no HTML. A request that accepts no HTML never gets
    /// an HTML page that varies on `Accept`: `HEADERS_NORMALIZED` may have removed the client's own types.
    ///
    /// A visitor with a cookie of holes gets no page without holes, except files that are declared shared and do not vary on cookies.
    #[must_use]
    pub fn may_be_served_to(&self, cookies: &VisitorCookies) -> bool {
        let is_shared_file = || self.is_declared_shared && is_file(&self.headers) && !self.vary.contains("cookie");
        if cookies.in_holes && self.holes.is_empty() && !is_shared_file() {
            return false;
        }
        match cookies.strictest {
            CookieKind::Personal => false,
            CookieKind::Unknown => self.is_declared_shared,
            CookieKind::Ignored | CookieKind::Varied | CookieKind::Hole => {
                let is_other_type = cookies.refuses_html && is_html(&self.headers);
                !(cookies.asks_for_part || is_other_type)
                    || self.is_declared_shared && !(is_other_type && self.vary.contains("accept"))
            }
        }
    }

    /// Moves the body into the platform's memory, before the page is sent or kept.
    pub fn hold(&mut self, fetch: &dyn Fetch) {
        if let Content::Here(bytes) = &mut self.body
            && !bytes.is_empty()
        {
            self.body = fetch.hold(std::mem::take(bytes));
        }
    }

    /// Makes the page stale from `since` on: a soft purge.
    pub fn expire(&mut self, since: Timestamp) {
        if since < self.fresh_until {
            self.stale_until = since + self.stale_until.since(self.fresh_until);
            self.error_until = since + self.error_until.since(self.fresh_until);
            self.fresh_until = since;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Stored at …123 s, fresh for 300 s, then stale for 60 s.
    pub fn entry(value: &[u8], body: Vec<u8>) -> StoredPage {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_bytes(value).unwrap());
        headers.append("x-a", HeaderValue::from_static("two"));
        let at = |seconds: u64| Timestamp::from_millis(1_795_000_000_123 + seconds * 1000);
        StoredPage {
            stamp: 1_795_000_000_123_456,
            render: "0123456789abcdef".to_owned(),
            stored: at(0),
            fresh_until: at(300),
            stale_until: at(360),
            error_until: at(330),
            dies: at(900),
            strict: false,
            is_declared_shared: false,
            vary: VaryFields::from_text("foo"),
            variant: "foo=1\n".to_owned(),
            has_generated_etag: true,
            item: None,
            tags: vec![Tag::parse("mugs").unwrap(), Tag::parse("sale").unwrap()],
            status: StatusCode::OK,
            headers,
            body: body.into(),
            holes: Vec::new(),
        }
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
    fn a_soft_purge_makes_the_page_stale() {
        let mut entry = entry(b"", Vec::new());
        let purged = entry.stored + std::time::Duration::from_secs(10);
        let (now, afterwards) = (purged, entry.fresh_until);
        entry.expire(afterwards);
        assert!(entry.is_fresh(now), "its freshness ends then anyway");
        entry.expire(purged);
        assert!(!entry.is_fresh(now));
        assert_eq!(entry.stale_until.since(purged).as_secs(), 60);
        assert_eq!(entry.error_until.since(purged).as_secs(), 30);
    }
}
