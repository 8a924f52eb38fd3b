//! The shop with Next.js. Its product pages are the same for everybody: their scripts fetch the cart and the name of the
//! customer. Under the URL of each page, these scripts also fetch its data (`text/x-component`) with the header `RSC`.

use http::header;
use xtask::failure::Failure;

use super::{compare, product_names};
use crate::storefronts::{
    tally::Violation,
    visitor::{Page, Visitor, refused},
};

/// The rule for the shop's own cookie; see presets/nextjs.env.
pub const VARIABLES: [(&str, &str); 1] = [("COOKIES_DROPPED", "visitor@/*")];
/// Fragments only mark the requests for data. `_rsc` is the hash of the headers; see [`headers`].
pub const OTHER_PAGES: [&str; 11] = [
    "/",
    "/api/cart",
    "/product/oak-mug?_rsc=5CB68i4pnAekjehf#data",
    "/collections/kitchen",
    "/cart",
    "/product/oak-mug?_rsc=5CB68i4pnAekjehf",
    "/search?q=oak",
    "/api/session",
    "/product/oak-mug#data",
    "/account",
    "/collections/kitchen?_rsc=5CB68i4pnAekjehf#data",
];
const PASSWORD: &str = "visitor-password-1";
/// Separates the fields of a form; no field contains it.
const BOUNDARY: &str = "edgefront-form";

pub fn products() -> Vec<String> {
    product_names().map(|name| format!("/product/{name}")).collect()
}

fn asks_for_data(path: &str) -> bool {
    path.ends_with("#data")
}

/// The headers of a prefetch by Next.js' scripts, on the home page.
pub fn headers(path: &str) -> &'static [(&'static str, &'static str)] {
    if asks_for_data(path) {
        &[("rsc", "1"), ("next-router-prefetch", "1"), ("next-router-segment-prefetch", "/_tree"), ("next-url", "/")]
    } else {
        &[]
    }
}

fn name(visitor: &Visitor) -> String {
    format!("Vera Visitor {}", visitor.number)
}

/// Signs in; creates the account first if there is none.
pub async fn sign_in(visitor: &Visitor) -> Result<(), Failure> {
    let credentials = [("email", visitor.email.as_str()), ("password", PASSWORD)];
    let page = submit(visitor, "/login", "id=\"credentials\"", &credentials).await?;
    if greeting(&page).is_some() {
        return Ok(());
    }
    let name = name(visitor);
    let account = [credentials[0], credentials[1], ("name", &name)];
    let page = submit(visitor, "/register", "id=\"credentials\"", &account).await?;
    if greeting(&page) == Some(&name) { Ok(()) } else { Err(refused("to register", &page)) }
}

pub async fn sign_out(visitor: &Visitor) -> Result<(), Failure> {
    submit(visitor, "/account", "id=\"logout\"", &[]).await.map(drop)
}

/// Every visitor has another quantity.
pub async fn fill_basket(visitor: &Visitor) -> Result<(), Failure> {
    let fields = [("handle", "steel-mug"), ("quantity", &visitor.number.to_string())];
    let page = submit(visitor, "/product/steel-mug", "id=\"add-to-cart\"", &fields).await?;
    if page.body.contains("Added to cart") { Ok(()) } else { Err(refused("a cart item", &page)) }
}

/// Submits a form as a browser without scripts does: its hidden fields name the Server Action.
async fn submit(visitor: &Visitor, path: &str, form: &str, fields: &[(&str, &str)]) -> Result<Page, Failure> {
    let page = visitor.get(path).await?;
    let form = page.between(form, "</form>").ok_or_else(|| refused("a form", &page))?;
    let hidden = form.split("<input type=\"hidden\" name=\"").skip(1).filter_map(|input| {
        let (name, rest) = input.split_once('"')?;
        let value = rest.strip_prefix(" value=\"").and_then(|rest| rest.split_once('"')).map_or("", |(value, _)| value);
        Some((name, value.replace("&quot;", "\"")))
    });
    let hidden: Vec<_> = hidden.filter(|(name, _)| name.starts_with("$ACTION")).collect();
    let hidden = hidden.iter().map(|(name, value)| (*name, value.as_str()));
    let parts = hidden.chain(fields.iter().copied()).map(|(name, value)| {
        format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    });
    let body = format!("{}--{BOUNDARY}--\r\n", parts.collect::<String>());
    visitor.post(path, &format!("multipart/form-data; boundary={BOUNDARY}"), body).await
}

fn greeting(page: &Page) -> Option<&str> {
    page.between("<h1>Hello, <!-- -->", "</h1>")
}

pub fn check(visitor: &Visitor, page: &Page) -> Option<Violation> {
    let own_quantity = visitor.has_basket.then(|| visitor.number.to_string());
    let own_name = visitor.is_signed_in.then(|| name(visitor));
    let path = page.path.split('#').next().unwrap_or_default();
    match path {
        "/api/cart" => {
            let count = page.between("{\"count\":", "}").filter(|count| *count != "0");
            compare("cart quantity", count, own_quantity.as_deref())
        }
        "/api/session" => {
            let shown = page.between("{\"name\":\"", "\"");
            compare("customer", shown, own_name.as_deref())
        }
        "/cart" => {
            let quantity = page.between("name=\"quantity\" value=\"", "\"");
            compare("quantity in the cart", quantity, own_quantity.as_deref())
        }
        "/account" => compare("greeting", greeting(page), own_name.as_deref()),
        _ => foreign_content(page),
    }
}

/// Pages for everybody name nobody. A document is never answered with data, nor data with a document.
fn foreign_content(page: &Page) -> Option<Violation> {
    let kind = page.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let expected = if asks_for_data(&page.path) { "text/x-component" } else { "text/html" };
    if page.body.contains("Vera Visitor") {
        return Some(Violation::Leak("the name of a visitor".to_owned()));
    }
    (!kind.starts_with(expected)).then(|| Violation::Leak(format!("{kind}, expected {expected}")))
}
