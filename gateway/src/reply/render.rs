//! A stream of replies in every format. Public, so that fuzz tests can call it.

use bytes::BytesMut;

use super::{JsonResult, from_reply, write_resp2};
use crate::upstream::{Decoder, ReplyScope};

/// A reply in every format of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// `{"result":…}` or `{"error":…}`.
    pub json: Vec<u8>,
    /// The same with strings in base64.
    pub base64: Vec<u8>,
    /// RESP2.
    pub resp2: Vec<u8>,
}

/// Reads the complete replies of a stream and writes each in every format. `None` if the stream is not RESP2.
#[must_use]
pub fn render(stream: &[u8]) -> Option<Vec<Rendered>> {
    let (mut decoder, mut input, mut rendered) = (Decoder::default(), BytesMut::from(stream), Vec::new());
    while let Some(reply) = decoder.decode(&mut input, ReplyScope::Result).ok()? {
        let result = from_reply(reply);
        let json = |base64| serde_json::to_vec(&JsonResult { result: &result, base64 }).ok();
        let mut resp2 = Vec::new();
        write_resp2(&result, &mut resp2);
        rendered.push(Rendered { json: json(false)?, base64: json(true)?, resp2 });
    }
    Some(rendered)
}
