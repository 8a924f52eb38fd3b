//! The kind of a message by its `Content-Type`.

use http::{HeaderMap, header};

/// Returns whether a message is HTML.
#[must_use]
pub fn is_html(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("text/html"))
}

/// Returns whether a response is a file, such as an image, a style sheet or a script. Files have no holes.
pub fn is_file(headers: &HeaderMap) -> bool {
    const STARTS: [&str; 7] =
        ["image/", "font/", "audio/", "video/", "text/css", "text/javascript", "application/javascript"];
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    STARTS.iter().any(|start| text.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start)))
}
