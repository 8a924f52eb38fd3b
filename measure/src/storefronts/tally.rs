//! Counts the answers by kind of visitor, and judges them.

use std::{collections::BTreeMap, fmt};

use super::{kind::Kind, shops::Shop, visitor::Answer};
use crate::table::Table;

/// The share of product pages that must come from the store, for the visitors of [`Shop::must_hit`].
const MIN_HIT_RATIO: f64 = 0.85;
/// The number of violations that the report describes.
const MAX_DESCRIPTIONS: usize = 10;

/// Something that must not be in an answer, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// The answer has content of another visitor, or a hit sets a cookie.
    Leak(String),
    /// The answer lacks what this visitor must see, such as the own name.
    Anonymous(String),
    /// The answer is no page at all.
    Status(String),
}

/// The counts of one kind.
#[derive(Debug, Default)]
struct Counts {
    answers: u32,
    products: u32,
    product_hits: u32,
    /// Product pages that did not come from the store, by reason.
    misses: BTreeMap<String, u32>,
    leaks: u32,
    anonymous: u32,
    other: u32,
}

/// All answers of a run.
pub struct Tally {
    shop: Shop,
    counts: BTreeMap<Kind, Counts>,
    descriptions: Vec<String>,
}

impl Tally {
    pub fn new(shop: Shop) -> Self {
        Self { shop, counts: BTreeMap::new(), descriptions: Vec::new() }
    }

    pub fn add(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            let counts = self.counts.entry(answer.kind).or_default();
            counts.answers += 1;
            counts.products += u32::from(answer.is_product);
            counts.product_hits += u32::from(answer.is_product && answer.is_hit);
            if let Some(reason) = answer.miss_reason.filter(|_| answer.is_product && !answer.is_hit) {
                *counts.misses.entry(reason).or_default() += 1;
            }
            let Some(violation) = answer.violation else { continue };
            match violation {
                Violation::Leak(_) => counts.leaks += 1,
                Violation::Anonymous(_) => counts.anonymous += 1,
                Violation::Status(_) => counts.other += 1,
            }
            if self.descriptions.len() < MAX_DESCRIPTIONS {
                self.descriptions.push(format!("{} ({}): {violation:?}", answer.path, answer.kind.as_str()));
            }
        }
    }

    /// One line about all kinds.
    pub fn summary(&self) -> String {
        let sum = |field: fn(&Counts) -> u32| self.counts.values().map(field).sum::<u32>();
        let (answers, leaks) = (sum(|counts| counts.answers), sum(|counts| counts.leaks));
        format!("{answers} answers, {leaks} leaks, {} anonymous pages", sum(|counts| counts.anonymous))
    }

    /// A sentence for each requirement that is not met.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = self.descriptions.clone();
        for (kind, counts) in &self.counts {
            let ratio = counts.hit_ratio();
            if self.shop.must_hit(*kind) && ratio < MIN_HIT_RATIO {
                failures.push(format!(
                    "{}: {ratio:.2} of the product pages were hits, wanted {MIN_HIT_RATIO}",
                    kind.as_str()
                ));
            }
        }
        failures
    }
}

impl Counts {
    /// The most frequent reason of the misses.
    fn main_reason(&self) -> String {
        let most = self.misses.iter().max_by_key(|(_, count)| **count);
        most.map(|(reason, count)| format!("{reason} ({count})")).unwrap_or_default()
    }

    fn hit_ratio(&self) -> f64 {
        f64::from(self.product_hits) / f64::from(self.products.max(1))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table =
            Table::new(["visitors", "answers", "product hits", "most misses", "leaks", "anonymous", "other errors"]);
        for (kind, counts) in &self.counts {
            let name = self.shop.kind_name(*kind);
            let numbers = [counts.leaks, counts.anonymous, counts.other].map(|number| number.to_string());
            let cells = [
                name.to_owned(),
                counts.answers.to_string(),
                format!("{:.3}", counts.hit_ratio()),
                counts.main_reason(),
            ];
            table.push_row(cells.into_iter().chain(numbers));
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: Kind, is_hit: bool, violation: Option<Violation>) -> Answer {
        Answer { kind, path: "/p".to_owned(), is_product: true, is_hit, miss_reason: None, violation }
    }

    #[test]
    fn a_leak_and_a_low_hit_ratio_are_failures() {
        let mut tally = Tally::new(Shop::WordPress);
        tally.add(vec![answer(Kind::NoCookies, true, None), answer(Kind::SignedIn, false, None)]);
        assert!(tally.failures().is_empty(), "{:?}", tally.failures());
        tally.add(vec![answer(Kind::NoCookies, false, None)]);
        assert_eq!(tally.failures(), ["no cookies: 0.50 of the product pages were hits, wanted 0.85"]);
        tally.add(vec![answer(Kind::SignedIn, true, Some(Violation::Leak("£7.00".to_owned())))]);
        assert_eq!(tally.failures()[0], "/p (signed in): Leak(\"£7.00\")");
        assert_eq!(tally.summary(), "4 answers, 1 leaks, 0 anonymous pages");
    }

    #[test]
    fn a_shop_with_holes_must_hit_for_visitors_with_an_account() {
        let mut tally = Tally::new(Shop::DjangoOscar);
        tally.add(vec![answer(Kind::SignedIn, false, None)]);
        assert_eq!(tally.failures().len(), 1);
    }
}
