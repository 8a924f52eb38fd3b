//! Random bits: `crypto.getRandomValues` in a Worker, the system's source natively.

use std::cell::RefCell;

use crate::ports::error::Error;

/// So many bytes are asked for at once: whatever their number, it costs a Worker a call into JavaScript and back.
const AT_ONCE: usize = 512;

thread_local! {
    /// Filled when it is first needed: a Worker may ask for random bits only while it has an event.
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; AT_ONCE], left: 0 }) };
}

/// So many random bytes.
///
/// # Errors
/// [`Error::Platform`] if the platform has none.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    const { assert!(N <= AT_ONCE) };
    let mut bytes = [0; N];
    let drawn = POOL.with_borrow_mut(|pool| pool.swap(&mut bytes, getrandom::fill));
    drawn.map(|()| bytes).ok_or_else(|| Error::Platform("no random bits".to_owned()))
}

/// Random bytes that nobody was given yet.
struct Pool {
    bytes: [u8; AT_ONCE],
    /// How many of them, from the first, are still to be given.
    left: usize,
}

impl Pool {
    /// Swaps `zeros` for random bytes: none is kept that was given.
    fn swap<E>(&mut self, zeros: &mut [u8], fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Option<()> {
        if self.left < zeros.len() {
            // Where the source fails, whatever it left here is not given.
            self.left = 0;
            fill(&mut self.bytes).ok()?;
            self.left = AT_ONCE;
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

    const EMPTY: Pool = Pool { bytes: [0; AT_ONCE], left: 0 };

    fn draw<const N: usize>(pool: &mut Pool, fill: impl FnOnce(&mut [u8]) -> Result<(), ()>) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        pool.swap(&mut bytes, fill).map(|()| bytes)
    }

    /// Gives the numbers after `last`, of two bytes each.
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
    fn no_bits_are_given_twice() {
        let drawn: HashSet<_> = (0..1000).map(|_| bytes::<16>().unwrap()).collect();
        assert_eq!(drawn.len(), 1000);
        let (mut pool, mut last) = (EMPTY, 0);
        let drawn: HashSet<_> = (0..1000).map(|_| draw::<2>(&mut pool, counting(&mut last)).unwrap()).collect();
        assert_eq!(drawn.len(), 1000);
        assert_eq!(last, 1024, "asked for four times");
    }

    #[test]
    fn what_was_given_is_not_kept() {
        let (mut pool, mut last) = (EMPTY, 0);
        for _ in 0..200 {
            draw::<6>(&mut pool, counting(&mut last)).unwrap();
            let (left, given) = pool.bytes.split_at(pool.left);
            assert!(left.chunks(2).all(|number| number != [0, 0]));
            assert!(given.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_source_that_fails_gives_nothing() {
        let mut pool = Pool { bytes: [7; AT_ONCE], left: 3 };
        assert_eq!(draw::<4>(&mut pool, |_| Err(())), None);
        assert_eq!(draw::<1>(&mut pool, |_| Err(())), None);
        assert_eq!(draw::<4>(&mut pool, |_| Ok(())), Some([7; 4]));
    }
}
