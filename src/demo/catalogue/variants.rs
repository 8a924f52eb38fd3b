//! The choices of a product line, such as its colours and sizes.

use super::ProductCard;

/// One choice of a product page, such as the colour, with its options in the order of the catalogue.
#[derive(Debug)]
pub(in crate::demo) struct Choice<'a> {
    pub label: &'static str,
    pub options: Vec<ChoiceOption<'a>>,
}

/// An option of a choice. It leads to the variant that keeps the other choices if there is one.
#[derive(Debug)]
pub(in crate::demo) struct ChoiceOption<'a> {
    pub text: &'a str,
    pub card: &'a ProductCard,
    pub is_current: bool,
}

impl ChoiceOption<'_> {
    pub(in crate::demo) const fn is_sold_out(&self) -> bool {
        self.card.stock == 0
    }
}

/// The choices between `variants`, of which the page shows `current`. Empty for a product without other variants.
/// A name has its choices after its commas: `Insulated Bottle, Moss, 500 ml`.
pub(in crate::demo) fn choices<'a>(current: &'a ProductCard, variants: &'a [ProductCard]) -> Vec<Choice<'a>> {
    let parts = |card: &'a ProductCard| card.variant().split(", ").collect::<Vec<_>>();
    let chosen = parts(current);
    let choice = |(index, own): (usize, &&'a str)| {
        let mut options: Vec<ChoiceOption<'a>> = Vec::new();
        // The variants that keep the other choices come first, so that an option leads to one of them.
        let keeps = |card: &&ProductCard| {
            let other = card.variant().split(", ").collect::<Vec<_>>();
            other.iter().zip(&chosen).enumerate().all(|(place, (one, own))| place == index || one == own)
        };
        let texts = variants.iter().filter_map(|card| parts(card).get(index).copied());
        for text in texts {
            if options.iter().any(|option| option.text == text) {
                continue;
            }
            let with_text = || variants.iter().filter(|card| parts(card).get(index) == Some(&text));
            let Some(card) = with_text().find(keeps).or_else(|| with_text().next()) else { continue };
            options.push(ChoiceOption { text, card, is_current: text == *own });
        }
        Choice { label: label(&options), options }
    };
    chosen.iter().enumerate().map(choice).filter(|choice| choice.options.len() > 1).collect()
}

/// `Size` for measures, `Colour` if each option has a tone of its own, else `Option`.
fn label(options: &[ChoiceOption<'_>]) -> &'static str {
    const SIZES: [&str; 12] =
        ["S", "M", "L", "Small", "Medium", "Large", "Cabin", "Regular", "Long", "Wide", "Narrow", "Broad"];
    let is_size = |option: &ChoiceOption<'_>| {
        option.text.starts_with(|first: char| first.is_ascii_digit()) || SIZES.contains(&option.text)
    };
    if options.iter().all(is_size) {
        return "Size";
    }
    let has_own_tone = options
        .iter()
        .enumerate()
        .all(|(index, one)| options.iter().skip(index + 1).all(|two| one.card.tone != two.card.tone));
    if has_own_tone { "Colour" } else { "Option" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::catalogue::test_card;

    fn bottle(name: &str, tone: &str, stock: i64) -> ProductCard {
        let (id, name) = (name.replace(", ", "-"), format!("Bottle, {name}"));
        ProductCard { id, name, tone: tone.to_owned(), ..test_card(100, 100, stock) }
    }

    #[test]
    fn each_choice_keeps_the_other_one() {
        let variants = [
            bottle("Moss, 500 ml", "moss", 1),
            bottle("Moss, 750 ml", "moss", 1),
            bottle("Sky, 500 ml", "sky", 0),
            bottle("Sky, 750 ml", "sky", 1),
        ];
        let found = choices(&variants[1], &variants);
        let shown: Vec<_> = found
            .iter()
            .map(|choice| {
                let options =
                    choice.options.iter().map(|option| (&*option.card.id, option.is_current)).collect::<Vec<_>>();
                (choice.label, options)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("Colour", vec![("Moss-750 ml", true), ("Sky-750 ml", false)]),
                ("Size", vec![("Moss-500 ml", false), ("Moss-750 ml", true)])
            ]
        );
        let found = choices(&variants[0], &variants);
        assert!(found[0].options[1].is_sold_out(), "Sky, 500 ml");
    }

    #[test]
    fn a_single_product_has_no_choice() {
        let kite = [bottle("Kite", "red", 1)];
        assert!(choices(&kite[0], &kite).is_empty());
    }
}
