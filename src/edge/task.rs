//! Futures in wasm and promises in JavaScript: one callback settles every promise and polls the futures that wait for
//! it.

use std::{
    cell::RefCell,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

use futures_util::FutureExt;
use js_sys::Promise;
use rustc_hash::FxHashMap;
use wasm_bindgen::{JsValue, prelude::Closure};

use super::{
    glue::{self, Deferred},
    step_time,
};
use crate::ports::executor::{Completion, Executor, NewTask, Spawned};

thread_local! {
    static EXECUTOR: Executor<JsValue, Deferred> = Executor::default();
    static PROMISES: RefCell<FxHashMap<u32, PromiseState>> = RefCell::default();
}

enum PromiseState {
    Pending(Option<Waker>),
    Settled(Result<JsValue, JsValue>),
}

impl Completion<JsValue> for Deferred {
    fn complete(self, value: JsValue) {
        self.resolve(&value);
    }
}

/// Wakes the task with this id.
struct TaskWaker(u32);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if EXECUTOR.with(|executor| executor.wake(self.0)) {
            // The wake came from outside a step: a stream that the platform reads.
            glue::soon(0);
        }
    }
}

/// Installs the callback for promises. Called once, when the isolate starts.
pub fn listen() {
    let settle = Closure::<dyn Fn(u32, bool, JsValue)>::new(|id, is_fulfilled: bool, value| {
        settle(id, || if is_fulfilled { Ok(value) } else { Err(value) });
    });
    // The callback lives as long as the isolate.
    glue::listen(settle.into_js_value());
}

fn step<T>(work: impl FnOnce() -> T) -> T {
    EXECUTOR.with(|executor| executor.step(step_time::begin_step, work))
}

/// Settles a promise in a step, and runs the tasks that wait for it. `result` is not called if nothing waits.
pub fn settle(id: u32, result: impl FnOnce() -> Result<JsValue, JsValue>) {
    step(|| {
        let previous = PROMISES.with_borrow_mut(|promises| {
            promises.get_mut(&id).map(|state| mem::replace(state, PromiseState::Settled(result())))
        });
        if let Some(PromiseState::Pending(Some(waker))) = previous {
            waker.wake();
        }
    });
}

/// The result of [`run`].
pub enum Run {
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

/// Resolves after the current step.
pub fn soon() -> impl Future<Output = ()> {
    Settled::of(glue::soon).0.map(drop)
}

/// Polls a task once; a pending task goes on with the promises that it awaits.
pub fn run(work: impl Future<Output = JsValue> + 'static) -> Run {
    step(|| {
        EXECUTOR.with(|executor| {
            let id = executor.next_id();
            let waker = Waker::from(Arc::new(TaskWaker(id)));
            let mut promise = None;
            let completion = || {
                let deferred = glue::deferred();
                promise = Some(deferred.promise());
                deferred
            };
            match executor.spawn(NewTask { id, future: Box::pin(work), waker }, step_time::now, completion) {
                Spawned::Done(value) => Run::Done(value),
                Spawned::Pending => Run::Promised(promise.unwrap_or_else(|| Promise::resolve(&JsValue::UNDEFINED))),
            }
        })
    })
}

/// Resolves when a promise settles.
pub struct Settled(u32);

impl Settled {
    /// Starts an operation that settles the given id through [`listen`]'s callback.
    pub fn of<T>(start: impl FnOnce(u32) -> T) -> (Self, T) {
        let id = EXECUTOR.with(Executor::next_id);
        PROMISES.with_borrow_mut(|promises| promises.insert(id, PromiseState::Pending(None)));
        (Self(id), start(id))
    }
}

impl From<Promise> for Settled {
    fn from(promise: Promise) -> Self {
        Self::of(|id| glue::watch(&promise, id)).0
    }
}

impl Future for Settled {
    type Output = Result<JsValue, JsValue>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        PROMISES.with_borrow_mut(|promises| {
            match promises.get_mut(&self.0) {
                Some(PromiseState::Pending(waker)) => *waker = Some(context.waker().clone()),
                Some(PromiseState::Settled(result)) => {
                    return Poll::Ready(mem::replace(result, Ok(JsValue::UNDEFINED)));
                }
                None => {}
            }
            Poll::Pending
        })
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        // The state is dropped outside the borrow: it may own the last reference to something that uses the map.
        let state = PROMISES.with_borrow_mut(|promises| promises.remove(&self.0));
        drop(state);
    }
}
