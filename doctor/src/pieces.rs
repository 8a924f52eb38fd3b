//! A render as pieces: tags and texts. Knows which pieces change for every request, such as a clock.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::tokens::{self, CsrfTokens};

/// Longest time for one comparison. Pieces that are not compared by then count as different.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The pieces of a render, without blank ones.
pub struct Pieces {
    texts: Vec<String>,
    kinds: Vec<PieceKind>,
    /// True if the piece differs in another render for the same visitor.
    changing: Vec<bool>,
    csrf_tokens: CsrfTokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    Tag,
    /// A text that no visitor reads: of a script or a style sheet.
    Script,
    Text,
}

/// The pieces that an excerpt shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Texts that a visitor reads.
    VisibleText,
    /// Texts that are the same for every request.
    SteadyText,
    /// Texts, also those of scripts.
    Text,
    All,
}

impl Pieces {
    /// Splits a render.
    pub fn of(html: &str, csrf_tokens: CsrfTokens) -> Self {
        let texts: Vec<_> = tokens::split(html, csrf_tokens).iter().map(|piece| piece.trim().to_owned()).collect();
        let texts: Vec<_> = texts.into_iter().filter(|piece| !piece.is_empty()).collect();
        let mut is_script = false;
        let kinds = texts.iter().map(|piece| {
            if piece.starts_with('<') {
                is_script = piece.starts_with("<script") || piece.starts_with("<style");
                PieceKind::Tag
            } else if is_script {
                PieceKind::Script
            } else {
                PieceKind::Text
            }
        });
        Self { kinds: kinds.collect(), changing: vec![false; texts.len()], texts, csrf_tokens }
    }

    /// The pieces in their order.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Marks the pieces that differ in another render for the same visitor.
    pub fn mark_changes(&mut self, again: &str) {
        for (own, _) in self.changes_to(&Self::of(again, self.csrf_tokens)) {
            self.changing.get_mut(own).unwrap_or_default().fill(true);
        }
    }

    /// The pieces after [`Pieces::mark_changes`].
    #[must_use]
    pub fn compared_with(mut self, again: &str) -> Self {
        self.mark_changes(again);
        self
    }

    /// The pieces of both renders that differ.
    pub fn changes_to(&self, other: &Self) -> Vec<(Range<usize>, Range<usize>)> {
        if self.texts == other.texts {
            return Vec::new();
        }
        let deadline = Instant::now() + TIMEOUT;
        let changes = capture_diff_slices_deadline(Algorithm::Myers, &self.texts, &other.texts, Some(deadline));
        let changes = changes.into_iter().filter(|change| !matches!(change, DiffOp::Equal { .. }));
        changes.map(|change| (change.old_range(), change.new_range())).collect()
    }

    /// Returns whether the range has pieces, and all of them change for every request.
    pub fn is_changing(&self, range: Range<usize>) -> bool {
        self.changing.get(range).is_some_and(|pieces| !pieces.is_empty() && pieces.iter().all(|changes| *changes))
    }

    /// The pieces of a range as one text.
    pub fn text(&self, range: Range<usize>, detail: Detail) -> String {
        let is_shown = |index: &usize| {
            let is_tag = self.kinds.get(*index) == Some(&PieceKind::Tag);
            match detail {
                Detail::VisibleText => self.kinds.get(*index) == Some(&PieceKind::Text),
                Detail::SteadyText => !is_tag && self.changing.get(*index) == Some(&false),
                Detail::Text => !is_tag,
                Detail::All => true,
            }
        };
        let pieces = range.filter(is_shown).filter_map(|index| self.texts.get(index));
        pieces.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Returns whether a range has a text of a script, or of a style sheet.
    pub fn has_script(&self, range: Range<usize>) -> bool {
        self.kinds.get(range).is_some_and(|kinds| kinds.contains(&PieceKind::Script))
    }

    /// Returns whether the page has scripts.
    pub fn has_scripts(&self) -> bool {
        self.texts.iter().any(|piece| piece.starts_with("<script"))
    }

    /// At most so many characters of the text that a visitor reads before the piece.
    pub fn text_before(&self, piece: usize, most: usize) -> String {
        let mut pieces = Vec::new();
        let mut length = 0;
        for text in (0..piece).rev().filter_map(|index| self.visible(index)) {
            pieces.push(text);
            length += text.chars().count() + 1;
            if length > most {
                break;
            }
        }
        pieces.reverse();
        let text = pieces.join(" ");
        let cut = text.chars().count().saturating_sub(most);
        let end: String = text.chars().skip(cut).collect();
        // The first word may lack its beginning.
        end.split_once(' ').filter(|_| cut > 0).map_or(end.clone(), |(_, words)| words.to_owned())
    }

    /// At most so many characters of the text that a visitor reads from the piece on.
    pub fn text_after(&self, piece: usize, most: usize) -> String {
        let mut text = String::new();
        for next in (piece..self.texts.len()).filter_map(|index| self.visible(index)) {
            text.push_str(next);
            text.push(' ');
            if text.chars().count() > most {
                break;
            }
        }
        text.chars().take(most).collect()
    }

    fn visible(&self, index: usize) -> Option<&str> {
        let is_visible = self.kinds.get(index) == Some(&PieceKind::Text) && self.changing.get(index) == Some(&false);
        self.texts.get(index).filter(|_| is_visible).map(String::as_str)
    }
}
