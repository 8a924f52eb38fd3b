//! The format of results, from the headers `Upstash-Encoding` and `Upstash-Response-Format`.

use http::HeaderMap;

use crate::error::ErrorResponse;

/// Format of the results of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyFormat {
    /// JSON; bytes that are not UTF-8 are replaced by U+FFFD.
    Json,
    /// JSON with every string in base64 except the status `OK`.
    Base64Json,
    /// RESP2, as the server would send it.
    Resp2,
}

impl ReplyFormat {
    /// The format that a request asks for.
    ///
    /// # Errors
    /// For unknown values, and for base64 together with RESP2.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, ErrorResponse> {
        let header = |name| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
        match (header("upstash-encoding"), header("upstash-response-format")) {
            (b"", b"" | b"json") => Ok(Self::Json),
            (b"base64", b"" | b"json") => Ok(Self::Base64Json),
            (b"", b"resp2") => Ok(Self::Resp2),
            (b"base64", b"resp2") => Err(ErrorResponse::bad_request(
                "ERR Upstash-Encoding base64 is not allowed with Upstash-Response-Format resp2",
            )),
            (b"" | b"base64", _) => Err(ErrorResponse::bad_request("ERR invalid Upstash-Response-Format")),
            _ => Err(ErrorResponse::bad_request("ERR invalid Upstash-Encoding")),
        }
    }
}
