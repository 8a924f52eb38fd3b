//! Corrects misspelled words of a search by the words of the catalogue.

use serde::Deserialize;
use strsim::osa_distance;

/// A word of the catalogue.
#[derive(Debug, Deserialize)]
pub(super) struct CatalogueWord {
    pub term: String,
    /// Number of product lines that have the word.
    pub doc: u32,
}

/// Replaces each word that begins no word of the catalogue by the nearest one. None if no word changes.
pub(super) fn correct(words: &[String], known: &[CatalogueWord]) -> Option<Vec<String>> {
    let corrected: Vec<_> = words.iter().map(|word| nearest(word, known).unwrap_or(word).to_owned()).collect();
    (corrected != words).then_some(corrected)
}

/// The word of the catalogue at the smallest edit distance, and among those the most frequent one. None if `word`
/// begins a word, or no word is near. A swap of two letters counts as one edit.
fn nearest<'a>(word: &str, known: &'a [CatalogueWord]) -> Option<&'a str> {
    if known.iter().any(|entry| entry.term.starts_with(word)) {
        return None;
    }
    let limit = match word.chars().count() {
        0..3 => 0,
        3..6 => 1,
        _ => 2,
    };
    let near = known.iter().filter_map(|entry| {
        let distance = osa_distance(word, &entry.term);
        (distance <= limit).then_some((distance, u32::MAX - entry.doc, &*entry.term))
    });
    near.min().map(|(_, _, term)| term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_word_becomes_the_nearest_and_most_frequent_one() {
        let word = |(term, doc): (&str, u32)| CatalogueWord { term: term.to_owned(), doc };
        let known = [("kettle", 1), ("kite", 1), ("teapot", 2), ("oak", 9), ("mug", 3), ("rug", 1)].map(word);
        let corrected = |text: &str| {
            let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            correct(&words, &known).map(|words| words.join(" "))
        };
        for (typed, meant) in [("ketle", "kettle"), ("kettel", "kettle"), ("taepot", "teapot"), ("oka", "oak")] {
            assert_eq!(corrected(typed).as_deref(), Some(meant), "{typed}");
        }
        assert_eq!(corrected("oak tepot").as_deref(), Some("oak teapot"), "a right word stays");
        assert_eq!(corrected("bug").as_deref(), Some("mug"), "the more frequent one");
        for right in ["kettle", "ket", "zeppelin", "ax"] {
            assert_eq!(corrected(right), None, "{right}");
        }
    }
}
