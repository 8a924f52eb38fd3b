//! EverShop. Each page has the quantity of the cart and the name of the customer in its data.

use serde_json::json;
use xtask::failure::Failure;

use super::{compare, product_names};
use crate::storefronts::{
    tally::Violation,
    visitor::{Page, Visitor, refused},
};

/// The rules for the shop's own categories and for its largest script; see presets/evershop.env.
pub const VARIABLES: [(&str, &str); 3] = [
    ("ITEM_ROUTES", "/product/{item}, /kitchen/{item}, /living/{item}, /workshop/{item}"),
    ("COOKIES_DROPPED", "+ sid@/kitchen/*, sid@/living/*, sid@/workshop/*"),
    ("PAGE_MAX_BYTES", "2097152"),
];
const CATEGORIES: [&str; 3] = ["kitchen", "living", "workshop"];
const PASSWORD: &str = "visitor-password-1";

pub fn products() -> Vec<String> {
    CATEGORIES.iter().cycle().zip(product_names()).map(|(category, name)| format!("/{category}/{name}")).collect()
}

fn name(visitor: &Visitor) -> String {
    format!("Vera Visitor {}", visitor.number)
}

/// Signs in; creates the account first if there is none.
pub async fn sign_in(visitor: &Visitor) -> Result<(), Failure> {
    // A session exists from the first page on.
    visitor.get("/account/login").await?;
    let credentials = json!({"email": visitor.email, "password": PASSWORD});
    if visitor.post_json("/customer/login", &credentials).await.is_ok() {
        return Ok(());
    }
    let account = json!({"email": visitor.email, "password": PASSWORD, "full_name": name(visitor)});
    visitor.post_json("/api/customers", &account).await?;
    visitor.post_json("/customer/login", &credentials).await.map(drop)
}

pub async fn sign_out(visitor: &Visitor) -> Result<(), Failure> {
    visitor.post_json("/customer/logout", &json!({})).await.map(drop)
}

/// Every visitor has another quantity.
pub async fn fill_basket(visitor: &Visitor) -> Result<(), Failure> {
    visitor.get("/account/login").await?;
    let item = json!({"sku": "OAK-MUG", "qty": visitor.number});
    let page = visitor.post_json("/api/cart/mine/items", &item).await?;
    if page.body.contains("\"item\"") { Ok(()) } else { Err(refused("a cart item", &page)) }
}

pub fn check(visitor: &Visitor, page: &Page) -> Option<Violation> {
    let quantity = page.between("\"totalQty\":", ",").filter(|quantity| *quantity != "0");
    let own_quantity = visitor.has_basket.then(|| visitor.number.to_string());
    let shown = page.between("\"fullName\":\"", "\"");
    let own_name = visitor.is_signed_in.then(|| name(visitor));
    compare("cart quantity", quantity, own_quantity.as_deref())
        .or_else(|| compare("customer", shown, own_name.as_deref()))
}
