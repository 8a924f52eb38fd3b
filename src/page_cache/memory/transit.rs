//! Bounds the bytes of pages that pass through this program at the same time: bodies that arrive from the origin, and
//! pages on their way to Redis. An isolate has 128 MB for everything, and a slow Redis or a crowd of visitors must not
//! fill it.

use std::{cell::RefCell, pin::Pin, rc::Rc};

use crate::ports::{
    fetch::{Body, BodyError, Collected, InTime},
    time::Timestamp,
};

/// Largest sum of all pages in transit, bytes. The memory of wasm grows to about three times as much: a body is copied
/// while it grows, and encoded for Redis.
const LIMIT: usize = 16 << 20;
/// The size that counts for a body of unknown length until it turns out to be longer, bytes.
const UNKNOWN: usize = 128 << 10;
/// The size that counts at least for a page, bytes: its headers, and the state of its render.
const LEAST: usize = 8 << 10;

/// See the [module](self).
#[derive(Default)]
pub struct Transit(Rc<RefCell<Passing>>);

#[derive(Default)]
struct Passing {
    bytes: usize,
    pages: Vec<Page>,
}

/// The size that counts for a page, and until when it counts at most: the platform may end a request without dropping
/// its guard.
#[derive(Clone, Copy, PartialEq)]
struct Page {
    bytes: usize,
    until: Timestamp,
}

impl Transit {
    /// Admits a page of `bytes`, if its length is known, until the guard is dropped, and at most until `until`. None if
    /// the other pages leave no room for it.
    pub fn admit(&self, bytes: Option<usize>, now: Timestamp, until: Timestamp) -> Option<Passage> {
        let page = Page { bytes: bytes.unwrap_or(UNKNOWN).max(LEAST), until };
        let mut passing = self.0.borrow_mut();
        if passing.bytes + page.bytes > LIMIT {
            passing.pages.retain(|page| now < page.until);
            passing.bytes = passing.pages.iter().map(|page| page.bytes).sum();
        }
        // A single page may be larger than the limit.
        if passing.bytes + page.bytes > LIMIT && passing.bytes > 0 {
            return None;
        }
        passing.bytes += page.bytes;
        passing.pages.push(page);
        Some(Passage { page, is_known: bytes.is_some(), passing: self.0.clone() })
    }
}

/// A page in transit.
pub struct Passage {
    page: Page,
    /// The page was admitted with its length.
    is_known: bool,
    passing: Rc<RefCell<Passing>>,
}

/// The result of [`Passage::collect`].
pub enum Arrival {
    InTime(InTime),
    /// The other pages leave no room for the body, which is still complete.
    NoRoom(Body),
}

impl Passage {
    /// As [`Body::collect_within`]. If the page was admitted without its length, a body that is long or slow needs room for
    /// `limit` bytes.
    ///
    /// # Errors
    /// [`BodyError::Truncated`] if the stream fails before its end.
    pub async fn collect(
        &mut self,
        body: Body,
        limit: usize,
        mut patience: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Arrival, BodyError> {
        let first_limit = if self.is_known { limit } else { limit.min(UNKNOWN) };
        Ok(match body.collect_within(first_limit, patience.as_mut()).await? {
            InTime::Collected(Collected::TooLarge(body)) | InTime::Slow(body)
                if !self.is_known && !self.grow(limit) =>
            {
                Arrival::NoRoom(body)
            }
            InTime::Collected(Collected::TooLarge(body)) if !self.is_known => {
                Arrival::InTime(body.collect_within(limit, patience).await?)
            }
            in_time => Arrival::InTime(in_time),
        })
    }

    /// Lets the page have `bytes`. Returns whether the other pages leave room for it.
    fn grow(&mut self, bytes: usize) -> bool {
        let passing = &mut *self.passing.borrow_mut();
        let more = bytes.saturating_sub(self.page.bytes);
        let is_alone = passing.bytes == self.page.bytes;
        let Some(own) = passing.pages.iter_mut().find(|page| **page == self.page) else { return false };
        if passing.bytes + more > LIMIT && !is_alone {
            return false;
        }
        passing.bytes += more;
        own.bytes += more;
        self.page = *own;
        true
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let mut passing = self.passing.borrow_mut();
        if let Some(own) = passing.pages.iter().position(|page| *page == self.page) {
            passing.pages.swap_remove(own);
            passing.bytes -= self.page.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);

    #[test]
    fn pages_in_transit_are_bounded_by_their_bytes_and_their_number() {
        let until = START + Duration::from_secs(30);
        for (bytes, expected) in [(Some(1 << 20), 16), (Some(0), LIMIT / LEAST), (None, LIMIT / UNKNOWN)] {
            let transit = Transit::default();
            let admitted: Vec<_> = std::iter::from_fn(|| transit.admit(bytes, START, until)).collect();
            assert_eq!(admitted.len(), expected);
            drop(admitted);
            assert!(transit.admit(bytes, START, until).is_some(), "the pages have passed");
        }
    }

    #[test]
    fn a_page_grows_while_there_is_room() {
        let until = START + Duration::from_secs(30);
        let transit = Transit::default();
        let mut pages: Vec<_> = (0..17).map(|_| transit.admit(None, START, until).unwrap()).collect();
        let grown: Vec<_> = pages.iter_mut().map(|page| page.grow(1 << 20)).collect();
        assert_eq!(grown.iter().filter(|grows| **grows).count(), 15, "the rest takes 256 KiB");
        drop(pages);
        assert_eq!((transit.0.borrow().bytes, transit.0.borrow().pages.len()), (0, 0));
    }

    #[test]
    fn a_large_page_passes_alone_and_a_forgotten_page_counts_until_its_deadline() {
        let until = START + Duration::from_secs(30);
        let transit = Transit::default();
        let large = transit.admit(Some(LIMIT + 1), START, until);
        assert!(large.is_some() && transit.admit(Some(1), START, until).is_none());
        std::mem::forget(large);
        assert!(transit.admit(Some(1), until, until).is_some());
        assert!(transit.admit(Some(LIMIT + 1), until, until + Duration::from_secs(1)).is_some(), "until then");
    }
}
