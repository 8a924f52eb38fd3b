//! Random bits: `crypto.getRandomValues` in a Worker, the system's source natively.

use std::cell::RefCell;

use crate::ports::error::Error;

/// Bytes per request to the platform. A request costs a Worker one call into JavaScript, regardless of the number of
/// bytes.
const POOL_SIZE: usize = 512;

thread_local! {
    /// Filled on first use: a Worker may ask for random bits only during an event.
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_SIZE], left: 0 }) };
}

/// Returns `N` random bytes.
///
/// # Errors
/// [`Error::Platform`] if the platform has no random bits.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    const { assert!(N <= POOL_SIZE) };
    let mut bytes = [0; N];
    let drawn = POOL.with_borrow_mut(|pool| pool.swap(&mut bytes, getrandom::fill));
    drawn.map(|()| bytes).ok_or_else(|| Error::Platform("no random bits".to_owned()))
}

/// Random bytes that have not been handed out.
struct Pool {
    bytes: [u8; POOL_SIZE],
    /// The first `left` bytes are still unused.
    left: usize,
}

impl Pool {
    /// Swaps `zeros` for random bytes, so that the pool keeps no byte that it hands out.
    fn swap<E>(&mut self, zeros: &mut [u8], fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Option<()> {
        if self.left < zeros.len() {
            // After a failed fill, the pool's content must not be used.
            self.left = 0;
            fill(&mut self.bytes).ok()?;
            self.left = POOL_SIZE;
        }
        let rest = self.left.checked_sub(zeros.len())?;
        zeros.swap_with_slice(self.bytes.get_mut(rest..self.left)?);
        self.left = rest;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const EMPTY: Pool = Pool { bytes: [0; POOL_SIZE], left: 0 };

    fn draw<const N: usize>(pool: &mut Pool, fill: impl FnOnce(&mut [u8]) -> Result<(), ()>) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        pool.swap(&mut bytes, fill).map(|()| bytes)
    }

    /// A source of consecutive two-byte numbers after `last`.
    fn counting(last: &mut u16) -> impl FnOnce(&mut [u8]) -> Result<(), ()> {
        move |bytes| {
            for number in bytes.chunks_mut(2) {
                *last += 1;
                number.copy_from_slice(&last.to_be_bytes());
            }
            Ok(())
        }
    }

    #[test]
    fn no_bits_are_handed_out_twice() {
        let drawn: HashSet<_> = (0..1000).map(|_| bytes::<16>().unwrap()).collect();
        assert_eq!(drawn.len(), 1000);
        let (mut pool, mut last) = (EMPTY, 0);
        let drawn: HashSet<_> = (0..1000).map(|_| draw::<2>(&mut pool, counting(&mut last)).unwrap()).collect();
        assert_eq!(drawn.len(), 1000);
        assert_eq!(last, 1024, "four requests");
    }

    #[test]
    fn the_pool_keeps_no_byte_that_it_hands_out() {
        let (mut pool, mut last) = (EMPTY, 0);
        for _ in 0..200 {
            draw::<6>(&mut pool, counting(&mut last)).unwrap();
            let (left, given) = pool.bytes.split_at(pool.left);
            assert!(left.chunks(2).all(|number| number != [0, 0]));
            assert!(given.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_failing_source_yields_no_bytes() {
        let mut pool = Pool { bytes: [7; POOL_SIZE], left: 3 };
        assert_eq!(draw::<4>(&mut pool, |_| Err(())), None);
        assert_eq!(draw::<1>(&mut pool, |_| Err(())), None);
        assert_eq!(draw::<4>(&mut pool, |_| Ok(())), Some([7; 4]));
    }
}
