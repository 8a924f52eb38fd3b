//! Counts what is sent, by purpose. It holds numbers only, so it may outlive the work that it counts.

use std::{cell::Cell, pin::pin, rc::Rc, task::Poll};

use futures_util::future::poll_fn;

use crate::error::{Error, TransportError};

/// The purpose of work, and so the total that counts its requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attribution {
    /// A user waits for the result.
    Foreground,
    /// Nobody waits for the result: it is sent after a response.
    Background,
    /// Not counted: scheduled jobs and monitoring.
    #[default]
    Uncounted,
}

/// Numbers of requests, commands and failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// HTTP requests, retries included. A request that several callers share counts for the first of them.
    pub requests: u64,
    /// Commands in these requests. A script is one, whatever it calls.
    pub commands: u64,
    /// Calls without a reply from Redis: no connection, no response in time, a refused token, a quota.
    pub failures: u64,
}

/// Calls that failed since the start, for all purposes. The difference of two readings shows how the database fares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Troubles {
    /// The rate limit or the quota refused the call.
    pub refused: u64,
    /// No response, or a failure of a server in between.
    pub silent: u64,
}

/// The usage since the last reading, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sent while a user waited.
    pub foreground: Usage,
    /// Sent while nobody waited.
    pub background: Usage,
}

/// Counts what is sent to one database, for all of its handles.
///
/// The purpose is given once, around the work: [`Meter::attribute`] marks all that the future inside sends, through
/// every handle of the database. So no function has to choose between clients.
#[derive(Debug, Default)]
pub struct Meter {
    current: Cell<Attribution>,
    foreground: Cell<Usage>,
    background: Cell<Usage>,
    troubles: Cell<Troubles>,
}

impl Meter {
    /// Runs `work` and counts what it sends for `attribution`. If calls are nested, the innermost one holds.
    ///
    /// The mark is set only while the work is polled, so works that run side by side do not mix.
    pub async fn attribute<T>(self: Rc<Self>, attribution: Attribution, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(move |context| {
            let before = self.current.replace(attribution);
            let poll: Poll<T> = work.as_mut().poll(context);
            self.current.set(before);
            poll
        })
        .await
    }

    /// Returns what was sent since the last call, and starts again from zero.
    pub fn take(&self) -> Totals {
        Totals { foreground: self.foreground.take(), background: self.background.take() }
    }

    /// Counts a call, with the requests that it sends itself.
    pub(crate) fn count_call(&self, requests: u64, commands: usize) {
        self.count(|usage| {
            usage.requests += requests;
            usage.commands += commands as u64;
        });
    }

    /// The calls that failed so far.
    pub fn troubles(&self) -> Troubles {
        self.troubles.get()
    }

    /// Counts a call that failed.
    pub(crate) fn count_failure(&self, error: &Error) {
        self.count(|usage| usage.failures += 1);
        let Troubles { refused, silent } = self.troubles.get();
        self.troubles.set(match error {
            Error::Quota => Troubles { refused: refused + 1, silent },
            Error::Transport(TransportError::Timeout | TransportError::Unreachable) | Error::NotRest { .. } => {
                Troubles { refused, silent: silent + 1 }
            }
            _ => return,
        });
    }

    fn count(&self, change: impl Fn(&mut Usage)) {
        let total = match self.current.get() {
            Attribution::Foreground => &self.foreground,
            Attribution::Background => &self.background,
            Attribution::Uncounted => return,
        };
        let mut usage = total.get();
        change(&mut usage);
        total.set(usage);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{join, ready};

    use super::*;

    /// Sends a command, lets others run, and sends two more.
    async fn work(meter: &Meter) {
        meter.count_call(1, 1);
        let mut is_second = false;
        poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        meter.count_call(1, 2);
    }

    #[tokio::test]
    async fn works_that_run_side_by_side_do_not_mix() {
        let meter = Rc::<Meter>::default();
        let (foreground, background) = (meter.clone(), meter.clone());
        let inner = meter.clone().attribute(Attribution::Uncounted, work(&meter));
        let outer = meter.clone().attribute(Attribution::Foreground, async {
            inner.await;
            work(&meter).await;
        });
        join(outer, join(background.attribute(Attribution::Background, work(&meter)), work(&meter))).await;
        foreground.attribute(Attribution::Background, ready(())).await;

        let totals = meter.take();

        let usage = Usage { requests: 2, commands: 3, failures: 0 };
        assert_eq!(totals, Totals { foreground: usage, background: usage });
        assert_eq!(meter.take(), Totals::default());
    }
}
