//! Admission control for memory: bounds the bytes of pages that pass through this program at the same time. These are
//! bodies that arrive from the origin, fragments of a page that is being assembled, and pages on their way to Redis. An
//! isolate has 128 MB for everything, and a slow Redis or a crowd of visitors must not fill it.

use std::{cell::RefCell, rc::Rc};

use bytes::Bytes;

use super::{
    fetch::{Body, Collected, Patience, Truncated},
    time::Timestamp,
};

/// Largest sum of all pages in transit, bytes. The memory of wasm grows to about three times as much: a body is copied
/// while it grows, and encoded for Redis.
const LIMIT: usize = 16 << 20;
/// The size that counts for a body of unknown length until it turns out to be longer, bytes.
const UNKNOWN: usize = 128 << 10;
/// The size that counts at least for a page or a fragment, bytes: its headers, and the state of its request.
const LEAST: usize = 8 << 10;
/// The room of a body of unknown length grows by this factor until the body fits.
const GROWTH: usize = 8;

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
    #[must_use]
    pub fn admit(&self, bytes: Option<usize>, now: Timestamp, until: Timestamp) -> Option<Passage> {
        self.admit_as(bytes.unwrap_or(UNKNOWN), bytes.is_some(), now, until)
    }

    /// As [`Transit::admit`], for a fragment: there are many of them, and most are small.
    #[must_use]
    pub fn admit_fragment(&self, bytes: Option<usize>, now: Timestamp, until: Timestamp) -> Option<Passage> {
        self.admit_as(bytes.unwrap_or(LEAST), bytes.is_some(), now, until)
    }

    fn admit_as(&self, bytes: usize, is_known: bool, now: Timestamp, until: Timestamp) -> Option<Passage> {
        let page = Page { bytes: bytes.max(LEAST), until };
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
        Some(Passage { page, is_known, passing: self.0.clone() })
    }
}

/// A page in transit.
pub struct Passage {
    page: Page,
    /// The page was admitted with its length.
    is_known: bool,
    passing: Rc<RefCell<Passing>>,
}

/// The result of [`Passage::collect`]: as [`Collected`].
pub enum Passed {
    Whole(Bytes),
    TooLarge(Body),
    Slow(Body),
    /// The other pages leave no room for the body, which is still complete.
    NoRoom(Body),
}

impl Passage {
    /// As [`Body::collect_within`]. If the page was admitted without its length, a long body needs more room, and a slow
    /// body room for `limit` bytes.
    ///
    /// # Errors
    /// [`Truncated`].
    pub async fn collect(
        &mut self,
        mut body: Body,
        limit: usize,
        mut patience: Patience<'_>,
    ) -> Result<Passed, Truncated> {
        loop {
            let room = if self.is_known { limit } else { limit.min(self.page.bytes) };
            let needed;
            (body, needed) = match body.collect_within(room, patience.as_mut()).await? {
                Collected::Whole(bytes) => return Ok(Passed::Whole(bytes)),
                Collected::TooLarge(body) if room == limit => return Ok(Passed::TooLarge(body)),
                Collected::TooLarge(body) => (body, limit.min(room.saturating_mul(GROWTH))),
                Collected::Slow(body) if self.is_known || self.grow(limit) => return Ok(Passed::Slow(body)),
                Collected::Slow(body) => return Ok(Passed::NoRoom(body)),
            };
            if !self.grow(needed) {
                return Ok(Passed::NoRoom(body));
            }
        }
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
    use std::{
        any::Any,
        io,
        pin::Pin,
        task::{Context, Poll},
        time::Duration,
    };

    use futures_util::{FutureExt, Stream, StreamExt, stream};

    use super::*;
    use crate::ports::fetch::ByteStream;

    struct Chunks<S>(S);

    impl<S: Stream<Item = io::Result<Bytes>> + Unpin> Stream for Chunks<S> {
        type Item = io::Result<Bytes>;

        fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.0.poll_next_unpin(context)
        }
    }

    impl<S: Stream<Item = io::Result<Bytes>> + Unpin + 'static> ByteStream for Chunks<S> {
        fn as_any(&mut self) -> &mut dyn Any {
            self
        }
    }

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
    fn a_fragment_takes_little_room_until_it_turns_out_to_be_long() {
        let until = START + Duration::from_secs(30);
        let transit = Transit::default();
        let chunks = || -> Body {
            let chunk = |_| Ok(Bytes::from_static(&[b'x'; 10_000]));
            Body::Stream(Box::new(Chunks(stream::iter((0..9).map(chunk).collect::<Vec<_>>()))))
        };
        let collect = |limit| {
            let mut fragment = transit.admit_fragment(None, START, until).unwrap();
            let passed = fragment.collect(chunks(), limit, std::pin::pin!(std::future::pending())).now_or_never();
            (passed.unwrap().unwrap(), fragment)
        };
        let (short, fragment) = collect(LEAST);
        assert!(matches!(short, Passed::TooLarge(_)) && fragment.page.bytes == LEAST);
        let (long, fragment) = collect(1 << 20);
        assert!(matches!(long, Passed::Whole(bytes) if bytes.len() == 90_000));
        assert_eq!(fragment.page.bytes, LEAST * GROWTH * GROWTH);
        let _others = transit.admit(Some(LIMIT - (1 << 20)), START, until).unwrap();
        assert!(matches!(collect(1 << 20), (Passed::NoRoom(_), _)), "beside the other fragment");
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
