//! The body of a stream, and the events that wait for the client. Their number of bytes is limited. So Redis never
//! waits for a client, and a client that does not read takes a known amount of memory.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use crate::gateway::Slot;

/// The body of a stream. Its stream ends when it is dropped.
pub(crate) struct EventBody {
    events: mpsc::UnboundedReceiver<Bytes>,
    waiting_bytes: Arc<AtomicUsize>,
    /// The place of the stream.
    _slot: Slot,
}

/// The other end of an [`EventBody`].
pub(super) struct EventSender {
    events: mpsc::UnboundedSender<Bytes>,
    waiting_bytes: Arc<AtomicUsize>,
    max_waiting_bytes: usize,
}

/// A body, and the sender of its events.
pub(super) fn channel(max_waiting_bytes: usize, slot: Slot) -> (EventSender, EventBody) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let body = EventBody { events: receiver, waiting_bytes: Arc::clone(&waiting_bytes), _slot: slot };
    (EventSender { events: sender, waiting_bytes, max_waiting_bytes }, body)
}

impl EventSender {
    /// Queues events. Returns false if others wait and the limit leaves no room.
    pub(super) fn send(&self, events: Vec<u8>) -> bool {
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        let has_room = waiting == 0 || waiting.saturating_add(events.len()) <= self.max_waiting_bytes;
        if has_room {
            self.send_last(events);
        }
        has_room
    }

    /// Queues events, even if there is no room.
    pub(super) fn send_last(&self, events: Vec<u8>) {
        self.waiting_bytes.fetch_add(events.len(), Ordering::Relaxed);
        // The client may be gone.
        let _ = self.events.send(events.into());
    }

    /// Returns when the client is gone.
    pub(super) async fn closed(&self) {
        self.events.closed().await;
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let events = ready!(self.events.poll_recv(context));
        Poll::Ready(events.map(|events| {
            self.waiting_bytes.fetch_sub(events.len(), Ordering::Relaxed);
            Ok(Frame::data(events))
        }))
    }
}
