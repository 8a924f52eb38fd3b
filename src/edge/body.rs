//! Bodies, both ways. One that is only passed on stays the platform's own stream: its bytes never enter wasm.

use std::{
    any::Any,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use wasm_streams::ReadableStream;
use worker::web_sys;

use super::glue::{self, Reader};
use crate::fetch::{Body, ByteStream};

/// The most that one chunk may have.
const CHUNK: usize = 16 << 10;

/// A body of the platform; its `length` if that is certain.
pub fn read(stream: Option<web_sys::ReadableStream>, length: Option<usize>) -> Body {
    stream.map_or(Body::Empty, |stream| Body::Stream(Box::new(PlatformStream::Untouched { stream, left: length })))
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
    if let Some(PlatformStream::Untouched { stream, .. }) = stream.as_any().downcast_ref() {
        return stream.into();
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
        stream: web_sys::ReadableStream,
        /// Its length, if that is certain.
        left: Option<usize>,
    },
    Reading {
        reader: Reader,
        /// The chunk that is on its way. None: it was read to its end, or broke off.
        chunk: Option<JsFuture>,
        /// How many bytes are still to come, if that is certain.
        left: Option<usize>,
    },
}

impl Stream for PlatformStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Self::Untouched { stream, left } = &*self {
            let (reader, left) = (glue::reader(stream).map_err(|_| io::ErrorKind::InvalidData)?, *left);
            *self = Self::Reading { chunk: next_chunk(&reader, left), reader, left };
        }
        let Self::Reading { reader, chunk: next, left } = &mut *self else { return Poll::Ready(None) };
        let Some(chunk) = next else { return Poll::Ready(None) };
        let chunk = std::task::ready!(chunk.poll_unpin(context)).map(glue::bytes_of);
        *next = None;
        // Whatever ends a stream early, the reason is in the platform's log; what counts is that it is not whole.
        Poll::Ready(match chunk {
            Ok(Some(chunk)) => {
                let chunk = chunk.to_vec();
                *left = left.map(|left| left.saturating_sub(chunk.len()));
                *next = next_chunk(reader, *left);
                Some(Ok(chunk.into()))
            }
            Ok(None) => None,
            Err(_) => Some(Err(io::ErrorKind::UnexpectedEof.into())),
        })
    }
}

/// Asks for the next chunk where `left` bytes are to come. None if there can be none: to ask for the end costs as much as to ask for a chunk.
fn next_chunk(reader: &Reader, left: Option<usize>) -> Option<JsFuture> {
    let most = left.unwrap_or(CHUNK).min(CHUNK);
    (most > 0).then(|| glue::next_chunk(reader, most).into())
}

/// Who stops reading wants no more of it.
impl Drop for PlatformStream {
    fn drop(&mut self) {
        if let Self::Reading { reader, chunk: Some(_), .. } = self {
            glue::cancel(reader);
        }
    }
}

impl ByteStream for PlatformStream {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
