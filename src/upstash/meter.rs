//! Counts what is sent to Redis, by who waits for it. Numbers only: they may outlive the request that they are of.
//!
//! Who waits is told once, around the work: [`Meter::during`] marks whatever the future inside sends, through every handle of
//! the same database. So no caller has to choose between clients, and none can forget to.

use std::{cell::Cell, pin::pin, rc::Rc, task::Poll};

use futures_util::future::poll_fn;

/// Who waits for what is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Waits {
    /// Somebody who wants an answer.
    Caller,
    /// Nobody: it goes on behind an answer.
    Nobody,
    /// Not counted: crons, and whoever only watches.
    #[default]
    Uncounted,
}

/// What was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// HTTP requests, retries included. One that several share counts for the first of them.
    pub requests: u64,
    /// Commands in them. A script is one, whatever it calls.
    pub commands: u64,
    /// Calls that brought no reply of Redis: no connection, no answer in time, a refused token, a quota.
    pub failures: u64,
}

/// The counts of one database, shared by all its handles.
#[derive(Debug, Default)]
pub struct Meter {
    waits: Cell<Waits>,
    caller: Cell<Sent>,
    nobody: Cell<Sent>,
}

impl Meter {
    /// Runs `work`; what it sends counts as awaited by `waits`. Within another `during` the inner one holds.
    ///
    /// The mark is set while the work is polled and never in between, so that works which run side by side do not mix.
    pub async fn during<T>(self: Rc<Self>, waits: Waits, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(move |context| {
            let before = self.waits.replace(waits);
            let poll: Poll<T> = work.as_mut().poll(context);
            self.waits.set(before);
            poll
        })
        .await
    }

    /// What was sent since the last call, for callers and for nobody.
    pub fn take(&self) -> (Sent, Sent) {
        (self.caller.take(), self.nobody.take())
    }

    /// Counts a call, and the request that it is the first of.
    pub(super) fn sent(&self, requests: u64, commands: usize) {
        self.count(|sent| {
            sent.requests += requests;
            sent.commands += commands as u64;
        });
    }

    pub(super) fn failed(&self) {
        self.count(|sent| sent.failures += 1);
    }

    fn count(&self, change: impl Fn(&mut Sent)) {
        let counts = match self.waits.get() {
            Waits::Caller => &self.caller,
            Waits::Nobody => &self.nobody,
            Waits::Uncounted => return,
        };
        let mut sent = counts.get();
        change(&mut sent);
        counts.set(sent);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{join, ready};

    use super::*;

    /// Sends a command, lets others run, and sends two more.
    async fn work(meter: &Meter) {
        meter.sent(1, 1);
        let mut is_second = false;
        poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        meter.sent(1, 2);
    }

    #[tokio::test]
    async fn works_that_run_side_by_side_do_not_mix() {
        let meter = Rc::<Meter>::default();
        let (caller, nobody) = (meter.clone(), meter.clone());
        let inner = meter.clone().during(Waits::Uncounted, work(&meter));
        let outer = meter.clone().during(Waits::Caller, async {
            inner.await;
            work(&meter).await;
        });
        join(outer, join(nobody.during(Waits::Nobody, work(&meter)), work(&meter))).await;
        caller.during(Waits::Nobody, ready(())).await;

        let (caller, nobody) = meter.take();

        assert_eq!((caller.requests, caller.commands), (2, 3));
        assert_eq!((nobody.requests, nobody.commands), (2, 3));
        assert_eq!(meter.take(), (Sent::default(), Sent::default()));
    }
}
