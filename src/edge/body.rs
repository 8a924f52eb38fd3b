//! Converts bodies in both directions. A body that is only passed on stays the platform's own stream: its bytes never
//! enter wasm. If edgefront has read the beginning, the platform copies the rest.

use std::{
    any::Any,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use http::{HeaderMap, StatusCode, header};
use js_sys::Uint8Array;
use wasm_bindgen::JsValue;
use wasm_streams::ReadableStream;
use worker::web_sys;

use super::{
    glue::{self, Message, Reader},
    task::Settled,
};
use crate::ports::{
    fetch::{Body, ByteStream, Prefixed, content_length},
    held::{Content, HeldBytes},
};

/// A body of at most this length is read in one piece, bytes: one promise instead of a reader.
const PIECE: u64 = 64 << 10;

/// The body of a request with these headers.
pub fn of_request(request: Message, headers: &HeaderMap) -> Body {
    match length(headers) {
        Some(0) => Body::Empty,
        Some(1..=PIECE) => Body::Stream(Box::new(PlatformStream::Short(request))),
        length => in_chunks(&request, length),
    }
}

/// The body of a response with these headers. A body of unknown length is read in chunks: it may be slow, and reaches
/// the visitor while it arrives.
pub fn of_response(response: Message, head: &http::Response<()>) -> Body {
    if head.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Body::Stream(Box::new(PlatformStream::WebSocket(response)));
    }
    let headers = head.headers();
    // The platform decodes the body, so `Content-Length` is not the length that arrives.
    match length(headers).filter(|_| !headers.contains_key(header::CONTENT_ENCODING)) {
        Some(1..=PIECE) => Body::Stream(Box::new(PlatformStream::Short(response))),
        length => in_chunks(&response, length),
    }
}

/// The length that delimits a body without a transfer coding (RFC 9112 §6.3).
fn length(headers: &HeaderMap) -> Option<u64> {
    content_length(headers).filter(|_| !headers.contains_key(header::TRANSFER_ENCODING))
}

fn in_chunks(message: &Message, left: Option<u64>) -> Body {
    message.body().map_or(Body::Empty, |stream| Body::Stream(Box::new(PlatformStream::Long { stream, left })))
}

/// The body of a request with these headers, as the platform takes it. If edgefront has begun to read a short body, the body keeps its
/// length: some origins refuse a chunked request.
pub fn write_request(body: Body, headers: &HeaderMap) -> JsValue {
    let length = length(headers).and_then(|length| u32::try_from(length).ok());
    let Body::Stream(mut stream) = body else { return write(body) };
    let is_begun = matches!(stream.as_any().downcast_ref(), None | Some(PlatformStream::Piece(_)));
    let stream = write_stream(stream);
    match length.filter(|_| is_begun) {
        Some(length) => glue::of_length(&stream, length),
        None => stream,
    }
}

/// A body as the platform takes it: null, bytes, or a stream.
pub fn write(body: Body) -> JsValue {
    match body {
        Body::Empty => JsValue::NULL,
        Body::Bytes(bytes) => Uint8Array::from(bytes.as_ref()).into(),
        Body::Held(held) => platform_form(&Content::Held(held)),
        Body::Prepared(kept) => platform_form(&kept.content),
        Body::Stream(stream) => write_stream(stream),
    }
}

/// The response that opened a WebSocket.
pub fn websocket(body: &mut Body) -> Option<&Message> {
    let Body::Stream(stream) = body else { return None };
    match stream.as_any().downcast_ref()? {
        PlatformStream::WebSocket(response) => Some(response),
        _ => None,
    }
}

/// Bytes in the memory of JavaScript.
pub struct HeldArray(Uint8Array);

impl HeldArray {
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl HeldBytes for HeldArray {
    fn size(&self) -> usize {
        self.0.length() as usize
    }

    fn read(&self) -> Bytes {
        self.0.to_vec().into()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The bytes as an array of JavaScript. Bytes in wasm are copied.
pub fn platform_form(content: &Content) -> JsValue {
    let held = match content {
        Content::Held(held) => held.as_any().downcast_ref::<HeldArray>(),
        Content::Here(_) => None,
    };
    held.map_or_else(|| Uint8Array::from(content.read().as_ref()), |held| held.0.clone()).into()
}

fn write_stream(mut stream: Box<dyn ByteStream>) -> JsValue {
    match stream.as_any().downcast_ref() {
        Some(PlatformStream::Short(message)) => return message.body().into(),
        Some(PlatformStream::Long { stream, .. }) => return stream.into(),
        _ => {}
    }
    if let Some(Prefixed { read, rest }) = stream.as_any().downcast_mut()
        && let Some(PlatformStream::Chunks(chunks)) = rest.as_any().downcast_mut()
        && let Some(stream) = chunks.pass_on(read.as_deref().unwrap_or_default())
    {
        return stream;
    }
    let chunks = stream.map(|chunk| match chunk {
        Ok(chunk) => Ok(Uint8Array::from(chunk.as_ref()).into()),
        Err(error) => Err(js_sys::Error::new(&error.to_string()).into()),
    });
    ReadableStream::from_stream(chunks).into_raw().into()
}

enum PlatformStream {
    /// Not read yet, and at most [`PIECE`] long.
    Short(Message),
    /// Not read yet. `left`: its length in bytes, if known.
    Long {
        stream: web_sys::ReadableStream,
        left: Option<u64>,
    },
    /// Read in one piece. None: the read has ended.
    Piece(Option<Settled>),
    Chunks(Chunks),
    /// A response with status 101. It has no body, and the platform passes the messages on.
    WebSocket(Message),
}

struct Chunks {
    stream: web_sys::ReadableStream,
    reader: Reader,
    /// Bytes still missing, if known. 0: the stream has ended, failed or was passed on. After the last byte, no read asks
    /// for the end.
    left: Option<u64>,
    /// The read in progress.
    read: Option<Settled>,
}

impl Chunks {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.has_ended() {
            return Poll::Ready(None);
        }
        let most = self.left.and_then(|left| u32::try_from(left).ok()).unwrap_or(u32::MAX);
        let read = self.read.get_or_insert_with(|| glue::read(&self.reader, most).into());
        let read = std::task::ready!(read.poll_unpin(context));
        self.read = None;
        let chunk = read.map(|read| glue::chunk(&read));
        let Ok(Some(chunk)) = chunk else {
            self.left = Some(0);
            return Poll::Ready(chunk.is_err().then(|| Err(broken_off())));
        };
        let bytes = chunk.to_vec();
        glue::reuse(&chunk);
        self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
        Poll::Ready(Some(Ok(bytes.into())))
    }

    const fn has_ended(&self) -> bool {
        matches!(self.left, Some(0))
    }

    /// The platform's stream of `first` and the rest, which does not enter wasm. None while a read is pending.
    fn pass_on(&mut self, first: &[u8]) -> Option<JsValue> {
        if self.read.is_some() {
            return None;
        }
        self.left = Some(0);
        Some(glue::pass_on(&self.reader, &self.stream, first))
    }
}

/// The platform logs why a stream ended early. Here it only matters that the body is truncated.
fn broken_off() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl Stream for PlatformStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = &mut *self;
        match stream {
            Self::Short(message) => *stream = Self::Piece(Some(message.array_buffer().into())),
            Self::Long { stream: body, left } => {
                let reader = glue::reader(body).map_err(|_| io::ErrorKind::InvalidData)?;
                *stream = Self::Chunks(Chunks { stream: body.clone(), reader, left: *left, read: None });
            }
            Self::Piece(_) | Self::Chunks(_) | Self::WebSocket(_) => {}
        }
        let piece = match stream {
            Self::Chunks(chunks) => return chunks.poll_next(context),
            Self::Piece(Some(piece)) => std::task::ready!(piece.poll_unpin(context)),
            Self::Piece(None) | Self::Short(_) | Self::Long { .. } | Self::WebSocket(_) => return Poll::Ready(None),
        };
        *stream = Self::Piece(None);
        Poll::Ready(Some(piece.map_or_else(|_| Err(broken_off()), |piece| Ok(Uint8Array::new(&piece).to_vec().into()))))
    }
}

/// A dropped reader cancels the stream.
impl Drop for PlatformStream {
    fn drop(&mut self) {
        if let Self::Chunks(chunks) = self
            && !chunks.has_ended()
        {
            glue::cancel(&chunks.reader);
        }
    }
}

impl ByteStream for PlatformStream {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
