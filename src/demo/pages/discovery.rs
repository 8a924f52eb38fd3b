//! `/robots.txt` and `/sitemap.xml`: what search engines may list.

use std::fmt::Write;

use http::{HeaderName, HeaderValue, header::CONTENT_TYPE};

use crate::{
    demo::CATEGORIES,
    ports::fetch::{Body, Response},
};

const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// Filtered lists and pages for one visitor are not listed.
pub(in crate::demo) fn robots(site: &str) -> Response {
    let personal = ["/account", "/cart", "/checkout", "/login", "/orders/", "/signup", "/*?price=", "/*?stock="];
    let rules = personal.map(|path| format!("Disallow: {path}")).join("\n");
    text("text/plain; charset=utf-8", format!("User-agent: *\n{rules}\nSitemap: {site}/sitemap.xml\n"))
}

/// The URLs of the home page, all categories and `products`, which are ids.
pub(in crate::demo) fn sitemap(site: &str, products: &[String]) -> Response {
    let categories = CATEGORIES.iter().map(|(id, _)| format!("/categories/{id}"));
    let products = products.iter().map(|id| format!("/products/{id}"));
    let mut xml =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
            .to_owned();
    for path in ["/".to_owned(), "/search".to_owned()].into_iter().chain(categories).chain(products) {
        // Ids and categories contain no character that XML reserves.
        let _ = writeln!(xml, "<url><loc>{site}{path}</loc></url>");
    }
    xml.push_str("</urlset>\n");
    text("application/xml; charset=utf-8", xml)
}

/// A file that is the same for everybody, fresh for an hour.
fn text(kind: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CDN_CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    response
}
