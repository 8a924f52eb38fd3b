//! Visitors' own content from the origin. Concurrent pages of the same visitor share one request, and pages in the next
//! two seconds share its content. As with [facts](super::facts), a visitor with the cookie of a change gets only content
//! that the origin sent after the change.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use super::super::own_content::{NotFilled, OwnContent, OwnContentKey, VisitorKey};
use crate::{ports::time::Timestamp, sessions::cookie::CHANGED_FOR};

/// Largest number of remembered requests. The platform may end a request without dropping its guard.
const MAX_PAGES: usize = 1_000;
/// Largest size of all kept content, bytes.
const MAX_BYTES: usize = 4 << 20;

/// Requests under way and kept content, by everything that the origin gets. So no visitor can reach another one's
/// content.
#[derive(Default)]
pub struct OwnPages {
    pages: RefCell<HashMap<OwnContentKey, Rc<OwnPage>>>,
    /// The size of all kept content.
    bytes: Cell<usize>,
}

/// A request for a visitor's own content.
pub struct OwnPage {
    asked: Timestamp,
    until: Cell<Timestamp>,
    result: OnceCell<Result<Rc<OwnContent>, NotFilled>>,
    /// The size of the kept content. 0 while the request is under way.
    bytes: Cell<usize>,
}

impl OwnPage {
    /// The content, once it has arrived.
    pub fn result(&self) -> Option<Result<Rc<OwnContent>, NotFilled>> {
        self.result.get().cloned()
    }

    /// Returns whether the content may still be used or expected.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.asked <= now && now < self.until.get()
    }
}

/// The request of a caller that must send it.
pub struct OwnPageGuard<'a> {
    pages: &'a OwnPages,
    key: OwnContentKey,
    page: Rc<OwnPage>,
}

/// Single flight: the role of a caller in a request.
pub enum Role<'a> {
    /// The caller sends it.
    Send(OwnPageGuard<'a>),
    /// Another caller has sent it.
    Join(Rc<OwnPage>),
}

impl OwnPages {
    /// Joins the request of `key`, or starts it. A request that has not ended at `until` is given up.
    pub fn join(&self, key: OwnContentKey, now: Timestamp, until: Timestamp) -> Role<'_> {
        let found = self.pages.borrow().get(&key).cloned();
        if let Some(page) = found.filter(|page| page.is_valid(now)) {
            return Role::Join(page);
        }
        if self.pages.borrow().len() >= MAX_PAGES {
            self.retain(|_, page| page.is_valid(now));
        }
        if self.pages.borrow().len() >= MAX_PAGES {
            self.retain(|_, page| page.bytes.get() == 0);
        }
        let (until, bytes) = (Cell::new(until), Cell::new(0));
        let page = Rc::new(OwnPage { asked: now, until, result: OnceCell::new(), bytes });
        let replaced = self.pages.borrow_mut().insert(key.clone(), page.clone());
        self.bytes.set(self.bytes.get() - replaced.map_or(0, |page| page.bytes.get()));
        Role::Send(OwnPageGuard { pages: self, key, page })
    }

    /// Drops all content of a visitor who changes something, and lets no later caller join a request under way.
    pub fn forget(&self, visitor: &VisitorKey) {
        if !self.pages.borrow().is_empty() {
            self.retain(|key, _| key.visitor != *visitor);
        }
    }

    fn retain(&self, keeps: impl Fn(&OwnContentKey, &OwnPage) -> bool) {
        let mut pages = self.pages.borrow_mut();
        pages.retain(|key, page| keeps(key, page));
        self.bytes.set(pages.values().map(|page| page.bytes.get()).sum());
    }
}

impl OwnPageGuard<'_> {
    /// Ends the request for all callers that have joined it.
    pub fn finish(self, result: Result<Rc<OwnContent>, NotFilled>) {
        // Never set before: there is one guard.
        let _ = self.page.result.set(result);
    }

    /// Ends the request, and keeps its content for two seconds after the request began.
    pub fn finish_and_keep(self, content: Rc<OwnContent>, now: Timestamp) {
        let elements = content.iter().map(|(selector, elements)| {
            selector.len() + elements.iter().map(|html| html.len() + size_of_val(html)).sum::<usize>()
        });
        let bytes = self.key.len() + elements.sum::<usize>() + size_of::<OwnPage>();
        let pages = self.pages;
        let until = self.page.asked + CHANGED_FOR;
        if self.is_listed() && now < until && bytes <= MAX_BYTES {
            if pages.bytes.get() + bytes > MAX_BYTES {
                pages.retain(|_, page| page.is_valid(now));
            }
            if pages.bytes.get() + bytes > MAX_BYTES {
                pages.retain(|_, page| page.bytes.get() == 0);
            }
            self.page.until.set(until);
            self.page.bytes.set(bytes);
            pages.bytes.set(pages.bytes.get() + bytes);
        }
        self.finish(Ok(content));
    }

    /// Returns whether later callers find the request: the visitor has changed nothing since it began.
    fn is_listed(&self) -> bool {
        self.pages.pages.borrow().get(&self.key).is_some_and(|page| Rc::ptr_eq(page, &self.page))
    }
}

impl Drop for OwnPageGuard<'_> {
    fn drop(&mut self) {
        if self.page.result.get().is_none() {
            self.page.until.set(self.page.asked);
        }
        if self.page.bytes.get() == 0 && self.is_listed() {
            self.pages.pages.borrow_mut().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, Uri, header};

    use super::*;
    use crate::{
        config::{Forward, HeaderRules},
        proxy::own_request,
    };

    fn rules() -> HeaderRules {
        Forward::Only(Vec::new()).into()
    }

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);
    const SECOND: Duration = Duration::from_secs(1);

    fn headers(name: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(name).unwrap())])
    }

    fn key(name: &str) -> OwnContentKey {
        OwnContentKey::of(&own_request(Uri::from_static("https://shop.example/basket"), &headers(name), &rules()))
    }

    fn content(bytes: usize) -> Rc<OwnContent> {
        Rc::new(OwnContent::from([("#mini".to_owned(), vec![Bytes::from(vec![b'x'; bytes])])]))
    }

    /// Joins the request of a visitor, which is given up after 20 seconds.
    fn join<'a>(pages: &'a OwnPages, name: &str, now: Timestamp) -> Role<'a> {
        pages.join(key(name), now, now + 20 * SECOND)
    }

    fn send<'a>(pages: &'a OwnPages, name: &str, now: Timestamp) -> OwnPageGuard<'a> {
        match join(pages, name, now) {
            Role::Send(guard) => guard,
            Role::Join(_) => panic!("{name} joins"),
        }
    }

    fn kept(pages: &OwnPages, name: &str, now: Timestamp) -> Option<Rc<OwnContent>> {
        match join(pages, name, now) {
            Role::Send(_) => None,
            Role::Join(page) => page.result().and_then(Result::ok),
        }
    }

    #[test]
    fn concurrent_callers_share_one_request_and_later_ones_send_their_own() {
        let pages = OwnPages::default();
        let guard = send(&pages, "ada", START);
        let left = send(&pages, "bob", START);
        let Role::Join(of_left) = join(&pages, "bob", START) else { panic!("the second caller joins") };
        assert!(of_left.is_valid(START));
        drop(left);
        assert!(!of_left.is_valid(START), "nobody sends it any more");
        let Role::Join(joined) = join(&pages, "ada", START) else { panic!("the second caller joins") };
        assert!(matches!(join(&pages, "ada", START + 20 * SECOND), Role::Send(_)), "the request was given up");
        assert!(joined.result().is_none());
        guard.finish(Err(NotFilled::NotHtml));
        assert_eq!(joined.result(), Some(Err(NotFilled::NotHtml)));
        assert!(pages.pages.borrow().is_empty());
    }

    #[test]
    fn content_is_kept_for_two_seconds_after_its_request() {
        let pages = OwnPages::default();
        send(&pages, "ada", START).finish_and_keep(content(9), START + SECOND);
        assert_eq!(kept(&pages, "ada", START + SECOND), Some(content(9)));
        assert_eq!(kept(&pages, "bob", START + SECOND), None, "another visitor");
        assert_eq!(
            kept(&pages, "ada", Timestamp::from_millis(START.as_millis() - 1)),
            None,
            "a clock that was set back"
        );
        send(&pages, "ada", START).finish_and_keep(content(9), START + SECOND);
        assert_eq!(kept(&pages, "ada", START + CHANGED_FOR), None);
        assert_eq!(pages.bytes.get(), 0);
        send(&pages, "ada", START).finish_and_keep(content(9), START + CHANGED_FOR);
        assert_eq!(kept(&pages, "ada", START + SECOND), None, "it arrived late");
    }

    #[test]
    fn a_change_drops_content_and_requests_from_before_it() {
        let pages = OwnPages::default();
        send(&pages, "ada", START).finish_and_keep(content(9), START);
        pages.forget(&VisitorKey::of(&headers("ada"), &rules()));
        assert_eq!(pages.bytes.get(), 0);
        let before = send(&pages, "ada", START);
        pages.forget(&VisitorKey::of(&headers("bob"), &rules()));
        assert!(matches!(join(&pages, "ada", START), Role::Join(_)));
        pages.forget(&VisitorKey::of(&headers("ada"), &rules()));
        let _after = send(&pages, "ada", START);
        before.finish_and_keep(content(9), START);
        assert!(
            matches!(join(&pages, "ada", START), Role::Join(_)),
            "the end of the old request does not end the new one"
        );
        assert_eq!(kept(&pages, "ada", START), None, "nobody gets the content from before the change");
        assert_eq!(pages.bytes.get(), 0);
    }

    #[test]
    fn kept_content_is_bounded() {
        let pages = OwnPages::default();
        for number in 0..5_000 {
            let bytes = if number % 100 == 0 { MAX_BYTES / 8 } else { 100 };
            send(&pages, &number.to_string(), START).finish_and_keep(content(bytes), START);
            assert!(pages.bytes.get() <= MAX_BYTES && pages.pages.borrow().len() <= MAX_PAGES);
        }
        assert_eq!(kept(&pages, "4999", START), Some(content(100)));
        send(&pages, "ada", START).finish_and_keep(content(MAX_BYTES), START);
        assert_eq!(kept(&pages, "ada", START), None, "too large");
        let sum: usize = pages.pages.borrow().values().map(|page| page.bytes.get()).sum();
        assert_eq!(pages.bytes.get(), sum);
    }
}
