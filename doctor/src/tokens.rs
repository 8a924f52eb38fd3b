//! A page as a list of tags and texts, which the comparison of two renders needs.

use std::fmt::Write as _;

use html5gum::{DefaultEmitter, Token, Tokenizer};

/// The name of the form field with Django's CSRF token.
const DJANGO_TOKEN: &[u8] = b"csrfmiddlewaretoken";

/// How the CSRF tokens of forms are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsrfTokens {
    /// `CSRF_COOKIE` is set: edgefront gives all visitors the same cookie, so every token of Django is valid for every
    /// visitor. Django masks the token anew for each response.
    Covered,
    /// A token belongs to one visitor.
    Personal,
}

/// Tags, texts and comments in their order. A text is split into lines, so that a difference in a long script is short.
/// Only the known harmless difference is removed: see [`CsrfTokens::Covered`].
pub fn split(html: &str, csrf_tokens: CsrfTokens) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        match token {
            Token::StartTag(tag) => {
                let is_token = tag.attributes.get(&b"name"[..]).is_some_and(|name| ***name == *DJANGO_TOKEN);
                let mut text = format!("<{}", String::from_utf8_lossy(&tag.name));
                for (name, value) in &tag.attributes {
                    let is_covered = is_token && csrf_tokens == CsrfTokens::Covered && ***name == *b"value";
                    let value = if is_covered { "".into() } else { String::from_utf8_lossy(value) };
                    // A String takes all text.
                    let _ = write!(text, " {}=\"{value}\"", String::from_utf8_lossy(name));
                }
                text.push('>');
                pieces.push(text);
            }
            Token::EndTag(tag) => pieces.push(format!("</{}>", String::from_utf8_lossy(&tag.name))),
            Token::String(text) => {
                pieces.extend(String::from_utf8_lossy(&text).split_inclusive('\n').map(str::to_owned));
            }
            Token::Comment(text) => pieces.push(format!("<!--{}-->", String::from_utf8_lossy(&text))),
            Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    pieces
}
