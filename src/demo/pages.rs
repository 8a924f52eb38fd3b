//! The pages of the shop. A page that may be cached is the same for everybody: it has neither cookie nor name in it.

use std::fmt;

use askama::Template;
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER},
};
use serde_json::json;

use super::catalogue::{Card, Category, Offer, Product, Shelf};
use crate::ports::{
    error::Error,
    fetch::{Body, Response},
};

const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub(super) const EDGE_TAGS: HeaderName = HeaderName::from_static("edge-tags");

/// The top of all pages, compiled once.
#[derive(Template)]
#[template(path = "top.html")]
pub(super) struct Top;

/// The bottom of all pages.
#[derive(Template)]
#[template(path = "foot.html")]
pub(super) struct Foot;

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'a> {
    categories: &'a [Category],
    on_sale: &'a [Card],
    flash_sales: &'a [Offer],
}

#[derive(Template)]
#[template(path = "category.html")]
struct CategoryPage<'a> {
    category: &'a Category,
    cards: &'a [Card],
    page: u32,
    pages: u32,
}

#[derive(Template)]
#[template(path = "product.html")]
struct ProductPage<'a> {
    product: &'a Product,
    siblings: &'a [Card],
    /// The rejected input for the quantity, and its error.
    typed: Option<(&'a str, &'a str)>,
}

#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    title: &'a str,
    text: &'a str,
}

pub(super) fn home(categories: &[Category], on_sale: &[Card], flash_sales: &[Offer]) -> Result<Response, Error> {
    html(StatusCode::OK, &Home { categories, on_sale, flash_sales })
}

pub(super) fn category(Shelf { category, cards, page, pages }: &Shelf) -> Result<Response, Error> {
    html(StatusCode::OK, &CategoryPage { category, cards, page: page.get(), pages: *pages })
}

/// Says nothing of how long it is fresh: the edge decides that by its rank.
pub(super) fn product((product, siblings): &(Product, Vec<Card>)) -> Result<Response, Error> {
    let mut response = html(StatusCode::OK, &ProductPage { product, siblings, typed: None })?;
    if let Ok(tags) = HeaderValue::try_from(format!("product,category-{}", product.category)) {
        response.headers_mut().insert(EDGE_TAGS, tags);
    }
    Ok(response)
}

/// The page of a product that was not put into the cart, with what was `typed` and its `problem`.
pub(super) fn product_again(
    (product, siblings): &(Product, Vec<Card>),
    typed: &str,
    problem: &str,
) -> Result<Response, Error> {
    let page = ProductPage { product, siblings, typed: Some((typed, problem)) };
    private(html(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// `{"products": [card]}`, for what the script knows only by id. Prices may be half a minute old.
pub(super) fn cards(cards: &[Card]) -> Response {
    let mut response = Response::new(Body::from(json!({ "products": cards }).to_string()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=30"));
    response
}

pub(super) fn not_found() -> Response {
    message(StatusCode::NOT_FOUND, "Not on our shelves", "There is nothing at this address.")
}

/// The catalogue cannot be read.
pub(super) fn closed() -> Response {
    let text = "We cannot reach our shelves. Please try again in a moment.";
    let mut response = message(StatusCode::SERVICE_UNAVAILABLE, "Back in a moment", text);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// A page with one sentence. Should even that not render, the sentence alone.
pub(super) fn message(status: StatusCode, title: &str, text: &str) -> Response {
    html(status, &Message { title, text }).unwrap_or_else(|_| {
        let mut response = Response::new(Body::from(text.to_owned()));
        *response.status_mut() = status;
        response
    })
}

/// 303, so that reloading what follows sends no form again. `path` is one of ours.
pub(super) fn see_other(path: &str) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.extend(HeaderValue::try_from(path).map(|path| (LOCATION, path)));
    headers.insert(CACHE_CONTROL, NO_STORE);
    response
}

pub(super) fn html(status: StatusCode, page: &impl Template) -> Result<Response, Error> {
    respond(status, page.render())
}

fn respond(status: StatusCode, page: askama::Result<String>) -> Result<Response, Error> {
    let text = page.map_err(|error| Error::Platform(format!("a page does not render: {error}")))?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Ok(response)
}

/// Somebody's own page: kept nowhere.
pub(super) fn private(page: Result<Response, Error>) -> Result<Response, Error> {
    page.map(|mut response| {
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        response
    })
}

/// An amount as it is written in a page: `€14.00`.
pub(super) struct Money<'a> {
    pub cents: i64,
    pub currency: &'a str,
}

impl fmt::Display for Money<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.cents % 100;
        // €30,719.25, as the script writes it.
        let whole = match (self.cents / 100, self.cents / 100_000) {
            (whole, 0) => whole.to_string(),
            (whole, thousands) => format!("{thousands},{:03}", whole % 1000),
        };
        match self.currency {
            "EUR" => write!(f, "€{whole}.{cents:02}"),
            "GBP" => write!(f, "£{whole}.{cents:02}"),
            "USD" => write!(f, "${whole}.{cents:02}"),
            other => write!(f, "{whole}.{cents:02} {other}"),
        }
    }
}

impl Product {
    fn flash_price(&self) -> Option<Money<'_>> {
        self.flash_cents.map(|cents| Money { cents, currency: &self.card.currency })
    }
}

impl Offer {
    /// The sale price of a piece.
    pub(super) fn price(&self) -> Money<'_> {
        Money { cents: self.sale_cents, currency: &self.card.currency }
    }

    pub(super) fn list_price(&self) -> Money<'_> {
        Money { cents: self.card.list_cents, currency: &self.card.currency }
    }

    pub(super) fn begin(&self) -> String {
        moment(self.starts)
    }

    pub(super) fn end(&self) -> String {
        moment(self.ends)
    }
}

/// `21 Nov 2026 18:12:05 GMT`, for who has no script that tells their own time.
fn moment(seconds: u64) -> String {
    // The formatter ends with the year 9999.
    let moment = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.min(253_402_300_799));
    // `Sat, 21 Nov 2026 18:12:05 GMT`
    httpdate::fmt_http_date(moment).split_off(5)
}

impl Card {
    fn price(&self) -> Money<'_> {
        Money { cents: self.price_cents, currency: &self.currency }
    }

    /// None if it is what is to be paid anyway.
    fn list_price(&self) -> Option<Money<'_>> {
        (self.list_cents > self.price_cents).then_some(Money { cents: self.list_cents, currency: &self.currency })
    }

    /// How much less than the list price, rounded down; None below one percent.
    fn percent_off(&self) -> Option<i64> {
        let percent = (self.list_cents - self.price_cents).checked_mul(100)?.checked_div(self.list_cents)?;
        (percent > 0).then_some(percent)
    }

    /// What tells it from the others of its line: `Oak, 35 cm` of `End-Grain Chopping Board, Oak, 35 cm`.
    fn kind(&self) -> &str {
        self.name.split_once(", ").map_or(self.name.as_str(), |(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use serde_json::json;

    use super::*;
    use crate::ports::fetch::Body;

    fn text(response: Response) -> String {
        match response.into_body() {
            Body::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => panic!("no page: {other:?}"),
        }
    }

    fn mug(list_cents: i64, price_cents: i64, stock: i64) -> Card {
        let (id, name, currency) = ("mug".to_owned(), "Mug, <Sage> & \"Ink\"".to_owned(), "EUR".to_owned());
        let (picture, tone) = ("mug".to_owned(), "sage".to_owned());
        Card { id, name, currency, price_cents, list_cents, stock, picture, tone }
    }

    fn mug_page(card: &Card, siblings: Vec<Card>) -> Response {
        let mut row = json!({"category": "tableware", "category_name": "Tableware", "description": "<script>alert(1)</script>",
            "details": r#"{"Zest": "first", "Age": "<b>second</b>"}"#});
        row.as_object_mut().unwrap().extend(json!(card).as_object().unwrap().clone());
        product(&(serde_json::from_value(row).unwrap(), siblings)).unwrap()
    }

    #[test]
    fn whatever_the_catalogue_holds_stays_text() {
        let page = text(mug_page(&mug(1400, 1400, 3), vec![mug(1400, 1400, 3)]));
        assert!(!page.contains("<script>alert") && !page.contains("<b>") && !page.contains("<Sage>"), "{page}");
        assert!(page.contains("&#60;script&#62;alert(1)"), "{page}");
        let product = serde_json::from_value(
            json!({"category": "", "category_name": "", "description": "", "details": "{}",
            "id": "mug", "name": "", "currency": "EUR", "price_cents": 1, "list_cents": 1, "stock": 1, "picture": "", "tone": ""}),
        );
        let page = product_again(&(product.unwrap(), vec![]), "\"><script>alert(1)</script>", "<i>");
        let page = text(page.unwrap());
        assert!(!page.contains("<script>alert") && !page.contains("\"\">") && !page.contains("<i>"), "{page}");
    }

    #[test]
    fn no_page_carries_a_script_or_a_style_of_its_own() {
        let shelf = Shelf {
            category: Category {
                id: "a".into(),
                name: "A".into(),
                blurb: "B".into(),
                products: 60,
                picture: "mug".into(),
                tone: "sage".into(),
            },
            cards: vec![mug(1400, 900, 0)],
            page: NonZeroU32::new(2).unwrap(),
            pages: 3,
        };
        let pages = [
            home(std::slice::from_ref(&shelf.category), &shelf.cards, &[]),
            category(&shelf),
            Ok(mug_page(&mug(1, 1, 1), vec![])),
            Ok(not_found()),
            Ok(closed()),
        ];
        for page in pages {
            let page = text(page.unwrap());
            assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick"), "{page}");
            assert_eq!(page.matches("<script").count(), page.matches("<script src=\"/_edge/assets/").count(), "{page}");
            assert_eq!(page.matches("<h1").count(), 1, "{page}");
        }
    }

    #[test]
    fn details_keep_the_order_of_the_catalogue() {
        let page = text(mug_page(&mug(1400, 1400, 3), vec![]));
        assert!(page.find("Zest").unwrap() < page.find("Age").unwrap());
    }

    #[test]
    fn a_sale_shows_both_prices_and_an_empty_shelf_says_so() {
        let page = text(mug_page(&mug(1400, 1050, 3), vec![]));
        assert!(
            page.contains("€10.50") && page.contains("<s data-list-price>€14.00</s>") && page.contains("In stock"),
            "{page}"
        );
        let page = text(mug_page(&mug(1400, 1400, 0), vec![]));
        assert!(
            page.contains("€14.00") && page.contains("<s data-list-price></s>") && page.contains("Sold out"),
            "{page}"
        );
    }

    #[test]
    fn a_product_page_is_tagged_and_leaves_its_freshness_to_the_edge() {
        let page = mug_page(&mug(1400, 1400, 3), vec![]);
        assert_eq!(page.headers().get("edge-tags").unwrap(), "product,category-tableware");
        assert_eq!(page.headers().get(CACHE_CONTROL), None);
    }

    #[test]
    fn what_a_sale_saves_is_rounded_down_and_nothing_is_not_shown() {
        for (list, price, percent) in
            [(1400, 1050, Some(25)), (1000, 999, None), (999, 667, Some(33)), (1000, 1200, None)]
        {
            assert_eq!(mug(list, price, 3).percent_off(), percent, "{list} {price}");
        }
    }

    #[test]
    fn one_of_a_line_is_told_by_what_follows_its_name() {
        let named = |name: &str| Card { name: name.to_owned(), ..mug(1, 1, 1) }.kind().to_owned();
        assert_eq!(named("End-Grain Chopping Board, Oak, 35 cm"), "Oak, 35 cm");
        assert_eq!(named("Kite"), "Kite");
    }

    #[test]
    fn amounts_are_written_with_their_currency() {
        for (cents, currency, written) in
            [(1400, "EUR", "€14.00"), (5, "GBP", "£0.05"), (129_900, "USD", "$1,299.00"), (250, "SEK", "2.50 SEK")]
        {
            assert_eq!(Money { cents, currency }.to_string(), written);
        }
    }
}
