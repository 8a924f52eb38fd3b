//! Lone surrogates in JSON, such as `"\ud83d"`: half of a character that a client has cut in two. serde_json rejects
//! them. Upstash stores U+FFFD instead.

/// The escape of U+FFFD, as long as any other.
const REPLACEMENT: &[u8] = br"\ufffd";

/// The text with U+FFFD for each lone surrogate; `None` if it has none.
pub(super) fn replace_lone(json: &[u8]) -> Option<Vec<u8>> {
    let mut replaced: Option<Vec<u8>> = None;
    let mut at = 0;
    // Outside of strings, a backslash is an error anyway.
    while let Some(offset) = json.get(at..).unwrap_or_default().iter().position(|byte| *byte == b'\\') {
        let escape = at + offset;
        let next = escape + REPLACEMENT.len();
        at = match (code_unit(json, escape), code_unit(json, next)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => next + REPLACEMENT.len(),
            (Some(0xd800..=0xdfff), _) => {
                let text = replaced.get_or_insert_with(|| json.to_vec());
                text.splice(escape..next, REPLACEMENT.iter().copied());
                next
            }
            (Some(_), _) => next,
            (None, _) => escape + 2,
        };
    }
    replaced
}

/// The UTF-16 code unit of the escape at `at`, `\u` and four hexadecimal digits; `None` if there is another escape or none.
fn code_unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + REPLACEMENT.len())?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (json, expected) in [
            (r#"["a\ud83d"]"#, Some(r#"["a\ufffd"]"#)),
            (r#"["\uDE00b"]"#, Some(r#"["\ufffdb"]"#)),
            (r#"["\ud83d\ud83d\ude00"]"#, Some(r#"["\ufffd\ud83d\ude00"]"#)),
            (r#"["\ud83d\n\\"#, Some(r#"["\ufffd\n\\"#)),
            (r#"["\ud83d\ude00"]"#, None),
            (r#"["\\ud83d"]"#, None),
            (r#"["\u00e9\ud8"#, None),
            (r"\", None),
        ] {
            let replaced = replace_lone(json.as_bytes());
            assert_eq!(replaced.as_deref(), expected.map(str::as_bytes), "{json}");
        }
    }
}
