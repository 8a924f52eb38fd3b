//! Error pages: those of the shop, and those that the edge renders, have the shop's header.

use edgefront_gateway::Fault;
use http::StatusCode;

use super::{
    MUG,
    person::{Page, Person},
};
use crate::support::Shop;

const ADD: [(&str, &str); 3] = [("op", "add"), ("id", "carbon-steel-frying-pan-20-cm"), ("quantity", "1")];

#[tokio::test]
async fn every_error_page_has_the_header_and_the_styles_of_the_shop() {
    let variables = [("ORIGIN_URL", ""), ("CART_MAX_LINES", "1"), ("ORIGIN_TIMEOUT", "1"), ("PAGE_TOTAL_BYTES", "0")];
    let shop = Shop::workerd(&variables).await;
    let guest = Person::at(&shop);
    guest.add(MUG, 1).await;
    let cart = guest.get("/cart").await;
    let check = |page: &Page, status: u16, title: &str| {
        assert_eq!(page.status.as_u16(), status, "{title}: {}", page.text);
        assert!(page.says(&format!("<h1>{title}</h1>")) && page.says("class=\"header\""), "{title}: {}", page.text);
        let policy = "content-security-policy";
        assert_eq!(page.headers[policy], cart.headers[policy], "{title}: a browser loads the styles");
    };
    check(&guest.get("/nowhere").await, 404, "Page not found");
    check(&guest.post("/nowhere", &[]).await, 404, "Page not found");
    check(&guest.post("/products/mug", &[]).await, 405, "Action not supported");
    check(&guest.post("/login", &[("email", &"a".repeat(20_000))]).await, 413, "Form too large");
    check(&guest.post("/cart", &ADD).await, 409, "Request not possible");

    shop.set_database_fault("refused").await;
    check(&guest.get("/categories/desk").await, 503, "Temporarily unavailable");
    shop.set_database_fault("silent").await;
    check(&guest.get("/categories/bags").await, 504, "Shop unavailable");
    shop.set_database_fault("").await;

    shop.store.gateway.set_fault(Some(Fault::Status(500, "{}".to_owned())));
    check(&guest.post("/cart", &ADD).await, 503, "Shop unavailable");
    shop.store.gateway.set_fault(None);
    assert_eq!(guest.get("/categories/bags").await.status, StatusCode::OK, "no error page is kept");
}
