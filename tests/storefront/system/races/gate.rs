//! A gate that every request passes. The gate holds each request until the schedule releases it, one at a time, and
//! holds the response until the schedule delivers it. So a list of numbers determines the order in which Redis sees the
//! requests of many actors, and the same list replays this order. Only released requests do real I/O.

use std::{
    cell::{Cell, RefCell},
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake},
    time::Duration,
};

use bytes::Bytes;
use edgefront::{
    config::RedisConfig,
    ports::{
        fetch::{Body, Collected, Fetch, FetchError, Request, Response},
        time::{self, Alarm, Clock, Timestamp},
    },
    schema::{redis::Redis, scripts},
};
use futures_util::{Stream, future::LocalBoxFuture, stream::FuturesUnordered};
use tokio::sync::oneshot;
use upstash_rest::{ExchangeTerms, TransportError};

use crate::support::{NativeFetch, TestClock};

/// Longer than the time of any case.
const FOR_EVER: Duration = Duration::from_hours(24);
/// The largest body that passes the gate, bytes.
const BODY: usize = 8 << 20;

/// The place where the requests of all actors wait.
#[derive(Clone)]
pub struct Gate(Rc<Inner>);

struct Inner {
    fetch: NativeFetch,
    clock: TestClock,
    held: RefCell<Vec<Held>>,
    /// The number of the next entry.
    next: Cell<u64>,
    /// Work that starts beside the actors.
    spawned: RefCell<Vec<Actor>>,
    /// The released requests, one line each.
    trace: RefCell<Vec<String>>,
}

/// An actor sends requests. An error describes a wrong response.
pub type Actor = LocalBoxFuture<'static, Result<(), String>>;

struct Held {
    /// A request and its response have the same number.
    number: u64,
    door: usize,
    label: String,
    what: What,
}

enum What {
    /// Sends a request; the result delivers the response.
    Send(LocalBoxFuture<'static, Deliver>),
    Deliver(Deliver),
    /// Moves the clock to this time and wakes the sleeper.
    Sleep(Timestamp, oneshot::Sender<()>),
}

type Deliver = Box<dyn FnOnce()>;

impl Gate {
    pub fn new(clock: &TestClock) -> Self {
        let (held, next, spawned, trace) = Default::default();
        Self(Rc::new(Inner { fetch: NativeFetch::new(), clock: clock.clone(), held, next, spawned, trace }))
    }

    /// The door of one actor, or of one isolate.
    pub fn door(&self, number: usize) -> Door {
        Door { gate: self.clone(), number }
    }

    /// Runs `work` beside the actors.
    pub fn spawn(&self, work: Actor) {
        self.0.spawned.borrow_mut().push(work);
    }

    /// The requests released so far, one line each.
    pub fn trace(&self) -> String {
        self.0.trace.borrow().join("\n")
    }

    fn hold(&self, door: usize, label: String, what: What) {
        let number = self.0.next.replace(self.0.next.get() + 1);
        self.0.held.borrow_mut().push(Held { number, door, label, what });
    }

    /// The numbers of all entries of `door`.
    pub fn held_by(&self, door: usize) -> Vec<u64> {
        self.0.held.borrow().iter().filter(|held| held.door == door).map(|held| held.number).collect()
    }

    /// The numbers of the sleepers of `door` whose time has come.
    pub fn due(&self, door: usize) -> Vec<u64> {
        let now = self.0.clock.now();
        let is_due = |held: &&Held| held.door == door && matches!(held.what, What::Sleep(end, _) if end <= now);
        self.0.held.borrow().iter().filter(is_due).map(|held| held.number).collect()
    }

    /// A description of the entry under `number`.
    pub fn label(&self, number: u64) -> String {
        let held = self.0.held.borrow();
        held.iter().find(|held| held.number == number).map_or_else(String::new, |held| held.label.clone())
    }

    /// Drops all entries of `door`, because nobody waits for them any more.
    pub fn forget(&self, door: usize) {
        self.0.held.borrow_mut().retain(|held| held.door != door);
    }

    /// Takes the next step of the entry `number`: sends a request and holds its response, delivers a response, or wakes
    /// a sleeper. False if there is no such entry.
    pub async fn step(&self, number: u64) -> bool {
        let found = self.0.held.borrow().iter().position(|held| held.number == number);
        let Some(place) = found else { return false };
        let Held { number, door, label, what } = self.0.held.borrow_mut().remove(place);
        match what {
            What::Send(request) => {
                let what = What::Deliver(request.await);
                self.0.held.borrow_mut().push(Held { number, door, label, what });
            }
            What::Deliver(deliver) => deliver(),
            What::Sleep(end, wake) => {
                self.0.clock.advance(end.since(self.0.clock.now()));
                let _ = wake.send(());
            }
        }
        true
    }

    /// Plays `actors` to their end. Each number of `schedule`, modulo the number of entries, selects the next entry in
    /// the order of the doors, sleepers last. After the end of `schedule`, the first entry is always next. So a schedule
    /// of zeros runs one actor after the other. `executed` runs after Redis has executed a request and before the actor
    /// gets the response.
    ///
    /// # Errors
    /// The first error of an actor or of `executed`.
    pub async fn play(
        &self,
        actors: Vec<Actor>,
        schedule: &[u8],
        mut executed: impl AsyncFnMut(usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut running: FuturesUnordered<_> = actors.into_iter().collect();
        let mut schedule = schedule.iter();
        loop {
            advance(&mut running)?;
            let spawned = self.0.spawned.take();
            if !spawned.is_empty() {
                running.extend(spawned);
                continue;
            }
            let Some(next) = self.take(usize::from(*schedule.next().unwrap_or(&0))) else {
                return if running.is_empty() { Ok(()) } else { Err("an actor waits for nothing".to_owned()) };
            };
            let Held { door, label, what, .. } = next;
            match what {
                What::Send(request) => {
                    self.0.trace.borrow_mut().push(format!("{door}: {label}"));
                    let deliver = request.await;
                    self.hold(door, format!("answered: {label}"), What::Deliver(deliver));
                    executed(door).await?;
                }
                What::Deliver(deliver) => {
                    self.0.trace.borrow_mut().push(format!("{door}: {label}"));
                    deliver();
                }
                What::Sleep(end, wake) => {
                    self.0.trace.borrow_mut().push(format!("{door}: slept"));
                    self.0.clock.advance(end.since(self.0.clock.now()));
                    let _ = wake.send(());
                }
            }
        }
    }

    /// Removes the `number`-th entry.
    fn take(&self, number: usize) -> Option<Held> {
        let mut held = self.0.held.borrow_mut();
        held.retain(|held| !matches!(&held.what, What::Sleep(_, sleeper) if sleeper.is_closed()));
        // Sleepers come last, the earliest first: time passes only when nothing else can happen. The other entries of a
        // door keep their order.
        held.sort_by_key(|held| match held.what {
            What::Sleep(end, _) => (Some(end), held.door),
            _ => (None, held.door),
        });
        let place = number.checked_rem(held.len())?;
        Some(held.remove(place))
    }
}

/// Polls the actors until none can proceed.
pub fn advance(running: &mut FuturesUnordered<Actor>) -> Result<(), String> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = woken.clone().into();
    let mut context = Context::from_waker(&waker);
    while woken.0.swap(false, Ordering::SeqCst) {
        while let Poll::Ready(Some(ended)) = pin!(&mut *running).poll_next(&mut context) {
            ended?;
        }
    }
    Ok(())
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// An actor's way through the gate.
#[derive(Clone)]
pub struct Door {
    gate: Gate,
    number: usize,
}

impl Door {
    /// A client of Redis whose requests and clock pass this door. No call misses its deadline, although time jumps.
    pub fn redis(&self, config: &RedisConfig) -> Redis {
        let (fetch, clock) = (Rc::new(self.clone()), Rc::new(self.clone()));
        Redis::new(fetch, clock, config.credentials.clone(), FOR_EVER, config.keys)
    }

    fn send<T: 'static>(
        &self,
        label: String,
        request: impl Future<Output = T> + 'static,
    ) -> LocalBoxFuture<'static, T> {
        let (deliver, delivered) = oneshot::channel();
        let send = async move {
            let answer = request.await;
            // An actor that has gone away needs no response.
            Box::new(move || drop(deliver.send(answer))) as Deliver
        };
        self.gate.hold(self.number, label, What::Send(Box::pin(send)));
        wait(delivered)
    }
}

fn wait<T: 'static>(delivered: oneshot::Receiver<T>) -> LocalBoxFuture<'static, T> {
    // Otherwise tokio may let an actor wait although its response is there.
    let delivered = tokio::task::unconstrained(delivered);
    Box::pin(async move { delivered.await.expect("the gate holds what it has not delivered") })
}

impl Fetch for Door {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        let fetch = self.gate.0.fetch.clone();
        let label = format!("{} {}", request.method(), request.uri().path());
        self.send(label, async move { whole(fetch.fetch(request, deadline).await?).await })
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let fetch = self.gate.0.fetch.clone();
        self.send(commands(request.body()), async move { fetch.exchange(request, terms).await })
    }
}

/// A door that only the first request passes.
pub struct FirstRequest {
    pub door: Door,
    pub is_used: Cell<bool>,
}

impl Fetch for FirstRequest {
    fn fetch(&self, request: Request, deadline: Duration) -> LocalBoxFuture<'_, Result<Response, FetchError>> {
        self.door.fetch(request, deadline)
    }

    fn exchange(
        &self,
        request: http::Request<Bytes>,
        terms: ExchangeTerms,
    ) -> LocalBoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        if self.is_used.replace(true) {
            return Box::pin(async { Err(TransportError::Unreachable) });
        }
        self.door.exchange(request, terms)
    }
}

/// The clock of the test. A sleeper is held until the schedule wakes it.
impl Clock for Door {
    fn now(&self) -> Timestamp {
        self.gate.0.clock.now()
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        self.gate.hold(self.number, String::new(), What::Sleep(self.now() + duration, wake));
        wait(woken)
    }

    /// Ignores the time, because the gate delivers every response in the end.
    fn alarm(&self, _: Duration) -> (Alarm, time::Wake) {
        let (bell, ringing) = oneshot::channel();
        (
            wait(ringing),
            Box::new(move || {
                let _ = bell.send(());
            }),
        )
    }
}

/// A description of a request to Redis.
fn commands(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body).replace(['[', ']', '"'], "").replace(',', " ");
    let named = scripts::ALL.iter().fold(text, |text, script| text.replace(script.sha1, script.name));
    named.chars().take(300).collect()
}

async fn whole(response: Response) -> Result<Response, FetchError> {
    let (head, body) = response.into_parts();
    match body.collect(BODY).await {
        Ok(Collected::Whole(bytes)) => Ok(Response::from_parts(head, Body::from(bytes))),
        _ => Err(FetchError::Unreachable),
    }
}
