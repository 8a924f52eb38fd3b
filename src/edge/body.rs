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

use super::glue::{self, Message, Reader};
use crate::fetch::{Body, ByteStream, content_length};

/// The most that one chunk may have.
const CHUNK: usize = 16 << 10;
/// A body that is known to have no more comes in one piece.
const PIECE: usize = 64 << 10;

/// The body of a request or a response with these headers.
pub fn read(message: Message, headers: &HeaderMap) -> Body {
    match length(headers) {
        Some(0) => Body::Empty,
        None if message.body().is_none() => Body::Empty,
        length => Body::Stream(Box::new(PlatformStream::Untouched { message, length })),
    }
}

/// A body's length, where nothing else ends it (RFC 9112 §6.3), and the platform has not unpacked it.
fn length(headers: &HeaderMap) -> Option<usize> {
    let is_another = |name| headers.contains_key(name);
    let is_certain = !is_another(header::TRANSFER_ENCODING) && !is_another(header::CONTENT_ENCODING);
    content_length(headers).filter(|_| is_certain)
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
    if let Some(PlatformStream::Untouched { message, .. }) = stream.as_any().downcast_ref() {
        return message.body().into();
    }
    let chunks = stream.map(|chunk| match chunk {
        Ok(chunk) => Ok(Uint8Array::from(chunk.as_ref()).into()),
        Err(error) => Err(js_sys::Error::new(&error.to_string()).into()),
    });
    ReadableStream::from_stream(chunks).into_raw().into()
}

/// A stream of the platform, untouched until it is read here.
enum PlatformStream {
    Untouched {
        message: Message,
        /// If that is certain.
        length: Option<usize>,
    },
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
        if let Self::Untouched { message, length } = stream {
            *stream = if length.is_some_and(|length| length <= PIECE) {
                Self::Piece(Some(message.bytes().into()))
            } else {
                let reader =
                    message.body().and_then(|stream| glue::reader(&stream).ok()).ok_or(io::ErrorKind::InvalidData)?;
                Self::Chunks { next: Some(glue::next_chunk(&reader, CHUNK).into()), reader }
            };
        }
        let (Self::Piece(next) | Self::Chunks { next, .. }) = stream else { return Poll::Ready(None) };
        let Some(chunk) = next else { return Poll::Ready(None) };
        let chunk = std::task::ready!(chunk.poll_unpin(context)).map(glue::bytes_of);
        *next = None;
        // Whatever ends a stream early, the reason is in the platform's log; what counts is that it is not whole.
        Poll::Ready(match chunk {
            Ok(Some(chunk)) => {
                if let Self::Chunks { reader, next } = stream {
                    *next = Some(glue::next_chunk(reader, CHUNK).into());
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
