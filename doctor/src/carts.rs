//! The paths of carts: a write there changes only its visitor's own content.

/// Segments of paths, in lower case, at which a form changes only its visitor's own content.
const CART_SEGMENTS: [&str; 4] = ["cart", "basket", "wishlist", "compare"];

/// The paths at and below the cart to which a form of a page is sent, such as `/cart/*` for `/cart/add`. None for another path.
///
/// Each page of a kind may have its own cart: `/events/ball/cart/add` on `/events/ball/`, of `/events/*/`, means `/events/*/cart/*`.
pub fn cart_paths(target: &str, page: &str, kind: &str) -> Option<String> {
    let segments: Vec<_> = target.split('/').collect();
    let end = segments.iter().position(|segment| is_cart(segment))?;
    let kind = kind.split('?').next().unwrap_or_default().replace("{item}", "*");
    let of_kind: Vec<_> = page.split('/').zip(kind.split('/')).collect();
    let same = segments.iter().zip(&of_kind).take_while(|(own, (of_page, _))| *own == of_page).count();
    let general = of_kind.iter().map(|(_, general)| *general).take(same);
    let path: Vec<_> = general.chain(segments.iter().skip(same).copied()).take(end + 1).collect();
    Some(format!("{}/*", path.join("/")))
}

/// Returns whether a path is one of the cart.
pub fn is_cart(path: &str) -> bool {
    path.split('/').any(|segment| CART_SEGMENTS.iter().any(|own| own.eq_ignore_ascii_case(segment)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_carts_of_a_kind_are_one_path() {
        for (target, page, kind, expected) in [
            ("/cart/add/mug", "/products/mug", "/products/{item}", Some("/cart/*")),
            ("/en/cart/add", "/en/products/mug", "/en/products/*?size", Some("/en/cart/*")),
            ("/events/ball/cart/add", "/events/ball/", "/events/{item}/", Some("/events/*/cart/*")),
            ("/events/series/cart/add", "/events/series/1/", "/events/*/*/", Some("/events/*/cart/*")),
            ("/ball/cart/add", "/ball/", "/*/", Some("/*/cart/*")),
            ("/Cart/Add", "/Product/Details/3", "/Product/Details/*", Some("/Cart/*")),
            ("/basket", "/ball/", "/*/", Some("/basket/*")),
            ("/events/ball/", "/events/ball/", "/events/{item}/", None),
        ] {
            assert_eq!(cart_paths(target, page, kind).as_deref(), expected, "{target}");
        }
    }
}
