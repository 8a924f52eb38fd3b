//! The body of a page whose holes are filled for one visitor. Everything before a hole is sent at once; the rest
//! follows when the hole's content has arrived.

use std::{
    any::Any,
    collections::HashMap,
    io,
    ops::Range,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, Stream, future::LocalBoxFuture};

use super::HoleContent;
use crate::{
    page_cache::stored_page::StoredPage,
    ports::fetch::{Body, ByteStream},
    schema::redis::Redis,
};
use upstash_rest::SyncScope;

/// The contents of holes, by the hole's index. A hole without an entry keeps the content of the stored page.
pub type Contents = HashMap<usize, Bytes>;

/// Contents that may be still arriving.
pub enum Source {
    Ready(Contents),
    Pending(LocalBoxFuture<'static, Contents>),
}

impl Source {
    /// Its requests to Redis belong to the scope.
    pub fn in_scope(self, redis: &Redis, scope: &Rc<SyncScope>) -> Self {
        match self {
            Self::Pending(future) => Self::Pending(Box::pin(redis.in_scope(Some(scope.clone()), future))),
            ready @ Self::Ready(_) => ready,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        if let Self::Pending(future) = self
            && let Poll::Ready(contents) = future.poll_unpin(context)
        {
            *self = Self::Ready(contents);
        }
    }

    const fn contents(&self) -> Option<&Contents> {
        match self {
            Self::Ready(contents) => Some(contents),
            Self::Pending(_) => None,
        }
    }
}

/// The stream of an assembled body.
pub struct AssembledBody {
    body: Bytes,
    /// Each hole's place, and the index of its source.
    holes: Vec<(Range<usize>, usize)>,
    sources: Vec<Source>,
    /// The bytes of `body` that were sent or replaced.
    sent: usize,
    /// The index of the next hole.
    next: usize,
}

impl AssembledBody {
    /// `source_of` is the index of the source that fills a hole.
    #[must_use]
    pub fn new(page: &StoredPage, sources: Vec<Source>, source_of: impl Fn(&HoleContent) -> usize) -> Self {
        let holes = page.holes.iter().map(|hole| (hole.range.clone(), source_of(&hole.content))).collect();
        Self { body: page.body.read(), holes, sources, sent: 0, next: 0 }
    }

    /// The whole body, if all contents have arrived.
    fn whole(&self) -> Option<Bytes> {
        let mut whole = BytesMut::with_capacity(self.body.len());
        let mut sent = 0;
        for (index, (range, source)) in self.holes.iter().enumerate() {
            if let Some(content) = self.sources.get(*source)?.contents()?.get(&index) {
                whole.extend_from_slice(self.body.get(sent..range.start)?);
                whole.extend_from_slice(content);
                sent = range.end;
            }
        }
        whole.extend_from_slice(self.body.get(sent..)?);
        Some(whole.freeze())
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
        // All at once, so that none waits for another.
        this.sources.iter_mut().for_each(|source| source.poll(context));
        let mut ready = BytesMut::new();
        while let Some((range, source)) = this.holes.get(this.next).cloned() {
            let contents = this.sources.get(source).and_then(Source::contents);
            let filling = contents.map(|contents| contents.get(&this.next).cloned());
            ready.extend_from_slice(&this.take_until(range.start));
            let Some(filling) = filling else { break };
            if let Some(filling) = filling {
                ready.extend_from_slice(&filling);
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

/// Bytes if all contents have arrived, else a stream.
impl From<AssembledBody> for Body {
    fn from(body: AssembledBody) -> Self {
        body.whole().map_or_else(|| Self::Stream(Box::new(body)), Self::from)
    }
}

impl ByteStream for AssembledBody {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, rc::Rc, task::Waker};

    use futures_util::StreamExt;
    use proptest::prelude::*;

    use super::{super::Hole, *};
    use crate::page_cache::stored_page::tests::entry;

    /// Contents that arrive when the cell is set.
    fn later(contents: Contents, has_arrived: &Rc<Cell<bool>>) -> Source {
        let (has_arrived, mut contents) = (has_arrived.clone(), Some(contents));
        Source::Pending(Box::pin(std::future::poll_fn(move |_| match contents.take() {
            Some(ready) if has_arrived.get() => Poll::Ready(ready),
            kept => {
                contents = kept;
                Poll::Pending
            }
        })))
    }

    /// Everything that the stream gives without waiting.
    fn drain(stream: &mut AssembledBody) -> (Vec<u8>, bool) {
        let mut context = Context::from_waker(Waker::noop());
        let mut sent = Vec::new();
        loop {
            match stream.poll_next_unpin(&mut context) {
                Poll::Ready(Some(chunk)) => {
                    let chunk = chunk.unwrap();
                    assert!(!chunk.is_empty(), "an empty chunk would end a chunked body");
                    sent.extend_from_slice(&chunk);
                }
                Poll::Ready(None) => return (sent, true),
                Poll::Pending => return (sent, false),
            }
        }
    }

    /// Number of sources.
    const SOURCES: usize = 3;

    /// A part of a page: shared text, then a hole. The hole has shared content, which the visitor's own may replace.
    #[derive(Debug, Clone)]
    struct Part {
        text: String,
        shared: String,
        /// The index of the hole's source.
        source: usize,
        /// Each visitor's own content; None leaves the shared one.
        own: [Option<String>; 2],
    }

    fn parts() -> impl Strategy<Value = Vec<Part>> {
        let text = || "[a-z<>é]{0,6}";
        let own = || proptest::option::of("[A-Z]{0,6}");
        let part = (text(), text(), 0..SOURCES, own(), own());
        let part = part.prop_map(|(text, shared, source, one, other)| {
            // A digit tells whose content it is.
            let own = [one.map(|own| format!("1{own}")), other.map(|own| format!("2{own}"))];
            Part { text, shared, source, own }
        });
        proptest::collection::vec(part, 0..6)
    }

    fn page_of(parts: &[Part]) -> StoredPage {
        let (mut body, mut holes) = (String::new(), Vec::new());
        for part in parts {
            body.push_str(&part.text);
            let start = body.len();
            body.push_str(&part.shared);
            let content = match part.source {
                0 => HoleContent::User,
                index => HoleContent::Element { selector: "b".to_owned(), index },
            };
            holes.push(Hole { range: start..body.len(), content });
        }
        StoredPage { holes, ..entry(b"", body.into_bytes()) }
    }

    fn expected(parts: &[Part], visitor: usize) -> String {
        let own = |part: &Part| part.own[visitor].clone().unwrap_or_else(|| part.shared.clone());
        parts.iter().flat_map(|part| [part.text.clone(), own(part)]).collect()
    }

    fn source_of(content: &HoleContent) -> usize {
        if let HoleContent::Element { index, .. } = content { *index } else { 0 }
    }

    fn contents(parts: &[Part], visitor: usize, source: usize) -> Contents {
        let own = parts.iter().enumerate().filter(|(_, part)| part.source == source);
        own.filter_map(|(index, part)| Some((index, part.own[visitor].clone()?.into()))).collect()
    }

    proptest! {
        #[test]
        fn each_visitor_gets_the_shared_page_with_own_content_in_any_order(
            parts in parts(),
            order in Just([0, 1, 2, 3, 4, 5]).prop_shuffle(),
        ) {
            let page = page_of(&parts);
            let arrived: [Rc<Cell<bool>>; 2 * SOURCES] = Default::default();
            let mut streams = [0, 1].map(|visitor| {
                let source = |index| later(contents(&parts, visitor, index), &arrived[visitor * SOURCES + index]);
                AssembledBody::new(&page, (0..SOURCES).map(source).collect(), source_of)
            });
            let mut sent = [Vec::new(), Vec::new()];
            for arrival in order.into_iter().map(Some).chain([None]) {
                for (stream, sent) in streams.iter_mut().zip(&mut sent) {
                    sent.extend(drain(stream).0);
                    // Everything before the first hole is sent at once.
                    prop_assert!(sent.len() >= parts.first().map_or(0, |part| part.text.len()));
                }
                if let Some(arrival) = arrival {
                    arrived[arrival].set(true);
                }
            }
            for (visitor, sent) in sent.into_iter().enumerate() {
                prop_assert_eq!(String::from_utf8(sent).unwrap(), expected(&parts, visitor));
            }
            prop_assert_eq!(&page, &page_of(&parts), "the stored page is unchanged");
        }

        #[test]
        fn contents_that_have_arrived_are_sent_in_one_piece(parts in parts()) {
            let sources = (0..SOURCES).map(|source| Source::Ready(contents(&parts, 0, source))).collect();
            let body = AssembledBody::new(&page_of(&parts), sources, source_of);
            let bytes = match Body::from(body) {
                Body::Bytes(bytes) => bytes,
                body => {
                    prop_assert!(body.is_empty(), "{:?}", body);
                    Bytes::new()
                }
            };
            prop_assert_eq!(String::from_utf8(bytes.to_vec()).unwrap(), expected(&parts, 0));
        }
    }
}
