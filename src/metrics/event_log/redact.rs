//! Removes tokens and email addresses from text.

use crate::schema::token::Token;

/// Replaces every possible session token and email address in `text` by `…`. edgefront's own messages hold none, but
/// messages of the database, of the platform and of panics may.
#[must_use]
pub fn redact(text: &str) -> String {
    let is_in_email = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+' | '%');
    let is_in_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut clean = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_in_email(c)) {
        let word = piece.trim_end_matches(|c| !is_in_email(c));
        if word.contains('@') || word.contains("%40") {
            clean.push('…');
            clean.extend(piece.strip_prefix(word));
            continue;
        }
        for piece in piece.split_inclusive(|c| !is_in_token(c)) {
            let word = piece.trim_end_matches(|c| !is_in_token(c));
            clean.push_str(if Token::parse(word).is_some() { "…" } else { word });
            clean.extend(piece.strip_prefix(word));
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ports::time::Timestamp;

    #[test]
    fn tokens_and_email_addresses_are_replaced() {
        let token = Token::new(Timestamp::from_millis(1_795_000_000_000)).unwrap();
        let token = token.as_str();
        for (text, clean) in [
            (format!("no user {token}."), "no user ….".to_owned()),
            (format!("cookie {token}.abc"), "cookie ….abc".to_owned()),
            (format!("viewed:{token}"), "viewed:…".to_owned()),
            ("to ada.lovelace+x@example.org, twice".to_owned(), "to …, twice".to_owned()),
            ("?mail=ada%40example.org&x".to_owned(), "?mail=…&x".to_owned()),
            ("D1_ERROR: no such table: orders".to_owned(), "D1_ERROR: no such table: orders".to_owned()),
            (String::new(), String::new()),
        ] {
            assert_eq!(redact(&text), clean);
        }
    }

    proptest! {
        #[test]
        fn a_token_is_replaced_wherever_it_stands(before in "[^A-Za-z0-9_-]", after in "[^A-Za-z0-9_-]", millis in 0u64..4_000_000_000_000) {
            let token = Token::new(Timestamp::from_millis(millis)).unwrap();
            let clean = redact(&format!("a{before}{}{after}b", token.as_str()));
            prop_assert!(!clean.contains(token.as_str()), "{clean}");
        }
    }
}
