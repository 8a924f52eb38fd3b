//! The built-in shop: the origin where `ORIGIN_URL` is not set. It keeps the origin's side of the contract as any storefront
//! would, and knows nothing of Redis. Pages that may be cached are the same for everybody; what is personal on them comes from the API by a
//! script. Whatever a visitor does works by plain forms, without that script.
//!
//! - `route`: what a URL of the shop is.
//! - `visitor`: who asks, and what is in their cart, as the edge says.
//! - `form`: what somebody sent, and the fields that show it again.
//! - `catalogue`: the goods, from D1.
//! - `pages`: what everybody sees.
//! - `basket`, `cart`, `checkout`, `orders`: from a cart to an order.
//! - `flash`: the flash sales' pages, and the checkout of a piece that is held.
//! - `accounts`, `passwords`, `sign_in`, `account`: who buys.
//! - `assets`: the addresses of style, script, pictures and icon.

mod account;
mod accounts;
mod assets;
mod basket;
mod cart;
mod catalogue;
mod checkout;
mod flash;
mod form;
mod orders;
mod pages;
mod passwords;
mod route;
mod sign_in;
mod visitor;

use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ALLOW, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    request::Parts,
};

use self::{accounts::Accounts, catalogue::Catalogue, form::Form, orders::Orders, route::Route, visitor::Visitor};
use crate::ports::{
    database::Database,
    error::Error,
    fetch::{Body, Request, Response},
    rate_limit::RateLimit,
    time::Timestamp,
};

/// The items of the sale, as the migrations set it up: what a flash sale would refresh every few seconds.
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

/// What the header leads to: id and name of each category, in the order that the migrations set up. Written down, so that no page has to
/// ask the database for its navigation, and the page that says that the database is away has one, too.
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

/// The rows of the flash sales: one runs from the set-up on, one begins an hour later.
pub const FLASH_SALES: [&str; 2] = ["cast-iron-casserole-sage", "carbon-steel-frying-pan-24-cm"];

/// On every answer. Nothing comes from another host, and nothing in a page runs that is not one of the [`assets`].
const SECURITY: [(HeaderName, HeaderValue); 3] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
];

/// Answers `request` as the storefront; `now` decides which sales run, and `logins` how often an account may be tried.
pub async fn respond(database: &dyn Database, logins: &RateLimit, request: Request, now: Timestamp) -> Response {
    let (head, body) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let answer = dispatch(Shop { database, logins, now }, &head, body).await.unwrap_or_else(|error| match error {
        Error::NotFound(_) => pages::not_found(),
        error => {
            log::error!("demo shop: {error}");
            pages::closed()
        }
    });
    let (mut head, mut body) = answer.into_parts();
    head.headers.extend(SECURITY);
    if is_head {
        // What GET would have sent; the body is gone then, and nobody behind us could tell its length any more.
        head.headers.extend(body.len().map(|length| (CONTENT_LENGTH, HeaderValue::from(length))));
        body = Body::Empty;
    }
    Response::from_parts(head, body)
}

/// The shop's database at one moment.
#[derive(Clone, Copy)]
struct Shop<'a> {
    database: &'a dyn Database,
    logins: &'a RateLimit,
    now: Timestamp,
}

impl<'a> Shop<'a> {
    fn catalogue(self) -> Catalogue<'a> {
        Catalogue { database: self.database, now: self.now }
    }

    fn orders(self) -> Orders<'a> {
        Orders { database: self.database, now: self.now }
    }

    fn accounts(self) -> Accounts<'a> {
        Accounts { database: self.database, now: self.now }
    }
}

async fn dispatch(shop: Shop<'_>, head: &Parts, body: Body) -> Result<Response, Error> {
    let route = Route::of(head.uri.path(), head.uri.query())?;
    if !route.methods().contains(&head.method) {
        return Ok(method_not_allowed(route.methods()));
    }
    let visitor = Visitor::of(head);
    if head.method == Method::POST {
        return match Form::read(head, body).await {
            Ok(form) => submit(shop, &route, &visitor, &form).await,
            Err(refusal) => Ok(refusal.page()),
        };
    }
    let catalogue = shop.catalogue();
    match route {
        Route::Home => {
            let (categories, on_sale) = (catalogue.categories().await?, catalogue.on_sale().await?);
            pages::home(&categories, &on_sale, &catalogue.flash_sales().await?)
        }
        Route::Category { id, page } => pages::category(&catalogue.category(&id, page).await?),
        Route::Flash(id) => flash::show(shop, &id).await,
        Route::FlashCheckout(id) => flash::checkout(shop, &visitor, &id).await,
        Route::Product(id) => pages::product(&catalogue.product(&id).await?),
        Route::Cards(ids) => Ok(pages::cards(&catalogue.cards(&ids).await?)),
        Route::Cart => cart::show(shop, &visitor).await,
        Route::Checkout => checkout::show(shop, &visitor).await,
        Route::Order(id) => checkout::order(shop, &visitor, &id).await,
        Route::SignUp => sign_in::show_sign_up(head, &visitor),
        Route::Login => sign_in::show_login(head, &visitor),
        Route::Account => account::show(shop, &visitor).await,
        Route::Logout => Err(Error::NotFound("page")),
    }
}

/// The action of a form.
async fn submit(shop: Shop<'_>, route: &Route, visitor: &Visitor, form: &Form) -> Result<Response, Error> {
    match route {
        Route::Cart => cart::change(shop, visitor, form).await,
        Route::Checkout => checkout::buy(shop, visitor, form).await,
        Route::FlashCheckout(id) => flash::buy(shop, visitor, form, id).await,
        Route::SignUp => sign_in::sign_up(shop, form).await,
        Route::Login => sign_in::log_in(shop, form).await,
        Route::Logout => Ok(sign_in::log_out(form)),
        _ => Err(Error::NotFound("form")),
    }
}

fn method_not_allowed(allowed: &[Method]) -> Response {
    let mut response = pages::message(StatusCode::METHOD_NOT_ALLOWED, "Not this way", "This address is not for that.");
    let names: Vec<_> = allowed.iter().map(Method::as_str).collect();
    if let Ok(names) = HeaderValue::try_from(names.join(", ")) {
        response.headers_mut().insert(ALLOW, names);
    }
    response
}

#[cfg(test)]
mod tests;
