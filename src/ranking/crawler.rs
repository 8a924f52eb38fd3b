//! Whether a person looks at a page. Whoever wants to be taken for one is: limits are for them. This keeps those out of the ranking who say
//! what they are.

use http::{HeaderMap, HeaderName, header::USER_AGENT};

/// What crawlers name themselves by, in lower case. A person who is taken for one is not counted, which harms nobody.
const CRAWLERS: [&str; 6] = ["bot", "crawl", "spider", "slurp", "externalhit", "headless"];

/// By which a browser says that nobody has asked for the page yet.
static AHEAD: [HeaderName; 2] = [HeaderName::from_static("sec-purpose"), HeaderName::from_static("purpose")];

/// Returns whether a request is for somebody to look at now: not a crawler's, which its `User-Agent` tells, and no page that a browser fetches
/// before anybody asks for it (`Sec-Purpose` of the Fetch standard, or `Purpose`, as older browsers say).
#[must_use]
pub fn is_human(headers: &HeaderMap) -> bool {
    let text = |name: &HeaderName| headers.get(name).map_or(&b""[..], |value| value.as_bytes());
    let is_ahead = AHEAD.iter().any(|name| text(name).starts_with(b"prefetch"));
    !is_ahead && !is_crawler(text(&USER_AGENT))
}

fn is_crawler(agent: &[u8]) -> bool {
    let names = |rest: &[u8]| {
        CRAWLERS
            .iter()
            .any(|name| rest.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes())))
    };
    // By their first letters, before any is compared: every view of an item passes here. Both cases of a letter have one bit.
    let letter = |byte: u8| 1_u32 << (byte & 0x1f);
    let firsts = CRAWLERS.iter().filter_map(|name| name.bytes().next()).fold(0, |firsts, first| firsts | letter(first));
    let begins = |byte: u8| firsts & letter(byte) != 0;
    agent.iter().enumerate().any(|(start, byte)| begins(*byte) && agent.get(start..).is_some_and(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_person(name: &'static str, value: &'static str) -> bool {
        is_human(&[(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect())
    }

    #[test]
    fn a_crawler_and_a_prefetch_are_nobody() {
        for agent in [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
            "Mozilla/5.0 (compatible; Baiduspider/2.0)",
            "facebookexternalhit/1.1",
            "Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/140.0.0.0",
            "CCBOT",
        ] {
            assert!(!is_person("user-agent", agent), "{agent}");
        }
        assert!(!is_person("sec-purpose", "prefetch;prerender") && !is_person("purpose", "prefetch"));
        for agent in [
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1",
            "",
        ] {
            assert!(is_person("user-agent", agent), "{agent}");
        }
        assert!(is_human(&HeaderMap::new()));
    }
}
