//! URLs of the demo shop's static files.

pub(super) use crate::ports::assets::ICON;
use crate::ports::assets::{Asset, asset};

/// Styles and scripts of every page.
pub(super) const STYLE: Asset = asset!(
    "shop.css",
    "shop/fonts.css",
    "shop/base.css",
    "shop/controls.css",
    "shop/frame.css",
    "shop/pictures.css",
    "shop/cards.css",
    "shop/home.css",
    "shop/product.css",
    "shop/search.css",
    "shop/drawer.css",
);
pub(super) const SCRIPT: Asset = asset!(
    "shop.js",
    "shop/api.js",
    "shop/countdown.js",
    "shop/page.js",
    "shop/visitor.js",
    "shop/popular.js",
    "shop/product.js",
    "shop/sales.js",
    "shop/suggestions.js",
    "../integrations/javascript/client/src/index.js",
);

/// Styles and scripts that only some pages need.
pub(super) struct Bundle {
    pub style: Asset,
    pub script: Asset,
}
/// Pages of one visitor, except the cart: checkout, account and the forms.
pub(super) const VISITOR: Bundle = Bundle { style: VISITOR_STYLE, script: VISITOR_SCRIPT };
const VISITOR_STYLE: Asset = asset!("visitor.css", "shop/forms.css", "shop/cart.css");
const VISITOR_SCRIPT: Asset =
    asset!("visitor.js", "shop/account.js", "shop/forms.js", "shop/reservation.js", "shop/shared.js");
/// The cart page.
pub(super) const CART: Bundle = Bundle { style: VISITOR_STYLE, script: CART_SCRIPT };
const CART_SCRIPT: Asset = asset!("cart.js", "shop/cart.js", "shop/forms.js", "shop/shared.js");
/// The page of a flash sale.
pub(super) const FLASH: Bundle = Bundle { style: FLASH_STYLE, script: FLASH_SCRIPT };
const FLASH_STYLE: Asset = asset!("flash.css", "shop/flash.css");
const FLASH_SCRIPT: Asset = asset!("flash.js", "shop/flash.js", "shop/shared.js");
/// Loaded by its first use: the suggestions of the search field.
pub(super) const SEARCH: Asset = asset!("search.js", "shop/search.js", "shop/shared.js");
/// Loaded by its first use: the cart beside the page.
pub(super) const DRAWER: Asset = asset!("drawer.js", "shop/drawer.js", "shop/shared.js");
/// The fonts, as `assets/shop/fonts.css` names them. The header preloads them.
pub(super) const FONTS: [&str; 2] = ["/_edge/assets/figtree-5.3.0.woff2", "/_edge/assets/fraunces-5.3.0.woff2"];
/// The product pictures. The URL's fragment is a picture's name.
pub(super) const PICTURES: Asset = asset!("pictures.svg");
/// The picture of the shop that other sites show beside a link, 1200 × 630 pixels.
pub(super) const CARD: Asset = asset!("card.png");

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    #[test]
    fn the_style_sheet_uses_the_preloaded_fonts() {
        let style = fs::read_to_string("assets/shop/fonts.css").unwrap();
        assert_eq!(style.matches("url(").count(), super::FONTS.len());
        for font in super::FONTS {
            assert!(style.contains(&format!("url(\"{font}\")")), "{font}");
        }
    }

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
