//! Routes of the shop: which page a URL names.

use http::Method;
use url::form_urlencoded;

use super::{catalogue::ListQuery, orders::DemoOrderId, reset::ResetToken};
use crate::{config::item_routes::ItemRoutes, ports::error::Error, schema::ids::ItemId};

/// A page or form of the shop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShopRoute {
    Home,
    Category {
        id: String,
        query: ListQuery,
    },
    Search(ListQuery),
    /// `/search.json?q=`: product data for suggestions.
    Suggestions(ListQuery),
    Product(ItemId),
    /// The flash sale of an item.
    Flash(ItemId),
    FlashCheckout(ItemId),
    /// The flash sale as a calendar entry.
    FlashCalendar(ItemId),
    /// `/products.json?ids=a,b`: product data for scripts.
    Cards(Vec<String>),
    Cart,
    Checkout,
    Order(DemoOrderId),
    SignUp,
    Login,
    Logout,
    /// Asks for a link that resets a password.
    Reset,
    ResetLink(ResetToken),
    Account,
    Robots,
    Sitemap,
    /// `/favicon.ico`, which browsers ask for without a page.
    Favicon,
}

/// Largest number of products in one query of D1: as many as a cart has lines by default.
const MAX_CARDS: usize = 100;

impl ShopRoute {
    /// Parses path and query of a URL.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the URL is no page of the shop, has an invalid page number, or names an item twice.
    pub(super) fn parse(path: &str, query: Option<&str>) -> Result<Self, Error> {
        // The page cache's default item routes, so that both agree on what an item is.
        if let Some(item) = ItemRoutes::default().item(path, query) {
            return Ok(if path.starts_with("/flash/") { Self::Flash(item) } else { Self::Product(item) });
        }
        let parameter = |name: &str| {
            let query = query.unwrap_or_default().as_bytes();
            form_urlencoded::parse(query).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        let list = || ListQuery::parse(query.unwrap_or_default());
        match path {
            "/" if parameter("item").is_none() => Ok(Self::Home),
            "/products.json" => {
                let ids = parameter("ids").unwrap_or_default();
                Ok(Self::Cards(ids.split(',').take(MAX_CARDS).map(str::to_owned).collect()))
            }
            "/search" => Ok(Self::Search(list())),
            "/search.json" => Ok(Self::Suggestions(list())),
            "/robots.txt" => Ok(Self::Robots),
            "/sitemap.xml" => Ok(Self::Sitemap),
            "/favicon.ico" => Ok(Self::Favicon),
            "/cart" => Ok(Self::Cart),
            "/checkout" => Ok(Self::Checkout),
            "/signup" => Ok(Self::SignUp),
            "/account" => Ok(Self::Account),
            "/login" => Ok(Self::Login),
            "/logout" => Ok(Self::Logout),
            "/reset" => Ok(Self::Reset),
            _ => {
                if let Some(id) = path.strip_prefix("/categories/") {
                    return Ok(Self::Category { id: id.to_owned(), query: list() });
                }
                if let Some(item) = path.strip_prefix("/flash/").and_then(|rest| rest.strip_suffix("/checkout")) {
                    return ItemId::parse(item).map(Self::FlashCheckout).map_err(|_| Error::NotFound("flash sale"));
                }
                if let Some(item) = path.strip_prefix("/flash/").and_then(|rest| rest.strip_suffix("/calendar.ics")) {
                    return ItemId::parse(item).map(Self::FlashCalendar).map_err(|_| Error::NotFound("flash sale"));
                }
                if let Some(token) = path.strip_prefix("/reset/").and_then(ResetToken::parse) {
                    return Ok(Self::ResetLink(token));
                }
                let order = path.strip_prefix("/orders/").and_then(DemoOrderId::parse);
                order.map(Self::Order).ok_or(Error::NotFound("page"))
            }
        }
    }

    /// The allowed methods.
    pub(super) fn methods(&self) -> &'static [Method] {
        match self {
            Self::Cart
            | Self::Checkout
            | Self::FlashCheckout(_)
            | Self::SignUp
            | Self::Login
            | Self::Reset
            | Self::ResetLink(_)
            | Self::Account => &[Method::GET, Method::HEAD, Method::POST],
            Self::Logout => &[Method::POST],
            _ => &[Method::GET, Method::HEAD],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(url: &str) -> Option<ShopRoute> {
        let (path, query) = url.split_once('?').map_or((url, None), |(path, query)| (path, Some(query)));
        ShopRoute::parse(path, query).ok()
    }

    #[test]
    fn a_product_has_the_urls_of_the_book_and_of_the_shop() {
        let mug = Some(ShopRoute::Product(ItemId::parse("enamel-mug-sage").unwrap()));
        assert_eq!(route("/products/enamel-mug-sage"), mug);
        assert_eq!(route("/?item=enamel-mug-sage"), mug);
        assert_eq!(route("/?utm=1&item=enamel-mug-sage"), mug);
    }

    #[test]
    fn a_flash_sale_url_names_its_item() {
        assert_eq!(route("/flash/mug"), Some(ShopRoute::Flash(ItemId::parse("mug").unwrap())));
        assert_eq!(route("/flash/mug/checkout"), Some(ShopRoute::FlashCheckout(ItemId::parse("mug").unwrap())));
        for url in ["/flash", "/flash/", "/flash/a/b", "/flash/a%3Ab", "/flash//checkout", "/flash/a/b/checkout"] {
            assert_eq!(route(url), None, "{url}");
        }
    }

    #[test]
    fn an_invalid_item_is_not_the_home_page() {
        for url in ["/?item=", "/?item=a%3Ab", "/?item=a&item=b", "/products/", "/products/a/b", "/products/%ff"] {
            assert_eq!(route(url), None, "{url}");
        }
        assert_eq!(route("/?other=1"), Some(ShopRoute::Home));
    }

    #[test]
    fn the_number_of_requested_products_is_limited() {
        let ids = vec!["a"; 5_000].join(",");
        let Some(ShopRoute::Cards(ids)) = route(&format!("/products.json?ids={ids}")) else { panic!("no such route") };
        assert_eq!(ids.len(), MAX_CARDS);
    }
}
