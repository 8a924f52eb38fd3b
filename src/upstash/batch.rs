//! What concurrent requests of one isolate ask of Redis, in one pipeline: to send a request of its own for each costs a Worker more than all
//! else that such an answer takes. Plain data only; whose call it is, is known by its place.
//!
//! The first call of a batch sends it, for all that join until then. A call that finds nothing on its way goes at once, alone: who has the
//! isolate for themselves waits for nobody. Otherwise it lets the platform begin what has arrived meanwhile, a turn of its loop: the busier
//! the isolate is, the more calls share a request. Each call has its own deadline, its own retry, and its own error from what is the
//! same for all.
//!
//! A request that is ended (its client may go) does not end the batch that it sends: the platform keeps what it awaits, a turn and an
//! exchange. If it is ended all the same, those who joined learn it when its work is dropped, or run into their deadlines, and nobody
//! joins after [`PATIENCE`].

use std::{
    cell::{Cell, RefCell},
    rc::{Rc, Weak},
    time::Duration,
};

use super::{
    command::{Command, ScriptForm},
    error::Error,
    reply::Reply,
};
use crate::ports::{
    fetch::FetchError,
    time::{Alarm, Clock, Timestamp, Wake},
};

/// Calls in one batch. Their commands run one after the other, so the last waits for all.
const MOST_CALLS: usize = 16;
/// Bytes of commands that others may join: half a dozen pages, and no two calls of a cleaning, which are to be on their way side by side.
const MOST_BYTES: usize = 128 << 10;
/// Bytes of a call that is long, as that of a page which is stored.
const LONG: usize = 8 << 10;
/// Bytes of the replies that are expected to be large, together: a third of what one answer may have.
const MOST_REPLIES: usize = 8 << 20;
/// How long a batch may wait for its first call to send it; a turn of a busy isolate takes some 10 ms.
const PATIENCE: Duration = Duration::from_millis(100);

/// Commands that are sent together.
pub(super) struct Call {
    /// Each behind a comma, so that others may follow.
    json: Vec<u8>,
    pub commands: usize,
    replies: usize,
}

impl Call {
    /// # Errors
    /// [`Error::NotUtf8`].
    pub fn new(commands: &[Command], form: ScriptForm) -> Result<Self, Error> {
        let mut json = Vec::new();
        for command in commands {
            command.write_json(form, &mut json)?;
        }
        let replies = commands.iter().map(Command::expected).sum();
        Ok(Self { json, commands: commands.len(), replies })
    }

    /// The body of a request of its own.
    pub fn body(self) -> Vec<u8> {
        list(self.json)
    }
}

/// A list of what stands behind commas.
fn list(mut json: Vec<u8>) -> Vec<u8> {
    if let Some(first) = json.first_mut() {
        *first = b'[';
    }
    json.push(b']');
    json
}

/// The replies to one call.
pub(super) type Answer = Result<Vec<Result<Reply, Error>>, Error>;

/// The batches of one database: nobody with a short question shares a request with what is long.
#[derive(Default)]
pub(super) struct Batches {
    short: Rc<Line>,
    long: Rc<Line>,
}

/// Batches one after the other.
#[derive(Default)]
struct Line {
    /// The one that may be joined.
    open: RefCell<Weak<Batch>>,
    /// On its way. Not every request that is ended drops its work: then calls that could go at once wait a turn.
    under_way: Cell<usize>,
}

/// Calls that are sent together.
pub(super) struct Batch {
    opened: Timestamp,
    /// As a call's.
    json: RefCell<Vec<u8>>,
    replies: Cell<usize>,
    /// How many commands its first call has.
    first: usize,
    others: RefCell<Vec<Other>>,
    is_sent: Cell<bool>,
    line: Rc<Line>,
}

/// A call that joined.
struct Other {
    commands: usize,
    answer: Slot,
    bell: Wake,
}

/// Where the answer is put.
type Slot = Rc<Cell<Option<Answer>>>;

/// Where a call has its place.
pub(super) enum Place {
    /// It sends the batch.
    First(Rc<Batch>),
    /// Another one does.
    Behind(Seat),
}

/// Waits for what another call sends.
pub(super) struct Seat {
    answer: Slot,
    alarm: Alarm,
}

impl Batches {
    /// Finds the place of a call that is to be answered `until` then.
    pub fn join(&self, call: Call, clock: &dyn Clock, until: Timestamp) -> Place {
        let now = clock.now();
        let line = if call.json.len() > LONG { &self.long } else { &self.short };
        let mut open = line.open.borrow_mut();
        if let Some(batch) = open.upgrade().filter(|batch| batch.has_room(&call, now)) {
            return Place::Behind(batch.seat(&call, clock, until.since(now)));
        }
        let batch = Rc::new(Batch {
            opened: now,
            json: RefCell::new(call.json),
            replies: Cell::new(call.replies),
            first: call.commands,
            others: RefCell::default(),
            is_sent: Cell::new(false),
            line: line.clone(),
        });
        *open = Rc::downgrade(&batch);
        Place::First(batch)
    }
}

impl Batch {
    /// Lets nobody join any more, once what arrives meanwhile had its turn; the body to be sent.
    pub async fn close(&self, clock: &dyn Clock) -> Vec<u8> {
        let Line { open, under_way } = &*self.line;
        if under_way.get() > 0 {
            clock.turn().await;
        }
        let mut open = open.borrow_mut();
        if std::ptr::eq(open.as_ptr(), self) {
            *open = Weak::new();
        }
        under_way.set(under_way.get() + 1);
        self.is_sent.set(true);
        list(self.json.take())
    }

    fn has_room(&self, call: &Call, now: Timestamp) -> bool {
        now.since(self.opened) < PATIENCE
            && self.others.borrow().len() + 1 < MOST_CALLS
            && self.json.borrow().len() + call.json.len() <= MOST_BYTES
            && self.replies.get() + call.replies <= MOST_REPLIES
    }

    fn seat(&self, call: &Call, clock: &dyn Clock, patience: Duration) -> Seat {
        self.json.borrow_mut().extend_from_slice(&call.json);
        self.replies.set(self.replies.get() + call.replies);
        let (alarm, bell) = clock.alarm(patience);
        let answer = Slot::default();
        self.others.borrow_mut().push(Other { commands: call.commands, answer: answer.clone(), bell });
        Seat { answer, alarm }
    }

    /// Gives each call its part of the answer; the first one's comes back.
    pub fn share_out(&self, answer: Answer) -> Answer {
        let others = self.others.take();
        let expected: usize = others.iter().map(|other| other.commands).sum();
        let mut first = match answer {
            Ok(items) if items.len() != self.first + expected => Err(Error::UnexpectedType),
            answer => answer,
        };
        let mut rest =
            first.as_mut().map(|items| items.split_off(self.first).into_iter()).map_err(|error| error.clone());
        for Other { commands, answer, bell } in others {
            let part = rest.as_mut().map(|items| items.take(commands).collect()).map_err(|error| error.clone());
            answer.set(Some(part));
            bell();
        }
        first
    }
}

/// Whoever is left without an answer is told so.
impl Drop for Batch {
    fn drop(&mut self) {
        if self.is_sent.get() {
            self.line.under_way.set(self.line.under_way.get().saturating_sub(1));
        }
        for Other { answer, bell, .. } in self.others.take() {
            answer.set(Some(Err(FetchError::Unreachable.into())));
            bell();
        }
    }
}

impl Seat {
    /// The answer, if it comes in time.
    pub async fn wait(self) -> Answer {
        self.alarm.await;
        self.answer.take().unwrap_or(Err(FetchError::Timeout.into()))
    }
}
