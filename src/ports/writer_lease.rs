//! A lease by which one request writes for all requests of an isolate. The platform may end a request before it gives the
//! lease back, so the lease also expires.

use std::{cell::Cell, time::Duration};

use super::time::Timestamp;

/// See the [module](self).
#[derive(Default)]
pub struct WriterLease {
    /// The start and the duration of the lease.
    held: Cell<Option<(Timestamp, Duration)>>,
    /// The last request that took the lease.
    holder: Cell<LeaseHolder>,
}

/// The request that took a lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseHolder(u64);

impl WriterLease {
    /// Takes the lease for `duration`. None while another request has it.
    pub fn try_take(&self, now: Timestamp, duration: Duration) -> Option<LeaseHolder> {
        if self.held.get().is_some_and(|(start, duration)| now.is_near(duration, start)) {
            return None;
        }
        let holder = LeaseHolder(self.holder.get().0 + 1);
        self.holder.set(holder);
        self.held.set(Some((now, duration)));
        Some(holder)
    }

    /// Extends the lease to `duration` from now. Returns false if it expired and another request took it.
    pub fn renew(&self, holder: LeaseHolder, now: Timestamp, duration: Duration) -> bool {
        let is_own = self.holder.get() == holder;
        if is_own {
            self.held.set(Some((now, duration)));
        }
        is_own
    }

    /// Ends the lease, unless it expired and another request took it.
    pub fn release(&self, holder: LeaseHolder) {
        if self.holder.get() == holder {
            self.held.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_795_000_000_123);
    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn one_request_has_the_lease_until_it_ends_or_expires() {
        let lease = WriterLease::default();
        let first = lease.try_take(START, TEN).unwrap();
        assert_eq!(lease.try_take(START + TEN / 2, TEN), None);
        assert!(lease.renew(first, START + TEN / 2, TEN));
        assert_eq!(lease.try_take(START + TEN, TEN), None);
        lease.release(first);
        assert!(lease.try_take(START + TEN, TEN).is_some());
        assert!(lease.try_take(START + TEN * 2, TEN).is_some(), "expired");
        assert!(lease.try_take(START, TEN).is_some(), "the clock was set back");
    }

    #[test]
    fn a_request_that_arrived_before_the_holder_does_not_take_the_lease() {
        let lease = WriterLease::default();
        let holder = lease.try_take(START, TEN).unwrap();
        assert!(lease.renew(holder, START + TEN / 2, TEN));
        assert_eq!(lease.try_take(START + TEN / 4, TEN), None);
        assert!(lease.renew(holder, START + TEN / 2, TEN));
    }

    #[test]
    fn a_request_that_lost_its_lease_leaves_that_of_its_successor() {
        let lease = WriterLease::default();
        let late = lease.try_take(START, TEN).unwrap();
        let successor = lease.try_take(START + TEN, TEN).unwrap();
        lease.release(late);
        assert!(!lease.renew(late, START + TEN, TEN * 9));
        assert_eq!(lease.try_take(START + TEN, TEN), None);
        lease.release(successor);
        assert!(lease.try_take(START + TEN, TEN).is_some());
    }
}
