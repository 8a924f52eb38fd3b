//! Tokens in scripts and addresses, which are known by their names.

use std::ops::Range;

/// The range of the first string with the name of a CSRF token in a script: `csrf_token: "…"`, `csrfToken = '…'`,
/// `"xsrf": "…"`, and `_csrf: unescape('…')` of Sails.
///
/// Skips strings with spaces or escapes, because a token has none. A string within another one does not count: it may be a
/// customer's text.
pub(super) fn named_string(script: &[u8]) -> Option<Range<usize>> {
    let is_token = |byte: &u8| byte.is_ascii_graphic() && !b"\\<&".contains(byte);
    // The beginning of the code before a string, and the string before this code.
    let (mut at, mut code, mut before) = (0, 0, &b""[..]);
    loop {
        let quote = at + script.get(at..)?.iter().position(|byte| b"\"'".contains(byte))?;
        let start = quote + 1;
        let end = start + end_of_string(script.get(start..)?, *script.get(quote)?)?;
        at = end + 1;
        if script.get(end) == Some(&b'\n') {
            // The quote is an apostrophe in a comment.
            continue;
        }
        let string = script.get(start..end)?;
        let code_before = script.get(code..quote)?.trim_ascii_end();
        let code_before = code_before.strip_suffix(b"unescape(").unwrap_or(code_before).trim_ascii_end();
        let is_named = if let [name @ .., b':' | b'='] = code_before {
            let name = name.trim_ascii_end();
            let name = if name.is_empty() { before } else { name };
            let is_end = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"_-$".contains(byte);
            name.rsplit(is_end).next().is_some_and(is_token_name)
        } else {
            false
        };
        if is_named && !string.is_empty() && string.iter().all(is_token) {
            return Some(start..end);
        }
        (code, before) = (at, string);
    }
}

/// The index of the quote or the line break that ends a string.
fn end_of_string(text: &[u8], quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    text.iter().position(|byte| {
        let is_end = !is_escaped && (*byte == quote || *byte == b'\n');
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Returns whether a name is that of a CSRF token, such as `csrf` or `csrfToken`. Other names with `csrf`, such as
/// `csrfHeader`, are those of its header, field or cookie.
fn is_token_name(name: &[u8]) -> bool {
    let is_csrf = |part: &[u8]| part.eq_ignore_ascii_case(b"csrf") || part.eq_ignore_ascii_case(b"xsrf");
    let is_token = name.rchunks(5).next().is_some_and(|end| end.eq_ignore_ascii_case(b"token"));
    if is_token { name.windows(4).any(is_csrf) } else { name.rchunks(4).next().is_some_and(is_csrf) }
}

/// The value of the first parameter with the name of a token in an address, such as `review_token` of `OpenCart`. A value that needs an
/// encoding, or is short, is none. `access_token` is the key of another service.
pub(super) fn named_parameter(text: &[u8]) -> Option<Range<usize>> {
    const MIN_TOKEN: usize = 16;
    let value = |equals: usize| {
        let name = name_at_end(text.get(..equals)?);
        let is_named = is_token_name(name) || name.ends_with(b"_token") && name != b"access_token";
        let after = text.get(equals + 1..)?;
        let length = after.iter().take_while(|byte| is_of_word(**byte)).count();
        let is_whole = after.get(length).is_none_or(|end| b"&\"'#".contains(end));
        (is_named && is_whole && length >= MIN_TOKEN).then_some(equals + 1..equals + 1 + length)
    };
    (0..text.len()).filter(|at| text.get(*at) == Some(&b'=')).find_map(value)
}

/// The name at the end of a text.
pub(super) fn name_at_end(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| !is_of_word(*byte)).next().unwrap_or_default()
}

/// Returns whether a name or a token may contain the byte.
pub(super) const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
