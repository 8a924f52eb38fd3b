//! The built-in shop: the origin where `ORIGIN_URL` is not set. It keeps the origin's side of the contract as any storefront
//! would, and knows nothing of Redis; everything personal on its pages comes from the API by a script.
//!
//! - `route`: what a URL of the shop is.
//! - `catalogue`: the goods, from D1.
//! - `pages`: what a visitor sees.
//! - `sign_in`: `Edge-Login` and `Edge-Logout`.
//! - `assets`: the addresses of style, script, pictures and icon.

mod assets;
mod catalogue;
mod pages;
mod route;
mod sign_in;

use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ALLOW, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    request::Parts,
};

use self::{catalogue::Catalogue, route::Route};
use crate::{
    database::Database,
    error::Error,
    fetch::{Body, Request, Response},
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

/// On every answer. Nothing comes from another host, and nothing in a page runs that is not one of the [`assets`].
const SECURITY: [(HeaderName, HeaderValue); 3] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
];

/// Answers `request` as the storefront; `now` decides which sales run.
pub async fn respond(database: &dyn Database, request: Request, now: Timestamp) -> Response {
    let (head, body) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let answer = dispatch(Catalogue { database, now }, &head, body).await.unwrap_or_else(|error| match error {
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

async fn dispatch(catalogue: Catalogue<'_>, head: &Parts, body: Body) -> Result<Response, Error> {
    let route = Route::of(head.uri.path(), head.uri.query())?;
    if !route.methods().contains(&head.method) {
        return Ok(method_not_allowed(route.methods()));
    }
    match route {
        Route::Home => pages::home(&catalogue.categories().await?, &catalogue.on_sale().await?),
        Route::Category { id, page } => pages::category(&catalogue.category(&id, page).await?),
        Route::Product(id) => pages::product(&catalogue.product(&id).await?),
        Route::Cards(ids) => Ok(pages::cards(&catalogue.cards(&ids).await?)),
        Route::Cart => pages::cart(sign_in::user(head)),
        Route::Login if head.method == Method::POST => sign_in::log_in(head, body).await,
        Route::Login => pages::login(StatusCode::OK, sign_in::user(head), "", None),
        Route::Logout => Ok(sign_in::log_out(head)),
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
