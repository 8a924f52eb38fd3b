//! The shop's routes. An unknown URL has no [`Route`].

use std::num::NonZeroU32;

use http::Method;
use url::form_urlencoded;

use super::orders::OrderId;
use crate::{config::item_routes::ItemRoutes, ports::error::Error, schema::ids::ItemId};

/// One page, or one other thing, of the shop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    Home,
    /// `page` counts from 1.
    Category {
        id: String,
        page: NonZeroU32,
    },
    Product(ItemId),
    /// The page of its flash sale.
    Flash(ItemId),
    FlashCheckout(ItemId),
    /// `/products.json?ids=a,b`: names and prices for the script.
    Cards(Vec<String>),
    Cart,
    Checkout,
    Order(OrderId),
    SignUp,
    Login,
    Logout,
    Account,
}

/// D1 is asked for so many products at once; a cart holds no more lines by default.
const MAX_CARDS: usize = 100;

impl Route {
    /// # Errors
    /// [`Error::NotFound`] if the shop has nothing there. A page number that is none, or an item that is named twice, counts
    /// as that too: whatever answers 200 has one address.
    pub(super) fn of(path: &str, query: Option<&str>) -> Result<Self, Error> {
        // Exactly what the page cache counts as an item by default.
        if let Some(item) = ItemRoutes::default().item(path, query) {
            return Ok(if path.starts_with("/flash/") { Self::Flash(item) } else { Self::Product(item) });
        }
        let parameter = |name: &str| {
            let query = query.unwrap_or_default().as_bytes();
            form_urlencoded::parse(query).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        match path {
            "/" if parameter("item").is_none() => Ok(Self::Home),
            "/products.json" => {
                let ids = parameter("ids").unwrap_or_default();
                Ok(Self::Cards(ids.split(',').take(MAX_CARDS).map(str::to_owned).collect()))
            }
            "/cart" => Ok(Self::Cart),
            "/checkout" => Ok(Self::Checkout),
            "/signup" => Ok(Self::SignUp),
            "/account" => Ok(Self::Account),
            "/login" => Ok(Self::Login),
            "/logout" => Ok(Self::Logout),
            _ => {
                if let Some(id) = path.strip_prefix("/categories/") {
                    let page = parameter("page").map_or(Ok(NonZeroU32::MIN), |page| page.parse());
                    let page = page.map_err(|_| Error::NotFound("page"))?;
                    return Ok(Self::Category { id: id.to_owned(), page });
                }
                if let Some(item) = path.strip_prefix("/flash/").and_then(|rest| rest.strip_suffix("/checkout")) {
                    return ItemId::parse(item).map(Self::FlashCheckout).map_err(|_| Error::NotFound("flash sale"));
                }
                let order = path.strip_prefix("/orders/").and_then(OrderId::parse);
                order.map(Self::Order).ok_or(Error::NotFound("page"))
            }
        }
    }

    /// The allowed methods.
    pub(super) fn methods(&self) -> &'static [Method] {
        match self {
            Self::Cart | Self::Checkout | Self::FlashCheckout(_) | Self::SignUp | Self::Login => {
                &[Method::GET, Method::HEAD, Method::POST]
            }
            Self::Logout => &[Method::POST],
            _ => &[Method::GET, Method::HEAD],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(url: &str) -> Option<Route> {
        let (path, query) = url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
        Route::of(path, query).ok()
    }

    #[test]
    fn a_product_has_both_addresses_that_the_book_and_the_shop_use() {
        let mug = Some(Route::Product(ItemId::parse("enamel-mug-sage").unwrap()));
        assert_eq!(route("/products/enamel-mug-sage"), mug);
        assert_eq!(route("/?item=enamel-mug-sage"), mug);
        assert_eq!(route("/?utm=1&item=enamel-mug-sage"), mug);
    }

    #[test]
    fn a_flash_sale_has_its_items_name() {
        assert_eq!(route("/flash/mug"), Some(Route::Flash(ItemId::parse("mug").unwrap())));
        assert_eq!(route("/flash/mug/checkout"), Some(Route::FlashCheckout(ItemId::parse("mug").unwrap())));
        for url in ["/flash", "/flash/", "/flash/a/b", "/flash/a%3Ab", "/flash//checkout", "/flash/a/b/checkout"] {
            assert_eq!(route(url), None, "{url}");
        }
    }

    #[test]
    fn a_wrong_item_is_not_the_home_page() {
        for url in ["/?item=", "/?item=a%3Ab", "/?item=a&item=b", "/products/", "/products/a/b", "/products/%ff"] {
            assert_eq!(route(url), None, "{url}");
        }
        assert_eq!(route("/?other=1"), Some(Route::Home));
    }

    #[test]
    fn a_category_is_read_page_by_page() {
        let kitchen = |page| Some(Route::Category { id: "kitchen".to_owned(), page: NonZeroU32::new(page).unwrap() });
        assert_eq!(route("/categories/kitchen"), kitchen(1));
        assert_eq!(route("/categories/kitchen?page=2"), kitchen(2));
        for page in ["0", "-1", "two", "", "1.5", "99999999999"] {
            assert_eq!(route(&format!("/categories/kitchen?page={page}")), None, "{page}");
        }
    }

    #[test]
    fn no_more_products_are_asked_for_than_the_database_binds() {
        let ids = vec!["a"; 5_000].join(",");
        let Some(Route::Cards(ids)) = route(&format!("/products.json?ids={ids}")) else { panic!("no such route") };
        assert_eq!(ids.len(), MAX_CARDS);
    }
}
