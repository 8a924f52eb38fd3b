//! Bodies, both ways. One that is only passed on stays the platform's own stream: its bytes never enter wasm.

use std::{
    any::Any,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use js_sys::Uint8Array;
use wasm_bindgen::{JsCast, JsValue};
use wasm_streams::{ReadableStream, readable::IntoStream};
use worker::web_sys;

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
    Reading(IntoStream<'static>),
}

impl Stream for PlatformStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Self::Untouched(stream) = &*self {
            let stream = ReadableStream::from_raw(stream.clone().unchecked_into());
            *self = Self::Reading(stream.try_into_stream().map_err(|_| io::ErrorKind::InvalidData)?);
        }
        let Self::Reading(stream) = &mut *self else { return Poll::Ready(None) };
        let chunk = std::task::ready!(stream.poll_next_unpin(context));
        // Whatever ends a stream early, the reason is in the platform's log; what counts is that it is not whole.
        Poll::Ready(chunk.map(|chunk| match chunk.map(JsCast::dyn_into::<Uint8Array>) {
            Ok(Ok(chunk)) => Ok(chunk.to_vec().into()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }))
    }
}

impl ByteStream for PlatformStream {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
