//! Lists of names in which `*` stands for any characters.

use percent_encoding::percent_decode_str;

use super::entries;

/// Largest number of names in a list. Each cookie of each request is compared with every name.
pub const MAX_NAMES: usize = 100;
/// Longest name, bytes.
const MAX_NAME: usize = 100;

/// A list of names, such as `_ga, _ga_*`. Upper and lower case differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns(Vec<Pattern>);

/// The literal parts between the `*` of one name. The first part is a prefix, the last one a suffix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<String>);

impl Patterns {
    /// Parses names separated by commas.
    ///
    /// # Errors
    /// The problem, as the end of a sentence that begins with the variable's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names: Vec<_> = entries(text, ',').collect();
        if names.len() > MAX_NAMES {
            return Err(format!("has {} names, and at most {MAX_NAMES} are allowed", names.len()));
        }
        names.into_iter().map(Pattern::parse).collect::<Result<_, _>>().map(Self)
    }

    /// The same list with each `%xx` decoded, in lower case.
    #[must_use]
    pub fn decoded(self) -> Self {
        let decode = |part: &String| percent_decode_str(part).decode_utf8_lossy().to_ascii_lowercase();
        Self(self.0.iter().map(|Pattern(parts)| Pattern(parts.iter().map(decode).collect())).collect())
    }

    /// Returns whether the list has no pattern.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the list contains a pattern for `name`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(name))
    }

    /// The names as they were configured.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Pattern(parts)| parts.join("*"))
    }
}

impl Pattern {
    fn parse(name: &str) -> Result<Self, String> {
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b';' | b'=' | b'"');
        if name.len() > MAX_NAME || !name.bytes().all(is_allowed) {
            return Err(format!(
                "has {name:?}, and a name has at most {MAX_NAME} visible ASCII characters, without spaces and ; = \""
            ));
        }
        if name.bytes().all(|byte| byte == b'*') {
            return Err(format!("has {name:?}, which matches everything: name what the rule is for"));
        }
        Ok(Self(name.split('*').map(str::to_owned).collect()))
    }

    fn matches(&self, name: &str) -> bool {
        let [first, rest @ ..] = self.0.as_slice() else { return false };
        let Some(name) = name.strip_prefix(first.as_str()) else { return false };
        let [between @ .., last] = rest else { return name.is_empty() };
        // The leftmost match of each part leaves the most room for the parts behind it.
        let behind = between
            .iter()
            .try_fold(name, |name, part| name.find(part.as_str()).and_then(|index| name.get(index + part.len()..)));
        behind.is_some_and(|name| name.ends_with(last.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Patterns::parse(pattern).unwrap().contains(name)
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("_ga", "_ga", true),
            ("_ga", "_gat", false),
            ("_ga_*", "_ga_", true),
            ("_ga_*", "_ga_X1", true),
            ("_ga_*", "x_ga_1", false),
            ("*_id", "visitor_id", true),
            ("*_id", "visitor_idx", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*a", "a", false),
            ("/admin/*", "/admin/", true),
            ("/admin/*", "/administrators", false),
            ("_ga, _gid", "_gid", true),
            ("_ga", "_GA", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_that_matches_everything_or_is_malformed_is_refused() {
        for names in ["*", "**", "_ga, *", "a b", "a;b", "a=b", "\"a\"", "ü", &"a".repeat(101)] {
            assert!(Patterns::parse(names).is_err(), "{names}");
        }
        let names = |count: usize| Patterns::parse(&vec!["a"; count].join(","));
        assert!(names(MAX_NAMES).is_ok() && names(MAX_NAMES + 1).is_err());
        assert_eq!(Patterns::parse(" , ").unwrap(), Patterns::default());
    }

    proptest! {
        #[test]
        fn a_star_replaces_any_part_of_a_name(before in "[a-z]{0,4}", middle in "[a-z]{0,4}", after in "[a-z]{1,4}") {
            let (pattern, name) = (format!("{before}*{after}"), format!("{before}{middle}{after}"));
            prop_assert!(matches(&pattern, &name));
        }
    }
}
