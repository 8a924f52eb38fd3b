//! The body of a page whose holes are filled for one visitor. Everything before a hole is sent at once; the rest
//! follows when the hole's content has arrived.

use std::{
    any::Any,
    collections::HashMap,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, Stream, future::LocalBoxFuture};

use super::{
    holes::{Hole, HoleContent},
    stored_page::StoredPage,
};
use crate::ports::fetch::ByteStream;

/// The contents of holes, by the hole's index. A hole without an entry keeps the content of the stored page.
pub type Contents = HashMap<usize, Bytes>;

/// Contents that may be still arriving.
pub enum Source {
    Ready(Contents),
    Pending(LocalBoxFuture<'static, Contents>),
}

impl Source {
    fn poll(&mut self, context: &mut Context<'_>) -> Option<&Contents> {
        if let Self::Pending(future) = self
            && let Poll::Ready(contents) = future.poll_unpin(context)
        {
            *self = Self::Ready(contents);
        }
        match self {
            Self::Ready(contents) => Some(contents),
            Self::Pending(_) => None,
        }
    }
}

/// The stream of an assembled body.
pub struct AssembledBody {
    body: Bytes,
    holes: Vec<Hole>,
    /// Facts of the visitor's session.
    facts: Source,
    /// Elements of the origin's page that fills holes.
    elements: Source,
    /// The bytes of `body` that were sent or replaced.
    sent: usize,
    /// The index of the next hole.
    next: usize,
}

impl AssembledBody {
    /// `facts` fill the holes for [`HoleContent::User`] and [`HoleContent::Cart`], `elements` the others.
    #[must_use]
    pub fn new(page: &StoredPage, facts: Source, elements: Source) -> Self {
        Self { body: page.body.clone(), holes: page.holes.clone(), facts, elements, sent: 0, next: 0 }
    }

    fn take_until(&mut self, end: usize) -> Bytes {
        let part = self.body.slice(self.sent.min(end)..end);
        self.sent = end;
        part
    }
}

impl Stream for AssembledBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        // Both at once, so that one does not wait for the other.
        let (facts, elements) = (this.facts.poll(context).cloned(), this.elements.poll(context).cloned());
        let mut ready = BytesMut::new();
        while let Some(hole) = this.holes.get(this.next) {
            let contents = if matches!(hole.content, HoleContent::Element { .. }) { &elements } else { &facts };
            let (range, content) = (hole.range.clone(), contents.as_ref().map(|contents| contents.get(&this.next)));
            ready.extend_from_slice(&this.take_until(range.start));
            let Some(content) = content else { break };
            if let Some(content) = content {
                ready.extend_from_slice(content);
                this.sent = range.end;
            }
            this.next += 1;
        }
        let is_last = this.next == this.holes.len();
        if is_last {
            let rest = this.take_until(this.body.len());
            if ready.is_empty() && !rest.is_empty() {
                return Poll::Ready(Some(Ok(rest)));
            }
            ready.extend_from_slice(&rest);
        }
        match (ready.is_empty(), is_last) {
            (false, _) => Poll::Ready(Some(Ok(ready.freeze()))),
            (true, true) => Poll::Ready(None),
            (true, false) => Poll::Pending,
        }
    }
}

impl ByteStream for AssembledBody {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
