//! A clock that a test moves in steps, and the tasks that sleep by it. A step moves the clock, and waits until each
//! task has ended or sleeps. So nothing depends on the speed of the machine.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use edgefront::ports::time::{Clock, Timestamp};
use futures_util::future::LocalBoxFuture;
use tokio::{
    sync::{Notify, oneshot},
    task::spawn_local,
};

const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// The clock and its tasks. Clones share both.
#[derive(Clone, Default)]
pub struct Steps(Rc<Inner>);

#[derive(Default)]
struct Inner {
    passed: Cell<Duration>,
    /// Tasks that have not ended.
    tasks: Cell<usize>,
    /// The ends of the sleeps, in time since the start.
    sleepers: RefCell<Vec<(Duration, oneshot::Sender<()>)>>,
    /// Notified when a task ends or begins to sleep.
    changed: Notify,
}

impl Steps {
    /// Starts `task`. The steps wait for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let inner = self.0.clone();
        inner.tasks.set(inner.tasks.get() + 1);
        spawn_local(async move {
            task.await;
            inner.tasks.set(inner.tasks.get() - 1);
            inner.changed.notify_one();
        });
    }

    /// Moves the clock, wakes the tasks whose sleep has ended, and waits until all tasks have ended or sleep.
    pub async fn advance(&self, duration: Duration) {
        let now = self.0.passed.get() + duration;
        self.0.passed.set(now);
        let due: Vec<_> = self.0.sleepers.borrow_mut().extract_if(.., |(end, _)| *end <= now).collect();
        for (_, wake) in due {
            // The task may have been dropped.
            let _ = wake.send(());
        }
        self.settle().await;
    }

    /// Waits until all tasks have ended or sleep.
    pub async fn settle(&self) {
        while self.0.tasks.get() > self.sleepers() {
            self.0.changed.notified().await;
        }
    }

    fn sleepers(&self) -> usize {
        let mut sleepers = self.0.sleepers.borrow_mut();
        sleepers.retain(|(_, wake)| !wake.is_closed());
        sleepers.len()
    }
}

impl Clock for Steps {
    fn now(&self) -> Timestamp {
        START + self.0.passed.get()
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        if duration.is_zero() {
            return Box::pin(tokio::task::yield_now());
        }
        let inner = self.0.clone();
        Box::pin(async move {
            let (wake, woken) = oneshot::channel();
            inner.sleepers.borrow_mut().push((inner.passed.get() + duration, wake));
            inner.changed.notify_one();
            let _ = woken.await;
        })
    }
}
