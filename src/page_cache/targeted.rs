//! `CDN-Cache-Control` (RFC 9213): the origin's word to the caches of its own network, which is us. Where it stands and is well
//! formed, `Cache-Control` and `Expires` are for the others.
//!
//! Unlike `Cache-Control` it is a Structured Field (RFC 8941): a dictionary that is read strictly, and as a whole not at all if
//! any of it is wrong.

use http::HeaderMap;

/// The directives of a well-formed, non-empty `CDN-Cache-Control`: key, and the value of those that have one. None: it does not
/// count.
pub(super) fn read(headers: &HeaderMap) -> Option<Vec<(String, Option<String>)>> {
    let lines: Option<Vec<_>> = headers.get_all("cdn-cache-control").iter().map(|line| line.to_str().ok()).collect();
    let text = lines?.join(",");
    let mut reader = Reader(text.trim_matches(' '));
    let mut members: Vec<(String, Option<String>)> = Vec::new();
    while !reader.0.is_empty() {
        let (key, value) = reader.member()?;
        // A key that comes again has its last value (RFC 8941 §4.2.2).
        members.retain(|(other, _)| *other != key);
        members.push((key, value));
        reader.space();
        if reader.0.is_empty() {
            break;
        }
        reader.eat(',')?;
        reader.space();
        if reader.0.is_empty() {
            return None;
        }
    }
    (!members.is_empty() && members.iter().all(is_of_its_type)).then_some(members)
}

/// `max-age` and its like are integers, and nothing else has the type that its name asks for.
fn is_of_its_type((key, value): &(String, Option<String>)) -> bool {
    let is_integer = || value.as_ref().is_some_and(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    !matches!(key.as_str(), "max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error") || is_integer()
}

/// A value: only what a directive of ours may have is kept.
enum Item {
    /// A whole number, or a token.
    Word(String),
    Other,
}

/// What is left to read.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn eat(&mut self, character: char) -> Option<()> {
        self.0 = self.0.strip_prefix(character)?;
        Some(())
    }

    /// The longest beginning of such characters, at least one.
    fn word(&mut self, is_part: impl Fn(char) -> bool) -> Option<&'a str> {
        let end = self.0.find(|character| !is_part(character)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
        self.0 = rest;
        Some(word)
    }

    fn key(&mut self) -> Option<String> {
        if !self.0.starts_with(|first: char| first.is_ascii_lowercase() || first == '*') {
            return None;
        }
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.*".contains(c);
        self.word(is_part).map(str::to_owned)
    }

    fn member(&mut self) -> Option<(String, Option<String>)> {
        let key = self.key()?;
        let value = if self.eat('=').is_some() { self.value()? } else { Item::Other };
        self.parameters()?;
        Some((key, if let Item::Word(word) = value { Some(word) } else { None }))
    }

    /// An item or an inner list.
    fn value(&mut self) -> Option<Item> {
        if self.eat('(').is_none() {
            return self.item();
        }
        loop {
            self.0 = self.0.trim_start_matches(' ');
            if self.eat(')').is_some() {
                return Some(Item::Other);
            }
            self.item()?;
            self.parameters()?;
        }
    }

    fn parameters(&mut self) -> Option<()> {
        while self.eat(';').is_some() {
            self.0 = self.0.trim_start_matches(' ');
            self.key()?;
            if self.eat('=').is_some() {
                self.item()?;
            }
        }
        Some(())
    }

    /// A bare item.
    fn item(&mut self) -> Option<Item> {
        match self.0.chars().next()? {
            '"' => self.string(),
            ':' => {
                self.eat(':')?;
                let bytes = self.0.find(':')?;
                let (_, rest) = self.0.split_at_checked(bytes)?;
                self.0 = rest;
                self.eat(':').map(|()| Item::Other)
            }
            '?' => {
                self.eat('?')?;
                // `?0` switches off what the name alone would switch on; nothing of ours is written so.
                self.word(|c| c == '0' || c == '1').filter(|bit| bit.len() == 1).map(|_| Item::Other)
            }
            first if first.is_ascii_digit() || first == '-' => {
                self.0 = self.0.trim_start_matches('-');
                let number = self.word(|c| c.is_ascii_digit() || c == '.')?;
                // An integer has 15 digits at the most; a minus or a point make another type than a duration has.
                let is_duration = first != '-' && !number.contains('.');
                (number.len() <= 16 && !number.starts_with('.') && !number.ends_with('.'))
                    .then(|| if is_duration { Item::Word(number.to_owned()) } else { Item::Other })
            }
            first if first.is_ascii_alphabetic() || first == '*' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/".contains(c);
                self.word(is_part).map(|token| Item::Word(token.to_owned()))
            }
            _ => None,
        }
    }

    fn string(&mut self) -> Option<Item> {
        self.eat('"')?;
        let mut characters = self.0.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = self.0.get(at + 1..)?;
                    return Some(Item::Other);
                }
                '\\' if !matches!(characters.next()?.1, '"' | '\\') => return None,
                ' '..='~' => {}
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn directives(lines: &[&'static str]) -> Option<String> {
        let line = |line: &&'static str| ("cdn-cache-control".parse().unwrap(), HeaderValue::from_static(line));
        let members = read(&lines.iter().map(line).collect())?;
        let text = members.into_iter().map(|(key, value)| value.map_or(key.clone(), |value| format!("{key}={value}")));
        Some(text.collect::<Vec<_>>().join(" "))
    }

    // RFC 9213 §2.1
    #[test]
    fn it_is_a_dictionary() {
        for (lines, read) in [
            (&["max-age=60"][..], "max-age=60"),
            (&["max-age=60, no-cache"], "max-age=60 no-cache"),
            (&["max-age=60", "private"], "max-age=60 private"),
            (&["max-age=60;a=1;b, x=(1 \"two\" three);q"], "max-age=60 x"),
            (&["x=\"a, no-store\", y=:YQ==:, z=?1, max-age=1"], "x y z max-age=1"),
            (&["max-age=60 ,\tmax-age=5"], "max-age=5"),
        ] {
            assert_eq!(directives(lines).as_deref(), Some(read), "{lines:?}");
        }
    }

    #[test]
    fn what_is_not_well_formed_does_not_count_at_all() {
        for line in [
            "",
            " ",
            "MaX-aGe=60",
            "max-age =60",
            "max-age= 60",
            "max-age=60,",
            "max-age=60, &&&&&",
            "max-age=\"60\"",
            "max-age",
            "max-age=-1",
            "max-age=1.5",
            "no-store, x=\"open",
            "x=(1 2",
            "max-age=99999999999999999999",
        ] {
            assert_eq!(directives(&[line]), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_to_its_end(line in "[ -~]{0,40}") {
            let headers = [("cdn-cache-control".parse().unwrap(), HeaderValue::try_from(line).unwrap())];
            read(&headers.into_iter().collect());
        }
    }
}
