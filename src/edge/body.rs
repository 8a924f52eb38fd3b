//! Bodies, both ways. One that is only passed on stays the platform's own stream: its bytes never enter wasm.

use std::{
    any::Any,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use http::{HeaderMap, header};
use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use wasm_streams::ReadableStream;
use worker::web_sys;

use super::glue::{self, Message, Reader};
use crate::fetch::{Body, ByteStream, content_length};

/// A body that is known to have no more comes in one piece.
const PIECE: usize = 64 << 10;

/// The body of a request with these headers.
pub fn of_request(request: Message, headers: &HeaderMap) -> Body {
    // What ends it, where nothing else does (RFC 9112 §6.3).
    match content_length(headers).filter(|_| !headers.contains_key(header::TRANSFER_ENCODING)) {
        Some(0) => Body::Empty,
        Some(1..=PIECE) => Body::Stream(Box::new(PlatformStream::Short(request))),
        _ => in_chunks(&request),
    }
}

/// The body of a message whose length nobody knows, or of a response: a slow one passes while it comes, however short it is.
pub fn in_chunks(message: &Message) -> Body {
    message.body().map_or(Body::Empty, |stream| Body::Stream(Box::new(PlatformStream::Long(stream))))
}

/// A body as the platform takes it: null, bytes, or a stream.
pub fn write(body: Body) -> JsValue {
    match body {
        Body::Empty => JsValue::NULL,
        Body::Bytes(bytes) => Uint8Array::from(bytes.as_ref()).into(),
        Body::Kept(kept) => Uint8Array::from(kept.bytes.as_ref()).into(),
        Body::Stream(stream) => write_stream(stream),
    }
}

fn write_stream(mut stream: Box<dyn ByteStream>) -> JsValue {
    match stream.as_any().downcast_ref() {
        Some(PlatformStream::Short(message)) => return message.body().into(),
        Some(PlatformStream::Long(stream)) => return stream.into(),
        _ => {}
    }
    let chunks = stream.map(|chunk| match chunk {
        Ok(chunk) => Ok(Uint8Array::from(chunk.as_ref()).into()),
        Err(error) => Err(js_sys::Error::new(&error.to_string()).into()),
    });
    ReadableStream::from_stream(chunks).into_raw().into()
}

/// A stream of the platform, untouched until it is read here.
enum PlatformStream {
    /// Untouched, and known to be short.
    Short(Message),
    /// Untouched.
    Long(web_sys::ReadableStream),
    /// In one piece. None: it has come, or broke off.
    Piece(Option<JsFuture>),
    Chunks {
        reader: Reader,
        /// The one that is on its way. None: it was read to its end, or broke off.
        next: Option<JsFuture>,
    },
}

impl Stream for PlatformStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        match stream {
            Self::Short(message) => *stream = Self::Piece(Some(message.bytes().into())),
            Self::Long(body) => {
                let reader = glue::reader(body).map_err(|_| io::ErrorKind::InvalidData)?;
                *stream = Self::Chunks { next: Some(glue::next_chunk(&reader).into()), reader };
            }
            Self::Piece(_) | Self::Chunks { .. } => {}
        }
        let (Self::Piece(next) | Self::Chunks { next, .. }) = stream else { return Poll::Ready(None) };
        let Some(chunk) = next else { return Poll::Ready(None) };
        let chunk = std::task::ready!(chunk.poll_unpin(context)).map(glue::bytes_of);
        *next = None;
        // Whatever ends a stream early, the reason is in the platform's log; what counts is that it is not whole.
        Poll::Ready(match chunk {
            Ok(Some(chunk)) => {
                if let Self::Chunks { reader, next } = stream {
                    *next = Some(glue::next_chunk(reader).into());
                }
                Some(Ok(chunk.to_vec().into()))
            }
            Ok(None) => None,
            Err(_) => Some(Err(io::ErrorKind::UnexpectedEof.into())),
        })
    }
}

/// Who stops reading wants no more of it.
impl Drop for PlatformStream {
    fn drop(&mut self) {
        if let Self::Chunks { reader, next: Some(_) } = self {
            glue::cancel(reader);
        }
    }
}

impl ByteStream for PlatformStream {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
