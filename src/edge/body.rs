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

/// A body of the platform.
pub fn read(stream: Option<web_sys::ReadableStream>) -> Body {
    stream.map_or(Body::Empty, |stream| Body::Stream(Box::new(PlatformStream::Untouched(stream))))
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
    if let Some(PlatformStream::Untouched(stream)) = stream.as_any().downcast_ref() {
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
    Untouched(web_sys::ReadableStream),
    Reading(Reading),
    /// It was read to its end, or broke off.
    Over,
}

/// A stream that is read, and the chunk that is on its way.
struct Reading {
    reader: Reader,
    chunk: JsFuture,
}

impl Stream for PlatformStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Self::Untouched(stream) = &*self {
            let reader = glue::reader(stream).map_err(|_| io::ErrorKind::InvalidData)?;
            let chunk = glue::next_chunk(&reader).into();
            *self = Self::Reading(Reading { reader, chunk });
        }
        let Self::Reading(reading) = &mut *self else { return Poll::Ready(None) };
        let chunk = std::task::ready!(reading.chunk.poll_unpin(context));
        // Whatever ends a stream early, the reason is in the platform's log; what counts is that it is not whole.
        Poll::Ready(match chunk.map(glue::bytes_of) {
            Ok(Some(chunk)) => {
                reading.chunk = glue::next_chunk(&reading.reader).into();
                Some(Ok(chunk.to_vec().into()))
            }
            Ok(None) => {
                *self = Self::Over;
                None
            }
            Err(_) => {
                *self = Self::Over;
                Some(Err(io::ErrorKind::UnexpectedEof.into()))
            }
        })
    }
}

/// Who stops reading wants no more of it.
impl Drop for PlatformStream {
    fn drop(&mut self) {
        if let Self::Reading(reading) = self {
            glue::cancel(&reading.reader);
        }
    }
}

impl ByteStream for PlatformStream {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
