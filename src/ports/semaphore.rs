//! A semaphore for memory: bounds the bytes of pages in progress. These are bodies that arrive from the origin, fragments
//! of a page that is being assembled, and pages that are being sent to Redis. An isolate has 128 MB in all, and a slow
//! Redis or many visitors must not fill them.

use std::{cell::RefCell, rc::Rc};

use bytes::Bytes;

use super::{
    fetch::{Body, Collected, NotCopied, Patience, Truncated},
    time::Timestamp,
};

/// Largest sum of all permits, bytes. The memory of wasm grows to about three times this sum, because a body is copied
/// while it grows, and is encoded for Redis.
const LIMIT: usize = 16 << 20;
/// The first permit of a page of unknown length, bytes.
const UNKNOWN: usize = 128 << 10;
/// The smallest permit, bytes. It covers the headers of a page or a fragment, and the state of its request.
const LEAST: usize = 8 << 10;
/// The permit of a body of unknown length grows by this factor until the body fits.
const GROWTH: usize = 8;
/// The permit of a body that is copied while it passes grows by this factor.
const GROWTH_OF_COPY: usize = 2;

/// See the [module](self).
#[derive(Default)]
pub struct MemorySemaphore(Rc<RefCell<Acquired>>);

/// The permits that are not released yet, and the sum of their bytes.
#[derive(Default)]
struct Acquired {
    bytes: usize,
    shares: Vec<Share>,
}

/// The size of a permit, and the time at which it expires: the platform may end a request without dropping its permit.
#[derive(Clone, Copy, PartialEq)]
struct Share {
    bytes: usize,
    until: Timestamp,
}

impl MemorySemaphore {
    /// Acquires a permit for a page of `bytes`; None for an unknown length. The permit is released when it is dropped, and
    /// expires at `until`. Returns None if the other permits leave no room for it.
    #[must_use]
    pub fn try_acquire(&self, bytes: Option<usize>, now: Timestamp, until: Timestamp) -> Option<MemoryPermit> {
        self.acquire(bytes.unwrap_or(UNKNOWN), bytes.is_some(), now, until)
    }

    /// As [`MemorySemaphore::try_acquire`], for a fragment. With an unknown length, its first permit is smaller than that
    /// of a page, because a page may have many fragments, and most are small.
    #[must_use]
    pub fn try_acquire_for_fragment(
        &self,
        bytes: Option<usize>,
        now: Timestamp,
        until: Timestamp,
    ) -> Option<MemoryPermit> {
        self.acquire(bytes.unwrap_or(LEAST), bytes.is_some(), now, until)
    }

    fn acquire(&self, bytes: usize, is_known: bool, now: Timestamp, until: Timestamp) -> Option<MemoryPermit> {
        let share = Share { bytes: bytes.max(LEAST), until };
        let mut acquired = self.0.borrow_mut();
        if acquired.bytes + share.bytes > LIMIT {
            acquired.shares.retain(|share| now < share.until);
            acquired.bytes = acquired.shares.iter().map(|share| share.bytes).sum();
        }
        // A single page may be larger than the limit.
        if acquired.bytes + share.bytes > LIMIT && acquired.bytes > 0 {
            return None;
        }
        acquired.bytes += share.bytes;
        acquired.shares.push(share);
        Some(MemoryPermit { share, is_known, acquired: self.0.clone() })
    }
}

/// The right of one page or fragment to take memory.
pub struct MemoryPermit {
    share: Share,
    /// The length of the body was known.
    is_known: bool,
    acquired: Rc<RefCell<Acquired>>,
}

/// The result of [`MemoryPermit::collect`]: as [`Collected`], or no room for the body.
pub enum CollectOutcome {
    Whole(Bytes),
    TooLarge(Body),
    Slow(Body),
    /// The other permits leave no room for the body, which is still complete.
    NoPermit(Body),
}

impl MemoryPermit {
    /// As [`Body::collect_within`]. If the length of the body was unknown, a long body needs a larger permit.
    ///
    /// # Errors
    /// [`Truncated`].
    pub async fn collect(
        &mut self,
        mut body: Body,
        limit: usize,
        mut patience: Patience<'_>,
    ) -> Result<CollectOutcome, Truncated> {
        loop {
            let room = if self.is_known { limit } else { limit.min(self.share.bytes) };
            let needed;
            (body, needed) = match body.collect_within(room, patience.as_mut()).await? {
                Collected::Whole(bytes) => return Ok(CollectOutcome::Whole(bytes)),
                Collected::TooLarge(body) if room == limit => return Ok(CollectOutcome::TooLarge(body)),
                Collected::TooLarge(body) => (body, limit.min(room.saturating_mul(GROWTH))),
                Collected::Slow(body) => return Ok(CollectOutcome::Slow(body)),
            };
            if !self.grow(needed) {
                return Ok(CollectOutcome::NoPermit(body));
            }
        }
    }

    /// Admits a copy that has `bytes` of a body so far, of at most `limit`. If the length of the body was unknown, a longer copy
    /// needs a larger permit. No copy waits for room, so two of them cannot block each other.
    ///
    /// # Errors
    /// [`NotCopied::TooLarge`]; [`NotCopied::NoRoom`] if the other permits leave no room.
    pub fn admit(&mut self, bytes: usize, limit: usize) -> Result<(), NotCopied> {
        if bytes > limit {
            return Err(NotCopied::TooLarge);
        }
        let fits = self.is_known || bytes <= self.share.bytes;
        if fits || self.grow(bytes.max(self.share.bytes * GROWTH_OF_COPY)) { Ok(()) } else { Err(NotCopied::NoRoom) }
    }

    /// Enlarges the permit to `bytes`. Returns whether the other permits leave room for it.
    fn grow(&mut self, bytes: usize) -> bool {
        let acquired = &mut *self.acquired.borrow_mut();
        let more = bytes.saturating_sub(self.share.bytes);
        let is_alone = acquired.bytes == self.share.bytes;
        let Some(own) = acquired.shares.iter_mut().find(|share| **share == self.share) else { return false };
        if acquired.bytes + more > LIMIT && !is_alone {
            return false;
        }
        acquired.bytes += more;
        own.bytes += more;
        self.share = *own;
        true
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        let mut acquired = self.acquired.borrow_mut();
        if let Some(own) = acquired.shares.iter().position(|share| *share == self.share) {
            acquired.shares.swap_remove(own);
            acquired.bytes -= self.share.bytes;
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
    fn permits_are_bounded_by_their_bytes_and_their_number() {
        let until = START + Duration::from_secs(30);
        for (bytes, expected) in [(Some(1 << 20), 16), (Some(0), LIMIT / LEAST), (None, LIMIT / UNKNOWN)] {
            let semaphore = MemorySemaphore::default();
            let permits: Vec<_> = std::iter::from_fn(|| semaphore.try_acquire(bytes, START, until)).collect();
            assert_eq!(permits.len(), expected);
            drop(permits);
            assert!(semaphore.try_acquire(bytes, START, until).is_some(), "all permits are released");
        }
    }

    #[test]
    fn a_permit_grows_while_there_is_room() {
        let until = START + Duration::from_secs(30);
        let semaphore = MemorySemaphore::default();
        let mut permits: Vec<_> = (0..17).map(|_| semaphore.try_acquire(None, START, until).unwrap()).collect();
        let grown: Vec<_> = permits.iter_mut().map(|permit| permit.grow(1 << 20)).collect();
        assert_eq!(grown.iter().filter(|grows| **grows).count(), 15, "the rest takes 256 KiB");
        drop(permits);
        assert_eq!((semaphore.0.borrow().bytes, semaphore.0.borrow().shares.len()), (0, 0));
    }

    #[test]
    fn the_permit_of_a_copy_grows_with_its_bytes() {
        let until = START + Duration::from_secs(30);
        let semaphore = MemorySemaphore::default();
        let [mut one, mut other] = [(), ()].map(|()| semaphore.try_acquire(None, START, until).unwrap());
        let _rest = semaphore.try_acquire(Some(LIMIT - 4 * UNKNOWN), START, until).unwrap();
        let admit = |permit: &mut MemoryPermit, bytes| (permit.admit(bytes, 1 << 20), permit.share.bytes);
        let no_room = (Err(NotCopied::NoRoom), 2 * UNKNOWN);
        assert_eq!(admit(&mut one, UNKNOWN), (Ok(()), UNKNOWN));
        assert_eq!(admit(&mut one, UNKNOWN + 1), (Ok(()), 2 * UNKNOWN));
        assert_eq!(admit(&mut one, 2 * UNKNOWN + 1), no_room, "there is room for half of that");
        assert_eq!(admit(&mut other, UNKNOWN + 1), (Ok(()), 2 * UNKNOWN));
        assert_eq!([&mut one, &mut other].map(|permit| admit(permit, 2 * UNKNOWN + 1)), [no_room; 2], "neither waits");
        drop(one);
        assert_eq!(admit(&mut other, 2 * UNKNOWN + 1), (Ok(()), 4 * UNKNOWN));
        assert_eq!(other.admit((1 << 20) + 1, 1 << 20), Err(NotCopied::TooLarge));
    }

    #[test]
    fn a_fragment_takes_little_room_until_it_turns_out_to_be_long() {
        let until = START + Duration::from_secs(30);
        let semaphore = MemorySemaphore::default();
        let chunks = || -> Body {
            let chunk = |_| Ok(Bytes::from_static(&[b'x'; 10_000]));
            Body::Stream(Box::new(Chunks(stream::iter((0..9).map(chunk).collect::<Vec<_>>()))))
        };
        let collect = |limit| {
            let mut fragment = semaphore.try_acquire_for_fragment(None, START, until).unwrap();
            let outcome = fragment.collect(chunks(), limit, std::pin::pin!(std::future::pending())).now_or_never();
            (outcome.unwrap().unwrap(), fragment)
        };
        let (short, fragment) = collect(LEAST);
        assert!(matches!(short, CollectOutcome::TooLarge(_)) && fragment.share.bytes == LEAST);
        let (long, fragment) = collect(1 << 20);
        assert!(matches!(long, CollectOutcome::Whole(bytes) if bytes.len() == 90_000));
        assert_eq!(fragment.share.bytes, LEAST * GROWTH * GROWTH);
        let _others = semaphore.try_acquire(Some(LIMIT - (1 << 20)), START, until).unwrap();
        assert!(matches!(collect(1 << 20), (CollectOutcome::NoPermit(_), _)), "beside the other fragment");
    }

    #[test]
    fn a_large_page_gets_a_permit_alone_and_a_forgotten_permit_expires() {
        let until = START + Duration::from_secs(30);
        let semaphore = MemorySemaphore::default();
        let large = semaphore.try_acquire(Some(LIMIT + 1), START, until);
        assert!(large.is_some() && semaphore.try_acquire(Some(1), START, until).is_none());
        std::mem::forget(large);
        assert!(semaphore.try_acquire(Some(1), until, until).is_some());
        assert!(semaphore.try_acquire(Some(LIMIT + 1), until, until + Duration::from_secs(1)).is_some(), "until then");
    }
}
