//! Finds the end of an HTTP/1.1 response (RFC 9112 §6) in pieces of any size, and discards its body.

/// The largest number of headers in a response.
const MAX_HEADERS: usize = 48;

/// Parses one response.
#[derive(Default)]
pub struct ResponseParser {
    status: u16,
    body_bytes: usize,
    expected: Expected,
}

/// The part of the response that comes next.
#[derive(Default, Clone, Copy, PartialEq)]
enum Expected {
    #[default]
    Head,
    /// The remaining bytes of a body with a Content-Length.
    Body(usize),
    ChunkSize,
    /// The remaining bytes of a chunk, including its line end.
    Chunk(usize),
    /// The empty line after the last chunk.
    Trailer,
    Nothing,
}

impl ResponseParser {
    /// Parses as much of `bytes` as possible and returns the number of parsed bytes.
    ///
    /// # Errors
    /// When `bytes` is not an HTTP response.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let parsed = self.parse_part(rest)?;
            used += parsed;
            if parsed == 0 || self.expected == Expected::Nothing {
                return Ok(used);
            }
        }
    }

    /// The status and the size of the body in bytes; `None` before the end of the response.
    pub fn result(&self) -> Option<(u16, usize)> {
        (self.expected == Expected::Nothing).then_some((self.status, self.body_bytes))
    }

    /// Parses the expected part. 0 means that more bytes are needed.
    fn parse_part(&mut self, bytes: &[u8]) -> Result<usize, String> {
        match self.expected {
            Expected::Head => self.parse_head(bytes),
            Expected::Body(left) => {
                let count = left.min(bytes.len());
                self.body_bytes += count;
                self.expected = if count == left { Expected::Nothing } else { Expected::Body(left - count) };
                Ok(count)
            }
            Expected::ChunkSize => self.parse_chunk_size(bytes),
            Expected::Chunk(left) => {
                let count = left.min(bytes.len());
                self.expected = if count == left { Expected::ChunkSize } else { Expected::Chunk(left - count) };
                Ok(count)
            }
            Expected::Trailer if bytes.len() < 2 => Ok(0),
            Expected::Trailer => {
                self.expected = Expected::Nothing;
                Ok(2)
            }
            Expected::Nothing => Ok(0),
        }
    }

    fn parse_head(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(used) = head.parse(bytes).map_err(|cause| cause.to_string())? else {
            return Ok(0);
        };
        self.status = head.code.unwrap_or_default();
        let value = |name: &str| {
            let header = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            header.and_then(|header| str::from_utf8(header.value).ok())
        };
        self.expected = match value("content-length").map(str::parse) {
            Some(Ok(0)) => Expected::Nothing,
            Some(Ok(length)) => Expected::Body(length),
            _ if value("transfer-encoding").is_some() => Expected::ChunkSize,
            _ => return Err("a response without a length".to_owned()),
        };
        Ok(used)
    }

    fn parse_chunk_size(&mut self, bytes: &[u8]) -> Result<usize, String> {
        match httparse::parse_chunk_size(bytes).map_err(|_| "a chunk without a size")? {
            httparse::Status::Partial => Ok(0),
            httparse::Status::Complete((used, size)) => {
                let size = usize::try_from(size).map_err(|_| "a chunk that is too large")?;
                self.body_bytes += size;
                self.expected = if size == 0 { Expected::Trailer } else { Expected::Chunk(size + 2) };
                Ok(used)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &str =
        "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n";

    /// Parses `text` in pieces of `size` bytes, as a socket may deliver them.
    fn parse_in_pieces(text: &str, size: usize) -> Option<(u16, usize)> {
        let (mut parser, mut buffer) = (ResponseParser::default(), Vec::new());
        for piece in text.as_bytes().chunks(size) {
            assert_eq!(parser.result(), None, "the response has not ended yet");
            buffer.extend_from_slice(piece);
            let used = parser.parse(&buffer).unwrap();
            buffer.drain(..used);
        }
        parser.result()
    }

    #[test]
    fn the_end_is_found_in_pieces_of_any_size() {
        for size in 1..CHUNKED.len() {
            assert_eq!(parse_in_pieces(SIZED, size), Some((200, 5)), "{size}");
            assert_eq!(parse_in_pieces(CHUNKED, size), Some((404, 15)), "{size}");
        }
        assert_eq!(parse_in_pieces("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 99), Some((200, 0)));
    }

    #[test]
    fn other_bytes_and_a_response_without_a_length_are_errors() {
        assert!(ResponseParser::default().parse(b"SSH-2.0\r\n").is_err());
        assert!(ResponseParser::default().parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
