//! Virtual time: the product's background tasks run as they are, and their sleeps end when the simulation gets there.

use std::{
    cell::Cell,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use edgefront::ports::{
    answer::BackgroundTask,
    time::{Clock, Timestamp},
};
use futures_util::future::LocalBoxFuture;

/// The simulated moment; clones show the same one.
#[derive(Clone)]
pub struct VirtualClock(Rc<Hands>);

struct Hands {
    now: Cell<Timestamp>,
    /// The earliest end of a sleep that was polled since [`poll`] began.
    wakes: Cell<Option<Timestamp>>,
}

impl VirtualClock {
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self(Rc::new(Hands { now: Cell::new(start), wakes: Cell::default() }))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.now.set(now);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.0.now.get()
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(Sleep { hands: self.0.clone(), end: self.now() + duration })
    }
}

struct Sleep {
    hands: Rc<Hands>,
    end: Timestamp,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.hands.now.get() >= self.end {
            return Poll::Ready(());
        }
        let wakes = self.hands.wakes.get().map_or(self.end, |wakes| wakes.min(self.end));
        self.hands.wakes.set(Some(wakes));
        Poll::Pending
    }
}

/// Runs tasks until all of them sleep, and drops those that end. Returns when the first of them wakes.
pub fn poll(tasks: &mut Vec<BackgroundTask>, clock: &VirtualClock) -> Option<Timestamp> {
    // Twice: a task may end the wait of one that was polled before it.
    for _ in 0..2 {
        clock.0.wakes.set(None);
        tasks.retain_mut(|task| task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    clock.0.wakes.take()
}
