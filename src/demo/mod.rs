//! The demo shop: the built-in origin when `ORIGIN_URL` is empty.
//!
//! It uses the `Edge-*` headers like any other storefront and has no access to Redis. Pages that the edge may cache are
//! the same for every visitor; scripts add personal data from the edge's API. Every action also works as a plain form
//! without JavaScript.
//!
//! - `route`: which page a URL names.
//! - `shopper`: the visitor and the cart, as the edge reports them.
//! - `forms`: submitted forms and their fields.
//! - `catalogue`: categories, products and flash sales in D1.
//! - `pages`: responses and public pages.
//! - `cart`, `checkout`, `orders`: from a cart to an order.
//! - `flash`: flash sales and their checkout.
//! - `accounts`, `passwords`, `sign_in`, `reset`, `attempts`: customer accounts.
//! - `format`: money and times. `rows`: database rows. `assets`: URLs of static files.

mod accounts;
mod assets;
mod attempts;
mod cart;
mod catalogue;
mod checkout;
mod flash;
mod format;
mod forms;
mod orders;
mod pages;
mod passwords;
mod reset;
mod route;
mod rows;
mod shopper;
mod sign_in;

use std::time::Duration;

use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    request::Parts,
};

use self::{
    accounts::AccountStore, attempts::SignInAttempts, catalogue::Catalogue, forms::SubmittedForm, orders::OrderStore,
    route::ShopRoute, shopper::Shopper,
};
use crate::ports::{
    database::Database,
    error::Error,
    fetch::{Body, Request, Response},
    mail::Mailer,
    rate_limit::RateLimit,
    time::Timestamp,
};

/// The items on sale, as in the migrations. `cargo xtask dev` schedules their rows, so that pages show live stock.
pub const ON_SALE: [&str; 8] = [
    "enamel-mug-sage",
    "wool-picnic-blanket-moss",
    "moka-pot-6-cups",
    "linen-napkins-rust",
    "hori-hori-walnut",
    "canvas-tote-ink",
    "paper-lantern-60-cm",
    "jigsaw-puzzle-night-train",
];

/// The categories in the page header: id and name, in the order of the migrations. A constant, so that the navigation
/// needs no query and still works while the database is down.
pub const CATEGORIES: [(&str, &str); 10] = [
    ("kitchen", "Kitchen"),
    ("tableware", "Tableware"),
    ("coffee-tea", "Coffee & Tea"),
    ("bed-bath", "Bed & Bath"),
    ("lighting", "Lighting"),
    ("desk", "Desk & Paper"),
    ("garden", "Garden"),
    ("bags", "Bags & Travel"),
    ("outdoor", "Camp & Outdoor"),
    ("play", "Toys & Games"),
];

/// The items of the two flash sales: one starts with the set-up of the database, one an hour later.
pub const FLASH_SALES: [&str; 2] = ["cast-iron-casserole-sage", "carbon-steel-frying-pan-24-cm"];

/// The policy of every page. It allows no other host and no inline script: a page runs only the `assets`.
pub const CONTENT_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'");
/// Headers of every response.
const SECURITY_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
];

/// The parts of the platform that the shop uses.
#[derive(Clone, Copy)]
pub struct Services<'a> {
    pub database: &'a dyn Database,
    /// Limits an account's sign-in attempts from networks that the shop does not know.
    pub logins: &'a RateLimit,
    /// None: the shop sends no mail.
    pub mailer: Option<&'a dyn Mailer>,
    /// The highest quantity of one item in a cart.
    pub max_quantity: u32,
    /// The longest time for which a piece of a flash sale is held after the end of the sale.
    pub flash_hold: Duration,
    /// Scheme and host of the shop. None: those of the request.
    pub site: Option<&'a str>,
}

/// Answers `request` as the origin. `now` decides which sales run.
pub async fn respond(services: Services<'_>, request: Request, now: Timestamp) -> Response {
    let (head, body) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let Services { database, logins, mailer, max_quantity, flash_hold, site } = services;
    let site = site.map_or_else(|| requested_site(&head), str::to_owned);
    let shop = Shop { database, logins, mailer, max_quantity, now, released: now - flash_hold, site: &site };
    let answer = dispatch(shop, &head, body).await.unwrap_or_else(|error| match error {
        Error::NotFound(_) => pages::not_found(),
        error => {
            log::error!("demo shop: {error}");
            pages::unavailable()
        }
    });
    let (mut head, mut body) = answer.into_parts();
    head.headers.extend(SECURITY_HEADERS);
    if is_head {
        // The length that GET would send: no later step could compute it without the body.
        head.headers.extend(body.len().map(|length| (CONTENT_LENGTH, HeaderValue::from(length))));
        body = Body::Empty;
    }
    Response::from_parts(head, body)
}

/// A page that the edge shows in place of a response of the shop: the shop's header, and a message.
#[must_use]
pub fn failure_page(title: &str, text: &str) -> String {
    pages::message_text(title, text)
}

/// Largest number of suggestions while a visitor types.
const MAX_SUGGESTIONS: usize = 6;

/// `https://shop.example` of a request to it.
fn requested_site(head: &Parts) -> String {
    let scheme = head.uri.scheme_str().unwrap_or("https");
    head.uri.authority().map_or_else(String::new, |host| format!("{scheme}://{host}"))
}

/// The context of a request handler.
#[derive(Clone, Copy)]
struct Shop<'a> {
    database: &'a dyn Database,
    /// Limits an account's sign-in attempts from networks that the shop does not know.
    logins: &'a RateLimit,
    /// None: the shop sends no mail.
    mailer: Option<&'a dyn Mailer>,
    /// The highest quantity of one item in a cart.
    max_quantity: u32,
    now: Timestamp,
    /// A flash sale that ended at this time or earlier holds no pieces: each reservation has been bought or has expired.
    released: Timestamp,
    /// Scheme and host of the shop, for absolute URLs.
    site: &'a str,
}

impl<'a> Shop<'a> {
    fn catalogue(self) -> Catalogue<'a> {
        Catalogue { database: self.database, now: self.now, released: self.released }
    }

    fn orders(self) -> OrderStore<'a> {
        OrderStore { database: self.database, now: self.now, released: self.released }
    }

    fn sign_in_attempts(self, user: &'a str, shopper: &Shopper) -> SignInAttempts<'a> {
        SignInAttempts { database: self.database, user, network: shopper.network, now: self.now }
    }

    fn accounts(self) -> AccountStore<'a> {
        AccountStore { database: self.database, now: self.now }
    }
}

async fn dispatch(shop: Shop<'_>, head: &Parts, body: Body) -> Result<Response, Error> {
    let route = ShopRoute::parse(head.uri.path(), head.uri.query())?;
    if !route.methods().contains(&head.method) {
        return Ok(method_not_allowed(route.methods()));
    }
    let shopper = Shopper::from_headers(head);
    if head.method == Method::POST {
        return match SubmittedForm::read(head, body).await {
            Ok(form) => {
                let wants_json = head.headers.get(ACCEPT).is_some_and(|accept| accept == "application/json");
                submit(shop, &route, &shopper, &form, wants_json).await
            }
            Err(rejection) => Ok(rejection.page()),
        };
    }
    let catalogue = shop.catalogue();
    let raw_query = head.uri.query().unwrap_or_default();
    match route {
        ShopRoute::Home => {
            let (categories, on_sale) = (catalogue.categories().await?, catalogue.on_sale().await?);
            pages::home(shop.site, &categories, &on_sale, &catalogue.flash_sales().await?)
        }
        ShopRoute::Category { id, query } => pages::category(shop, &id, &query, raw_query).await,
        ShopRoute::Search(query) => pages::search(shop, &query, raw_query).await,
        ShopRoute::Suggestions(query) => {
            let found = catalogue.search(&query).await?;
            Ok(pages::cards(&found.cards.into_iter().take(MAX_SUGGESTIONS).map(|line| line.card).collect::<Vec<_>>()))
        }
        ShopRoute::Robots => Ok(pages::robots(shop.site)),
        ShopRoute::Sitemap => Ok(pages::sitemap(shop.site, &catalogue.ids().await?)),
        ShopRoute::Favicon => Ok(pages::see_other(&assets::ICON.to_string())),
        ShopRoute::Flash(id) => flash::show(shop, &id).await,
        ShopRoute::FlashCalendar(id) => flash::calendar(shop, &id).await,
        ShopRoute::FlashCheckout(id) => flash::show_checkout(shop, &shopper, &id, raw_query).await,
        ShopRoute::Product(id) => pages::product(shop.site, &catalogue.product(&id).await?),
        ShopRoute::Cards(ids) => Ok(pages::cards(&catalogue.cards(&ids).await?)),
        ShopRoute::Cart => cart::show(shop, &shopper).await,
        ShopRoute::Checkout => checkout::show(shop, &shopper, raw_query).await,
        ShopRoute::Order(id) => orders::show(shop, &shopper, &id).await,
        ShopRoute::SignUp => sign_in::show_sign_up(head, &shopper),
        ShopRoute::Login => sign_in::show_login(head, &shopper),
        ShopRoute::Reset => reset::show_request(shop),
        ShopRoute::ResetLink(token) => reset::show_change(shop, &token).await,
        ShopRoute::Account => accounts::show(shop, &shopper).await,
        ShopRoute::Logout => Err(Error::NotFound("page")),
    }
}

/// Handles a submitted form.
async fn submit(
    shop: Shop<'_>,
    route: &ShopRoute,
    shopper: &Shopper,
    form: &SubmittedForm,
    wants_json: bool,
) -> Result<Response, Error> {
    match route {
        ShopRoute::Cart => cart::change(shop, shopper, form, wants_json).await,
        ShopRoute::Checkout => checkout::place_order(shop, shopper, form).await,
        ShopRoute::FlashCheckout(id) => flash::place_order(shop, shopper, form, id).await,
        ShopRoute::SignUp => sign_in::sign_up(shop, shopper, form).await,
        ShopRoute::Login => sign_in::log_in(shop, shopper, form).await,
        ShopRoute::Reset => reset::request(shop, form).await,
        ShopRoute::ResetLink(token) => reset::change(shop, token, form).await,
        ShopRoute::Account => accounts::change_addresses(shop, shopper, form).await,
        ShopRoute::Logout => Ok(sign_in::log_out(form)),
        _ => Err(Error::NotFound("form")),
    }
}

fn method_not_allowed(allowed: &[Method]) -> Response {
    let text = "This page does not support this action. Please go back and try again.";
    let mut response = pages::message(StatusCode::METHOD_NOT_ALLOWED, "Action not supported", text);
    let names: Vec<_> = allowed.iter().map(Method::as_str).collect();
    if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
        response.headers_mut().insert(ALLOW, names);
    }
    response
}

#[cfg(test)]
mod tests;
