//! Visitors' content for holes, from the origin. Concurrent pages of the same visitor share one request, and pages in the next
//! two seconds share its content. As with [facts](super::facts), a visitor with the cookie of a change gets only content
//! that the origin sent after the change.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use super::super::holes::visitor_content::{NotFilled, VisitorContent, VisitorContentKey, VisitorKey};
use crate::{ports::time::Timestamp, sessions::cookie::CHANGED_FOR};

/// Largest number of remembered requests. The platform may end a request without dropping its guard.
const MAX_REQUESTS: usize = 1_000;
/// Largest size of all kept content, bytes.
const MAX_BYTES: usize = 4 << 20;

/// Kept content and requests under way. The key is everything that the origin gets, so no visitor can reach another one's
/// content.
#[derive(Default)]
pub struct VisitorContents {
    requests: RefCell<HashMap<VisitorContentKey, Rc<ContentRequest>>>,
    /// The size of all kept content.
    bytes: Cell<usize>,
}

/// A request for a visitor's content.
pub struct ContentRequest {
    asked: Timestamp,
    until: Cell<Timestamp>,
    result: OnceCell<Result<Rc<VisitorContent>, NotFilled>>,
    /// The size of the kept content. 0 while the request is under way.
    bytes: Cell<usize>,
}

impl ContentRequest {
    /// The content, once it has arrived.
    pub fn result(&self) -> Option<Result<Rc<VisitorContent>, NotFilled>> {
        self.result.get().cloned()
    }

    /// Returns whether the content may still be used or expected.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.asked <= now && now < self.until.get()
    }
}

/// The request of a caller that must send it.
pub struct ContentGuard<'a> {
    contents: &'a VisitorContents,
    key: VisitorContentKey,
    request: Rc<ContentRequest>,
}

/// Single flight: the role of a caller in a request.
pub enum Role<'a> {
    /// The caller sends it.
    Send(ContentGuard<'a>),
    /// Another caller has sent it.
    Join(Rc<ContentRequest>),
}

impl VisitorContents {
    /// Joins the request of `key`, or starts it. A request that has not ended at `until` is given up. A request that began two
    /// seconds ago gets no further callers: its content may be from before a change that this isolate does not know.
    pub fn join(&self, key: VisitorContentKey, now: Timestamp, until: Timestamp) -> Role<'_> {
        let found = self.requests.borrow().get(&key).cloned();
        if let Some(request) = found.filter(|request| request.is_valid(now) && now < request.asked + CHANGED_FOR) {
            return Role::Join(request);
        }
        if self.requests.borrow().len() >= MAX_REQUESTS {
            self.retain(|_, request| request.is_valid(now));
        }
        if self.requests.borrow().len() >= MAX_REQUESTS {
            self.retain(|_, request| request.bytes.get() == 0);
        }
        let (until, bytes) = (Cell::new(until), Cell::new(0));
        let request = Rc::new(ContentRequest { asked: now, until, result: OnceCell::new(), bytes });
        let replaced = self.requests.borrow_mut().insert(key.clone(), request.clone());
        self.bytes.set(self.bytes.get() - replaced.map_or(0, |request| request.bytes.get()));
        Role::Send(ContentGuard { contents: self, key, request })
    }

    /// Drops the content of a visitor who changes something. Later callers do not join requests that began before the change.
    pub fn forget(&self, visitor: &VisitorKey) {
        if !self.requests.borrow().is_empty() {
            self.retain(|key, _| key.visitor != *visitor);
        }
    }

    fn retain(&self, keeps: impl Fn(&VisitorContentKey, &ContentRequest) -> bool) {
        let mut requests = self.requests.borrow_mut();
        requests.retain(|key, request| keeps(key, request));
        self.bytes.set(requests.values().map(|request| request.bytes.get()).sum());
    }
}

impl ContentGuard<'_> {
    /// Ends the request for all callers that have joined it.
    pub fn finish(self, result: Result<Rc<VisitorContent>, NotFilled>) {
        // Set only here: each request has one guard.
        let _ = self.request.result.set(result);
    }

    /// Ends the request, and keeps its content for two seconds after the request began.
    pub fn finish_and_keep(self, content: Rc<VisitorContent>, now: Timestamp) {
        let elements = content.iter().map(|(selector, elements)| {
            selector.len() + elements.iter().map(|html| html.len() + size_of_val(html)).sum::<usize>()
        });
        let bytes = self.key.len() + elements.sum::<usize>() + size_of::<ContentRequest>();
        let contents = self.contents;
        let until = self.request.asked + CHANGED_FOR;
        if self.is_listed() && now < until && bytes <= MAX_BYTES {
            if contents.bytes.get() + bytes > MAX_BYTES {
                contents.retain(|_, request| request.is_valid(now));
            }
            if contents.bytes.get() + bytes > MAX_BYTES {
                contents.retain(|_, request| request.bytes.get() == 0);
            }
            self.request.until.set(until);
            self.request.bytes.set(bytes);
            contents.bytes.set(contents.bytes.get() + bytes);
        }
        self.finish(Ok(content));
    }

    /// Returns whether later callers find the request: the visitor has changed nothing since it began.
    fn is_listed(&self) -> bool {
        self.contents.requests.borrow().get(&self.key).is_some_and(|request| Rc::ptr_eq(request, &self.request))
    }
}

impl Drop for ContentGuard<'_> {
    fn drop(&mut self) {
        if self.request.result.get().is_none() {
            self.request.until.set(self.request.asked);
        }
        if self.request.bytes.get() == 0 && self.is_listed() {
            self.contents.requests.borrow_mut().remove(&self.key);
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
        proxy::part_request,
    };

    fn rules() -> HeaderRules {
        Forward::Only(Vec::new()).into()
    }

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);
    const SECOND: Duration = Duration::from_secs(1);

    fn headers(name: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(name).unwrap())])
    }

    fn key(name: &str) -> VisitorContentKey {
        VisitorContentKey::of(&part_request(Uri::from_static("https://shop.example/basket"), &headers(name), &rules()))
    }

    fn content(bytes: usize) -> Rc<VisitorContent> {
        Rc::new(VisitorContent::from([("#mini".to_owned(), vec![Bytes::from(vec![b'x'; bytes])])]))
    }

    /// Joins the request of a visitor, which is given up after 20 seconds.
    fn join<'a>(contents: &'a VisitorContents, name: &str, now: Timestamp) -> Role<'a> {
        contents.join(key(name), now, now + 20 * SECOND)
    }

    fn send<'a>(contents: &'a VisitorContents, name: &str, now: Timestamp) -> ContentGuard<'a> {
        match join(contents, name, now) {
            Role::Send(guard) => guard,
            Role::Join(_) => panic!("{name} joins"),
        }
    }

    fn kept(contents: &VisitorContents, name: &str, now: Timestamp) -> Option<Rc<VisitorContent>> {
        match join(contents, name, now) {
            Role::Send(_) => None,
            Role::Join(request) => request.result().and_then(Result::ok),
        }
    }

    #[test]
    fn concurrent_callers_share_one_request_and_later_ones_send_their_own() {
        let contents = VisitorContents::default();
        let guard = send(&contents, "ada", START);
        let left = send(&contents, "bob", START);
        let Role::Join(of_left) = join(&contents, "bob", START) else { panic!("the second caller joins") };
        assert!(of_left.is_valid(START));
        drop(left);
        assert!(!of_left.is_valid(START), "nobody sends it any more");
        let Role::Join(joined) = join(&contents, "ada", START) else { panic!("the second caller joins") };
        assert!(matches!(join(&contents, "ada", START + 20 * SECOND), Role::Send(_)), "the request was given up");
        assert!(joined.result().is_none());
        guard.finish(Err(NotFilled::NotHtml));
        assert_eq!(joined.result(), Some(Err(NotFilled::NotHtml)));
        assert!(contents.requests.borrow().is_empty());
    }

    #[test]
    fn content_is_kept_for_two_seconds_after_its_request() {
        let contents = VisitorContents::default();
        send(&contents, "ada", START).finish_and_keep(content(9), START + SECOND);
        assert_eq!(kept(&contents, "ada", START + SECOND), Some(content(9)));
        assert_eq!(kept(&contents, "bob", START + SECOND), None, "another visitor");
        assert_eq!(
            kept(&contents, "ada", Timestamp::from_millis(START.as_millis() - 1)),
            None,
            "a clock that was set back"
        );
        send(&contents, "ada", START).finish_and_keep(content(9), START + SECOND);
        assert_eq!(kept(&contents, "ada", START + CHANGED_FOR), None);
        assert_eq!(contents.bytes.get(), 0);
        send(&contents, "ada", START).finish_and_keep(content(9), START + CHANGED_FOR);
        assert_eq!(kept(&contents, "ada", START + SECOND), None, "it arrived late");
    }

    #[test]
    fn a_late_request_is_joined_for_two_seconds() {
        let contents = VisitorContents::default();
        let late = send(&contents, "ada", START);
        let almost = Timestamp::from_millis((START + CHANGED_FOR).as_millis() - 1);
        assert!(matches!(join(&contents, "ada", almost), Role::Join(_)));
        let guard = send(&contents, "ada", START + CHANGED_FOR);
        late.finish_and_keep(content(1), START + 2 * SECOND);
        guard.finish_and_keep(content(2), START + 3 * SECOND);
        assert_eq!(kept(&contents, "ada", START + 3 * SECOND), Some(content(2)));
    }

    #[test]
    fn a_change_drops_content_and_requests_from_before_it() {
        let contents = VisitorContents::default();
        send(&contents, "ada", START).finish_and_keep(content(9), START);
        contents.forget(&VisitorKey::of(&headers("ada"), &rules()));
        assert_eq!(contents.bytes.get(), 0);
        let before = send(&contents, "ada", START);
        contents.forget(&VisitorKey::of(&headers("bob"), &rules()));
        assert!(matches!(join(&contents, "ada", START), Role::Join(_)));
        contents.forget(&VisitorKey::of(&headers("ada"), &rules()));
        let _after = send(&contents, "ada", START);
        before.finish_and_keep(content(9), START);
        assert!(
            matches!(join(&contents, "ada", START), Role::Join(_)),
            "the end of the old request does not end the new one"
        );
        assert_eq!(kept(&contents, "ada", START), None, "nobody gets the content from before the change");
        assert_eq!(contents.bytes.get(), 0);
    }

    #[test]
    fn kept_content_is_bounded() {
        let contents = VisitorContents::default();
        for number in 0..5_000 {
            let bytes = if number % 100 == 0 { MAX_BYTES / 8 } else { 100 };
            send(&contents, &number.to_string(), START).finish_and_keep(content(bytes), START);
            assert!(contents.bytes.get() <= MAX_BYTES && contents.requests.borrow().len() <= MAX_REQUESTS);
        }
        assert_eq!(kept(&contents, "4999", START), Some(content(100)));
        send(&contents, "ada", START).finish_and_keep(content(MAX_BYTES), START);
        assert_eq!(kept(&contents, "ada", START), None, "too large");
        let sum: usize = contents.requests.borrow().values().map(|request| request.bytes.get()).sum();
        assert_eq!(contents.bytes.get(), sum);
    }
}
