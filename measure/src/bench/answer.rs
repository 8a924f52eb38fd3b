//! Where an HTTP/1.1 answer ends (RFC 9112 §6), whatever pieces it comes in. Nothing of its body is kept.

/// How many headers an answer may have.
const MOST_HEADERS: usize = 48;

/// An answer that is being read.
#[derive(Default)]
pub struct Answer {
    status: u16,
    length: usize,
    expected: Expected,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Expected {
    #[default]
    Head,
    Bytes(usize),
    ChunkSize,
    /// So many bytes of a chunk, with the line's end behind it.
    Chunk(usize),
    /// The empty line behind the last chunk.
    Trailer,
    Nothing,
}

impl Answer {
    /// Reads what can be read of `bytes`; says how much that was.
    ///
    /// # Errors
    /// When it is no HTTP.
    pub fn read(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            let step = self.step(rest)?;
            used += step;
            if step == 0 || self.expected == Expected::Nothing {
                return Ok(used);
            }
        }
    }

    /// Status and length of the body, once all of it has been read.
    pub fn end(&self) -> Option<(u16, usize)> {
        (self.expected == Expected::Nothing).then_some((self.status, self.length))
    }

    /// Reads one part; 0: more bytes are needed.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, String> {
        match self.expected {
            Expected::Head => self.head(bytes),
            Expected::Bytes(left) => {
                let count = left.min(bytes.len());
                self.length += count;
                self.expected = if count == left { Expected::Nothing } else { Expected::Bytes(left - count) };
                Ok(count)
            }
            Expected::ChunkSize => match httparse::parse_chunk_size(bytes).map_err(|_| "a chunk without a size")? {
                httparse::Status::Partial => Ok(0),
                httparse::Status::Complete((used, size)) => {
                    let size = usize::try_from(size).map_err(|_| "a chunk too large")?;
                    self.length += size;
                    self.expected = if size == 0 { Expected::Trailer } else { Expected::Chunk(size + 2) };
                    Ok(used)
                }
            },
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

    fn head(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
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
            Some(Ok(length)) => Expected::Bytes(length),
            _ if value("transfer-encoding").is_some() => Expected::ChunkSize,
            _ => return Err("an answer without a length".to_owned()),
        };
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &str =
        "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n";

    /// Reads `text` in pieces of `size` bytes, as a socket may deliver it.
    fn in_pieces(text: &str, size: usize) -> Option<(u16, usize)> {
        let (mut answer, mut buffer) = (Answer::default(), Vec::new());
        for piece in text.as_bytes().chunks(size) {
            assert_eq!(answer.end(), None, "it has not ended yet");
            buffer.extend_from_slice(piece);
            let used = answer.read(&buffer).unwrap();
            buffer.drain(..used);
        }
        answer.end()
    }

    #[test]
    fn an_answer_ends_where_it_says_in_whatever_pieces_it_comes() {
        for size in 1..CHUNKED.len() {
            assert_eq!(in_pieces(SIZED, size), Some((200, 5)), "{size}");
            assert_eq!(in_pieces(CHUNKED, size), Some((404, 15)), "{size}");
        }
        assert_eq!(in_pieces("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 99), Some((200, 0)));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert!(Answer::default().read(b"SSH-2.0\r\n").is_err());
        assert!(Answer::default().read(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
