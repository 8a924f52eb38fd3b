//! URLs of the demo shop's static files.

pub(super) use crate::ports::assets::ICON;
use crate::ports::assets::{Asset, asset};

pub(super) const STYLE: Asset = asset!(
    "shop.css",
    "shop/base.css",
    "shop/controls.css",
    "shop/frame.css",
    "shop/pictures.css",
    "shop/cards.css",
    "shop/home.css",
    "shop/product.css",
    "shop/forms.css",
    "shop/cart.css",
    "shop/flash.css",
);
pub(super) const SCRIPT: Asset = asset!(
    "shop.js",
    "shop/api.js",
    "shop/page.js",
    "shop/visitor.js",
    "shop/popular.js",
    "shop/product.js",
    "shop/sales.js",
    "shop/suggestions.js",
    "shop/cart.js",
    "shop/account.js",
    "shop/flash.js",
    "../integrations/javascript/client/src/index.js",
);
/// The product pictures. The URL's fragment is a picture's name.
pub(super) const PICTURES: Asset = asset!("pictures.svg");

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    #[test]
    fn every_picture_has_a_unique_name_and_uses_the_tones_of_the_style_sheet() {
        let pictures = fs::read_to_string("assets/pictures.svg").unwrap();
        let names: Vec<_> = pictures.split("<symbol id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
        for used in pictures.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(["--tone", "--tone-dark", "--tone-light"].contains(&used), "{used}");
        }
    }
}
