//! A page as a list of tags and texts, which the comparison of two renders needs, and the CSRF tokens in its forms.

use std::fmt::Write as _;

use edgefront::proxy::set_cookie_pair;
use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};
use http::{HeaderMap, header};

use super::difference::is_time;

/// The name of the form field with Django's CSRF token.
const DJANGO_TOKEN: &[u8] = b"csrfmiddlewaretoken";

/// The shortest value of a hidden field that counts as a token, bytes.
const MIN_TOKEN: usize = 16;

/// The comparison of the CSRF tokens of forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsrfTokens {
    /// `CSRF_COOKIE` is set: edgefront gives all visitors the same cookie, so every token of Django is valid for every
    /// visitor. Django [masks](unmasked) the token anew for each response.
    Covered,
    /// A token belongs to one visitor.
    Personal,
}

/// The end of the name of Django's CSRF cookie; applications add a prefix.
const DJANGO_COOKIE: &str = "csrftoken";
/// The CSRF cookie of hapi.
const HAPI_COOKIE: &str = "crumb";

/// The name of the page's CSRF cookie, if all visitors may share its value. Only Django and hapi are known to accept any value.
///
/// Other frameworks sign the value or bind it to a session, and refuse each form with another value. A GET request does not show that.
/// The forms of other frameworks repeat the cookie's value; Django's forms never do. Litestar uses Django's name for its cookie.
pub fn double_submit_cookie(headers: &HeaderMap, html: &str) -> Option<String> {
    let hidden = hidden_values(html);
    let accepts_any = |(name, value): &(String, String)| {
        let is_repeated = hidden.iter().any(|hidden| hidden == value);
        let is_secret = [32, 64].contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if name == HAPI_COOKIE { is_repeated } else { name.ends_with(DJANGO_COOKIE) && is_secret && !is_repeated }
    };
    let mut pairs = headers.get_all(header::SET_COOKIE).iter().filter_map(set_cookie_pair);
    pairs.find(accepts_any).map(|(name, _)| name)
}

/// Returns whether the name of a cookie suggests a CSRF token, such as `XSRF-TOKEN`, `.AspNetCore.Antiforgery.…` or `crumb` of hapi.
/// Such a cookie changes at most the token in forms.
pub fn is_csrf_cookie(name: &str) -> bool {
    const PARTS: [&str; 4] = ["csrf", "xsrf", "antiforgery", "requestverification"];
    let name = name.to_ascii_lowercase();
    name == HAPI_COOKIE || PARTS.iter().any(|part| name.contains(part)) && !name.contains("sess")
}

/// The start tags of a page, or of one piece of it. The value of an `option` without one is its text.
pub fn start_tags(html: &str) -> impl Iterator<Item = StartTag<()>> {
    let mut tokens = Tokenizer::new(html).flatten().peekable();
    std::iter::from_fn(move || {
        loop {
            let Token::StartTag(mut tag) = tokens.next()? else { continue };
            if **tag.name == *b"option"
                && let Some(Token::String(text)) = tokens.peek()
            {
                let value = || HtmlString(text.trim_ascii().to_vec()).into();
                tag.attributes.entry(HtmlString(b"value".to_vec())).or_insert_with(value);
            }
            return Some(tag);
        }
    })
}

/// The value of an attribute.
pub fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    tag.attributes.get(name.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned())
}

/// The actions of forms with the method POST; empty for one without an action.
pub fn post_actions(html: &str) -> Vec<String> {
    let is_post = |tag: &StartTag<()>| {
        **tag.name == *b"form" && attribute(tag, "method").is_some_and(|method| method.eq_ignore_ascii_case("post"))
    };
    start_tags(html).filter(is_post).map(|tag| attribute(&tag, "action").unwrap_or_default()).collect()
}

/// The values of the hidden form fields, except that of Django's token.
fn hidden_values(html: &str) -> Vec<String> {
    let is_hidden = |tag: &StartTag<()>| {
        let is_django = attribute(tag, "name").is_some_and(|name| name.as_bytes() == DJANGO_TOKEN);
        let is_hidden = attribute(tag, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"));
        **tag.name == *b"input" && is_hidden && !is_django
    };
    start_tags(html).filter(is_hidden).filter_map(|tag| attribute(&tag, "value")).collect()
}

/// Returns whether a text consists of hidden fields, and the value of one looks like a token, which may sign the others. The name is no criterion:
/// web2py uses `_formkey`, and Plack's `CSRFBlock` uses `SEC`.
pub fn are_hidden_tokens(text: &str) -> bool {
    let is_hidden = |tag: &StartTag<()>| {
        let kind = attribute(tag, "type");
        **tag.name == *b"input" && kind.is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"))
    };
    let is_token = |tag: &StartTag<()>| {
        let value = attribute(tag, "value").unwrap_or_default();
        value.len() >= MIN_TOKEN && !is_time(&value) && !value.contains(char::is_whitespace)
    };
    let tags: Vec<_> = start_tags(text).collect();
    tags.iter().all(is_hidden) && tags.iter().any(is_token)
}

/// The start of the script in which `EverShop` sends the data of a page to React.
const EVERSHOP_DATA: &str = "var eContext = ";

/// Tags, texts and comments in their order. Splits a text into lines, and a script also at commas. Otherwise a value that
/// changes at each request would hide the visitor's values in the same line.
///
/// Only known harmless differences are removed: see [`CsrfTokens::Covered`] and [`is_generated_id`].
pub fn split(html: &str, csrf_tokens: CsrfTokens) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut is_script = false;
    let unmask = |text: &str| if csrf_tokens == CsrfTokens::Covered { unmasked(text) } else { text.to_owned() };
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        match token {
            Token::StartTag(tag) => {
                is_script = **tag.name == *b"script";
                let is_token = tag.attributes.get(&b"name"[..]).is_some_and(|name| ***name == *DJANGO_TOKEN);
                let mut text = format!("<{}", String::from_utf8_lossy(&tag.name));
                for (name, value) in &tag.attributes {
                    let is_covered = is_token && csrf_tokens == CsrfTokens::Covered && ***name == *b"value";
                    let value = if is_covered { String::new() } else { unmask(&String::from_utf8_lossy(value)) };
                    // A String takes all text.
                    let _ = write!(text, " {}=\"{value}\"", String::from_utf8_lossy(name));
                }
                text.push('>');
                pieces.push(text);
            }
            Token::EndTag(tag) => {
                is_script = false;
                pieces.push(format!("</{}>", String::from_utf8_lossy(&tag.name)));
            }
            Token::String(text) => {
                let text = String::from_utf8_lossy(&text);
                let is_data = text.starts_with(EVERSHOP_DATA);
                let line = |line: &str| match (is_data, is_script) {
                    (true, _) => without_generated_ids(line),
                    (false, true) => unmask(line),
                    (false, false) => line.to_owned(),
                };
                let is_end = |character| character == '\n' || is_script && character == ',';
                pieces.extend(text.split_inclusive(is_end).map(line));
            }
            Token::Comment(text) => pieces.push(format!("<!--{}-->", String::from_utf8_lossy(&text))),
            Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    pieces
}

/// Replaces each masked token of Django by the visitor's secret. A token is 32 characters of a mask, and the secret's 32 characters moved
/// by them. It is not in forms only: shops with htmx write it into `hx-headers`, other shops into scripts.
fn unmasked(text: &str) -> String {
    const ALPHABET: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let index = |byte: u8| ALPHABET.iter().position(|own| *own == byte).unwrap_or_default();
    let is_end = |character: char| !character.is_ascii_alphanumeric();
    let unmask = |word: &str| {
        let own = word.trim_end_matches(is_end);
        let Some((mask, moved)) = own.split_at_checked(32).filter(|_| own.len() == 64) else { return word.to_owned() };
        let secret = moved.bytes().zip(mask.bytes()).map(|(moved, mask)| {
            let at = (index(moved) + ALPHABET.len() - index(mask)) % ALPHABET.len();
            char::from(ALPHABET.get(at).copied().unwrap_or_default())
        });
        format!("{}{}", secret.collect::<String>(), word.get(64..).unwrap_or_default())
    };
    text.split_inclusive(is_end).map(unmask).collect()
}

/// The data of `EverShop` without generated ids.
fn without_generated_ids(data: &str) -> String {
    let parts = data.split('"').map(|part| if is_generated_id(part) { "" } else { part });
    parts.collect::<Vec<_>>().join("\"")
}

/// Returns whether a text of `EverShop`'s data is an id that it generates for each response. Only the same page uses
/// them: `e3b2ozlgqqmwtijt6j` of the package `uniqid` connects a widget with its data, `r__` or `c__` and a UUID names
/// a row or a column. Source: what the installation in `storefronts/evershop` sends.
fn is_generated_id(text: &str) -> bool {
    let is_of_block = |uuid: &str| {
        uuid.len() == 36
            && uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    if let Some(uuid) = text.strip_prefix("r__").or_else(|| text.strip_prefix("c__")) {
        return is_of_block(uuid);
    }
    (16..=19).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_of_django_has_a_secret_that_no_form_repeats_and_that_of_hapi_is_repeated() {
        let secret = "0a".repeat(16);
        let cookie = |line: &str, field: &str| {
            let headers = HeaderMap::from_iter([(header::SET_COOKIE, line.parse().unwrap())]);
            double_submit_cookie(&headers, &format!("<form><INPUT TYPE=hidden name={field} value='{secret}'></form>"))
        };
        for (line, field, expected) in [
            (format!("csrftoken={secret}; Path=/"), "csrfmiddlewaretoken", Some("csrftoken")),
            (format!("shop_csrftoken={secret}{secret}"), "q", Some("shop_csrftoken")),
            (format!("csrftoken={secret}"), "_csrf_token", None),
            (format!("csrftoken={secret}.{secret}"), "q", None),
            (format!("csrftoken={}", secret.repeat(4)), "q", None),
            (format!("csrf_token={secret}"), "q", None),
            (format!("crumb={secret}; HttpOnly"), "crumb", Some("crumb")),
            ("crumb=other".to_owned(), "crumb", None),
        ] {
            assert_eq!(cookie(&line, field).as_deref(), expected, "{line} {field}");
        }
    }

    #[test]
    fn the_name_of_a_token_says_so() {
        for name in [
            "XSRF-TOKEN",
            "_csrf",
            "__Host-psifi.x-csrf-token",
            "next-auth.csrf-token",
            "crumb",
            ".AspNetCore.Antiforgery.9TtSrW0hzOs",
            "__RequestVerificationToken",
        ] {
            assert!(is_csrf_cookie(name), "{name}");
        }
        for name in ["sid", "csrf_session", "token", "breadcrumb"] {
            assert!(!is_csrf_cookie(name), "{name}");
        }
    }

    #[test]
    fn masked_tokens_of_one_secret_are_equal() {
        // From Django 5: two tokens of one cookie, and one of another.
        let [one, again, other] = [
            "9r3g3ZlSSDntSVjQYaewnDeydzmjGxfW9s5j74rZ0MxE48x5erwPHYAVBYMK80Jr",
            "BB1JdYZqSB3WOQFOJQ7H2sRkaorZZMN8BC3Mh35x0Kd703T3Z7p0mNdHyNRqrfhD",
            "eqBFpRSxK5vFzeY66BsOM5fUQq6LqBzM4htyjMOuI4FQLrclmSK76qBhePwcS43h",
        ];
        let pages =
            ["<body hx-headers='{\"X-CSRFToken\": \"@\"}'>", "<script>let csrf = '@';</script>", "<meta content=@>"];
        for page in pages {
            let split = |token: &str, csrf_tokens| split(&page.replace('@', token), csrf_tokens);
            assert_eq!(split(one, CsrfTokens::Covered), split(again, CsrfTokens::Covered), "{page}");
            assert_ne!(split(one, CsrfTokens::Covered), split(other, CsrfTokens::Covered), "{page}");
            assert_ne!(split(one, CsrfTokens::Personal), split(again, CsrfTokens::Personal), "{page}");
        }
    }

    #[test]
    fn ids_that_evershop_generates_are_harmless() {
        let page = |id: &str, block: &str, name: &str| {
            let data = format!(
                r#"{{"graphqlResponse":{{"e{id}":{{"menus":[{{"id":"{id}"}}]}},"id":"r__{block}","name":"{name}"}}}}"#
            );
            split(&format!("<script>var eContext = {data}</script>"), CsrfTokens::Personal)
        };
        let blocks = ["10ac7a4b-fd04-468c-ab9a-e8fe371d0111", "38f54a4b-fd04-468c-ab9a-e8fe371d0111"];
        let one = page("3b2ozlgqqmwtijt6u", blocks[0], "Ann");
        assert_eq!(one, page("3b2ozlgqqmwtijt97", blocks[1], "Ann"));
        assert_ne!(one, page("3b2ozlgqqmwtijt6u", blocks[0], "Ben"));
        let elsewhere = |id: &str| split(&format!("<script>var data = \"{id}\"</script>"), CsrfTokens::Personal);
        assert_ne!(elsewhere("3b2ozlgqqmwtijt6u"), elsewhere("3b2ozlgqqmwtijt97"));
    }
}
