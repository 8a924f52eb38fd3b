//! The values that differ between two versions of a place: attributes of a tag, or entries of a script's data. The place of a value that
//! changes at each request may also have values of a visitor.

use std::collections::BTreeSet;

/// Words in the names of values that belong to one visitor, even if the shop sends a new value with each response.
const NAMES_OF_IDS: [&str; 9] = ["cart", "basket", "guest", "anonymous", "session", "token", "jwt", "secret", "key"];

/// The values that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The piece of each value, from the first one of the place on, and the value's number in the piece. None: the versions
    /// differ in the number of pieces or values, or were not compared.
    values: Option<BTreeSet<(usize, usize)>>,
    /// A value's name is one of [`NAMES_OF_IDS`].
    pub has_id: bool,
    /// A value is the address of an image, which may be the question of a form.
    pub has_image: bool,
    /// All values are nonces of a content security policy.
    pub are_nonces: bool,
}

impl Changes {
    /// Compares two versions of a place.
    pub fn between(one: &[String], other: &[String]) -> Self {
        let pairs = || one.iter().zip(other).map(|(one, other)| (values(one), values(other)));
        let is_complete = one.len() == other.len() && pairs().all(|(one, other)| one.len() == other.len());
        if !is_complete {
            let has_part = |is_part: fn(&str) -> bool| one.iter().chain(other).any(|piece| is_part(piece));
            return Self { has_id: has_part(names_id), has_image: has_part(is_image), ..Self::default() };
        }
        let mut changes = Self { are_nonces: true, ..Self::default() };
        let mut numbers = BTreeSet::new();
        for (piece, ((of_one, of_other), text)) in pairs().zip(one).enumerate() {
            let differing = of_one.iter().zip(&of_other).enumerate().filter(|(_, (one, other))| one != other);
            for (value, (one, other)) in differing {
                let name = same_start(one, other);
                // The value of a field or a `meta` element has its name in another attribute.
                let is_named = ["<input", "<meta"].iter().any(|tag| text.starts_with(tag));
                let names = if is_named { of_one.iter().filter(|own| own != &one).copied().collect() } else { vec![] };
                // An entry `id` belongs to an object, whose name stands before it.
                let before = of_one.iter().take(if is_id(name) { value } else { 0 }).copied();
                changes.has_id |= names_id(name) || names.into_iter().chain(before).any(names_id);
                changes.has_image |= is_image(text) && (name.contains("src") || one.contains("src"));
                changes.are_nonces &= name.contains("nonce=\"") && text.starts_with('<');
                numbers.insert((piece, value));
            }
        }
        changes.are_nonces &= !numbers.is_empty();
        changes.values = Some(numbers);
        changes
    }

    /// Returns whether these changes contain all changes of `other`, whose first piece is number `after` here. If the number of values
    /// differs, they contain all.
    pub fn cover(&self, other: &Self, after: usize) -> bool {
        let Some(known) = &self.values else { return true };
        let is_known = |(piece, value): &(usize, usize)| known.contains(&(piece + after, *value));
        other.values.as_ref().is_some_and(|values| values.iter().all(is_known))
    }
}

/// The values of a piece: attributes, and the entries of data in a script or in an attribute.
fn values(piece: &str) -> Vec<&str> {
    piece.split([',', ';', '&']).flat_map(|part| part.split("\" ")).collect()
}

fn is_image(piece: &str) -> bool {
    piece.starts_with("<img ") || piece.starts_with("<source ")
}

/// The start that both texts have.
fn same_start<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.char_indices().zip(other.chars()).find(|((_, one), other)| one != other);
    one.get(..same.map_or(one.len(), |((index, _), _)| index)).unwrap_or_default()
}

/// Returns whether a text has one of [`NAMES_OF_IDS`] as a word, such as `cartId` or `guest-token`.
fn names_id(text: &str) -> bool {
    let is_name = |word: &str| {
        let word = word.to_ascii_lowercase();
        let singular = ["ids", "id", "s"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(&word);
        NAMES_OF_IDS.iter().any(|name| *name == word || *name == singular)
    };
    text.split(|character: char| !character.is_ascii_alphanumeric()).flat_map(words_of_name).any(is_name)
}

/// Returns whether an entry has the name `id` or a similar one.
fn is_id(text: &str) -> bool {
    let mut words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.any(|word| ["id", "uid", "uuid"].iter().any(|name| name.eq_ignore_ascii_case(word)))
}

/// The words of a name such as `cartId`.
pub fn words_of_name(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let is_start = |(index, letter): &(usize, char)| {
            let before = index.checked_sub(1).and_then(|index| rest.as_bytes().get(index));
            letter.is_ascii_uppercase() && before.is_some_and(|before| !before.is_ascii_uppercase())
        };
        let end = rest.char_indices().find(is_start).map_or(rest.len(), |(index, _)| index);
        let (word, after) = rest.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(one: &str, other: &str) -> Changes {
        Changes::between(&[one.to_owned()], &[other.to_owned()])
    }

    #[test]
    fn names_of_ids_are_words() {
        for text in
            ["cartId", "cart-id", "CART_ID", "guestToken", "sessionid", "basketID", "window.__S={\"cart\":{\"id"]
        {
            assert!(names_id(text), "{text}");
        }
        for text in ["cartoon", "monkey", "requestId", "now", "secretary", "id", ""] {
            assert!(!names_id(text), "{text}");
        }
    }

    #[test]
    fn a_changing_attribute_explains_no_other_one() {
        let body = |request: &str, group: &str| format!("<body data-group=\"{group}\" data-request=\"{request}\">");
        let noise = changes(&body("1", "guest"), &body("2", "guest"));
        assert!(noise.cover(&changes(&body("1", "guest"), &body("3", "guest")), 0));
        assert!(!noise.cover(&changes(&body("1", "guest"), &body("3", "gold")), 0));
        let data = |now: &str, user: &str| format!("<div data-page=\"{{\"now\":{now},\"auth\":{{\"user\":{user}}}\">");
        let noise = changes(&data("1", "null"), &data("2", "null"));
        assert!(noise.cover(&changes(&data("1", "null"), &data("3", "null")), 0));
        for user in ["7", "{\"id\":7,\"name\":\"Ann\"}"] {
            assert!(!noise.cover(&changes(&data("1", "null"), &data("3", user)), 0), "{user}");
        }
    }

    #[test]
    fn ids_images_and_nonces_are_known() {
        assert!(changes("S={\"cartId\":\"5b0c", "S={\"cartId\":\"9f1d").has_id);
        let nested = |id: &str| format!("S={{\"cart\":{{\"currency\":\"EUR\",\"id\":\"{id}\"}}}}");
        assert!(changes(&nested("5b0c"), &nested("9f1d")).has_id);
        assert!(changes("<input name=\"cart_id\" value=\"1\">", "<input name=\"cart_id\" value=\"2\">").has_id);
        assert!(changes("<img src=\"/captcha/1\">", "<img src=\"/captcha/2\">").has_image);
        assert!(!changes("<img alt=\"1\" src=\"/a\">", "<img alt=\"2\" src=\"/a\">").has_image);
        assert!(changes("<script nonce=\"1\">", "<script nonce=\"2\">").are_nonces);
        assert!(!changes("<script nonce=\"1\" src=\"/a\">", "<script nonce=\"2\" src=\"/b\">").are_nonces);
        assert!(!changes("{\"nonce\":\"1\"", "{\"nonce\":\"2\"").are_nonces);
    }
}
