//! Requests for a visitor's own content that are under way. Concurrent pages of the same visitor share one request.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use super::super::own_content::{NotFilled, OwnContent};
use crate::ports::time::Timestamp;

/// Largest number of remembered requests. The platform may end a request without dropping its guard.
const MAX_UNDER_WAY: usize = 1_000;

/// The requests under way, by everything that the origin gets. So no visitor can reach another one's content.
#[derive(Default)]
pub struct OwnPages {
    under_way: RefCell<HashMap<Vec<u8>, Rc<OwnPage>>>,
}

/// A request for a visitor's own content.
pub struct OwnPage {
    until: Timestamp,
    result: OnceCell<Result<Rc<OwnContent>, NotFilled>>,
}

impl OwnPage {
    /// The content, once it has arrived.
    pub fn result(&self) -> Option<Result<Rc<OwnContent>, NotFilled>> {
        self.result.get().cloned()
    }
}

/// The request of a caller that must send it.
pub struct OwnPageGuard<'a> {
    pages: &'a OwnPages,
    key: Vec<u8>,
    page: Rc<OwnPage>,
}

/// The part of a caller in a request.
pub enum Role<'a> {
    /// The caller sends it.
    Send(OwnPageGuard<'a>),
    /// Another caller has sent it.
    Join(Rc<OwnPage>),
}

impl OwnPages {
    /// Joins the request that sends `key`, or starts it. A request that has not ended at `until` is given up.
    pub fn join(&self, key: Vec<u8>, now: Timestamp, until: Timestamp) -> Role<'_> {
        let mut under_way = self.under_way.borrow_mut();
        if let Some(page) = under_way.get(&key).filter(|page| now < page.until) {
            return Role::Join(page.clone());
        }
        if under_way.len() >= MAX_UNDER_WAY {
            under_way.retain(|_, page| now < page.until);
        }
        let page = Rc::new(OwnPage { until, result: OnceCell::new() });
        under_way.insert(key.clone(), page.clone());
        Role::Send(OwnPageGuard { pages: self, key, page })
    }

    /// Lets no later caller join: the visitor changes something.
    pub fn forget(&self, key: &[u8]) {
        self.under_way.borrow_mut().remove(key);
    }

    /// Returns whether no request is under way.
    pub fn is_empty(&self) -> bool {
        self.under_way.borrow().is_empty()
    }
}

impl OwnPageGuard<'_> {
    /// Ends the request for all callers that have joined it.
    pub fn finish(self, result: Result<Rc<OwnContent>, NotFilled>) {
        // Never set before: there is one guard.
        let _ = self.page.result.set(result);
    }
}

impl Drop for OwnPageGuard<'_> {
    fn drop(&mut self) {
        let mut under_way = self.pages.under_way.borrow_mut();
        if under_way.get(&self.key).is_some_and(|page| Rc::ptr_eq(page, &self.page)) {
            under_way.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    #[test]
    fn concurrent_callers_share_one_request_and_later_ones_send_their_own() {
        let pages = OwnPages::default();
        let until = START + Duration::from_secs(2);
        let join = |key: &str, now| pages.join(key.as_bytes().to_vec(), now, until);
        let Role::Send(guard) = join("ada", START) else { panic!("the first caller sends") };
        assert!(matches!(join("bob", START), Role::Send(_)));
        let Role::Join(joined) = join("ada", START) else { panic!("the second caller joins") };
        assert!(matches!(join("ada", until), Role::Send(_)), "the request was given up");
        assert!(joined.result().is_none());
        guard.finish(Err(NotFilled::NotHtml));
        assert_eq!(joined.result(), Some(Err(NotFilled::NotHtml)));
        assert!(pages.is_empty());
    }

    #[test]
    fn nobody_joins_a_request_from_before_a_change() {
        let pages = OwnPages::default();
        let join = || pages.join(b"ada".to_vec(), START, START + Duration::from_secs(2));
        let Role::Send(before) = join() else { panic!("the first caller sends") };
        pages.forget(b"ada");
        let Role::Send(_after) = join() else { panic!("the request before the change is not joined") };
        drop(before);
        assert!(matches!(join(), Role::Join(_)), "the end of the old request does not end the new one");
    }
}
