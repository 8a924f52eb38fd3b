//! Futures here and promises there.
//!
//! The bridge of `wasm-bindgen-futures` makes two functions of JavaScript for each promise that is awaited, which the collector must
//! hear of, and a microtask for each step of a future. Here one function hears of every promise, and whoever waits for it goes on at once.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures_util::{FutureExt, future::LocalBoxFuture};
use js_sys::Promise;
use rustc_hash::FxHashMap;
use wasm_bindgen::{JsValue, prelude::Closure};

use super::{
    clock::{self, PlatformClock},
    glue::{self, Deferred},
};
use crate::ports::time::{Clock, Timestamp};

/// How often abandoned tasks are looked for.
const SWEEP: Duration = Duration::from_mins(1);
/// A task that has not moved for so many sweeps belongs to a request that was ended (its client may go), of which the platform tells
/// nobody. No event of a cron takes longer.
const ABANDONED: u32 = 15;

thread_local! {
    static TASKS: Tasks = Tasks::default();
}

/// All that goes on in this isolate.
#[derive(Default)]
struct Tasks {
    waiting: RefCell<FxHashMap<u32, Task>>,
    /// Woken, in this order.
    ready: RefCell<VecDeque<u32>>,
    promises: RefCell<FxHashMap<u32, Settling>>,
    /// The last number that was given to a task or a promise; 0 is nobody's.
    last: Cell<u32>,
    /// Whoever is woken goes on before the platform gets the isolate back.
    is_running: Cell<bool>,
    swept: Cell<Option<Timestamp>>,
    sweeps: Cell<u32>,
}

struct Task {
    future: LocalBoxFuture<'static, JsValue>,
    waker: Waker,
    /// Who waits for its end.
    answer: Deferred,
    /// Sweeps until it last moved.
    moved: u32,
}

/// What is known of a promise.
enum Settling {
    Pending(Option<Waker>),
    Settled(Result<JsValue, JsValue>),
}

/// Wakes the task of that number.
struct Bell(u32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        TASKS.with(|tasks| {
            tasks.ready.borrow_mut().push_back(self.0);
            if !tasks.is_running.get() {
                // By what is no step of ours: a stream that the platform reads.
                glue::soon(0);
            }
        });
    }
}

/// Hears of promises from now on. Once, when the isolate starts.
pub fn listen() {
    let settle = Closure::<dyn Fn(u32, bool, JsValue)>::new(|promise, is_kept: bool, value| {
        TASKS.with(|tasks| tasks.enter(|| tasks.settle(promise, if is_kept { Ok(value) } else { Err(value) })));
    });
    // As long as the isolate lives.
    glue::listen(settle.into_js_value());
}

/// What comes of a task.
pub enum Run {
    /// It has ended: a promise costs as much as the rest of what waits for nobody.
    Done(JsValue),
    Promised(Promise),
}

impl From<Run> for JsValue {
    fn from(run: Run) -> Self {
        match run {
            Run::Done(value) => value,
            Run::Promised(promise) => promise.into(),
        }
    }
}

/// Resolves when this step is over.
pub fn soon() -> impl Future<Output = ()> {
    Settled::of(glue::soon).0.map(drop)
}

/// Runs a task until it waits for something.
pub fn run(work: impl Future<Output = JsValue> + 'static) -> Run {
    TASKS.with(|tasks| tasks.enter(|| tasks.begin(Box::pin(work))))
}

impl Tasks {
    /// A step: what the platform calls, and then whoever goes on since. A task may begin another one.
    fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.is_running.replace(true) {
            return work();
        }
        clock::moved_on();
        let done = work();
        self.go_on();
        self.is_running.set(false);
        done
    }

    fn number(&self) -> u32 {
        let number = self.last.get().checked_add(1).unwrap_or(1);
        self.last.set(number);
        number
    }

    fn begin(&self, mut future: LocalBoxFuture<'static, JsValue>) -> Run {
        let number = self.number();
        let waker = Waker::from(Arc::new(Bell(number)));
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => Run::Done(value),
            Poll::Pending => {
                self.sweep();
                let answer = glue::deferred();
                let promise = answer.promise();
                self.waiting.borrow_mut().insert(number, Task { future, waker, answer, moved: self.sweeps.get() });
                Run::Promised(promise)
            }
        }
    }

    fn go_on(&self) {
        while let Some(number) = self.next() {
            // Ended, or woken twice.
            let Some(mut task) = self.waiting.borrow_mut().remove(&number) else { continue };
            match task.future.as_mut().poll(&mut Context::from_waker(&task.waker)) {
                Poll::Ready(value) => task.answer.resolve(&value),
                Poll::Pending => {
                    task.moved = self.sweeps.get();
                    self.waiting.borrow_mut().insert(number, task);
                }
            }
        }
    }

    fn next(&self) -> Option<u32> {
        self.ready.borrow_mut().pop_front()
    }

    /// Drops what was abandoned.
    fn sweep(&self) {
        let now = PlatformClock.now();
        if self.swept.get().is_some_and(|swept| now.since(swept) < SWEEP) {
            return;
        }
        self.swept.set(Some(now));
        self.sweeps.set(self.sweeps.get() + 1);
        let is_abandoned = |task: &Task| self.sweeps.get() - task.moved > ABANDONED;
        let abandoned: Vec<_> = self.waiting.borrow_mut().extract_if(|_, task| is_abandoned(task)).collect();
        // Only now: what they hold may wake others.
        drop(abandoned);
    }

    fn settle(&self, promise: u32, result: Result<JsValue, JsValue>) {
        let settled =
            self.promises.borrow_mut().get_mut(&promise).map(|known| mem::replace(known, Settling::Settled(result)));
        if let Some(Settling::Pending(Some(waker))) = settled {
            waker.wake();
        }
    }
}

/// What becomes of a promise.
pub struct Settled(u32);

impl Settled {
    /// Of what `begin` begins: it tells [`listen`]'s function under that number.
    pub fn of<T>(begin: impl FnOnce(u32) -> T) -> (Self, T) {
        TASKS.with(|tasks| {
            let number = tasks.number();
            tasks.promises.borrow_mut().insert(number, Settling::Pending(None));
            (Self(number), begin(number))
        })
    }
}

impl From<Promise> for Settled {
    fn from(promise: Promise) -> Self {
        Self::of(|number| glue::watch(&promise, number)).0
    }
}

impl Future for Settled {
    type Output = Result<JsValue, JsValue>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        TASKS.with(|tasks| {
            let mut promises = tasks.promises.borrow_mut();
            match promises.get_mut(&self.0) {
                Some(Settling::Pending(waker)) => *waker = Some(context.waker().clone()),
                Some(Settling::Settled(result)) => return Poll::Ready(mem::replace(result, Ok(JsValue::UNDEFINED))),
                None => {}
            }
            Poll::Pending
        })
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        // Not while the table is borrowed: what it settled with may be the last of something.
        let known = TASKS.with(|tasks| tasks.promises.borrow_mut().remove(&self.0));
        drop(known);
    }
}
