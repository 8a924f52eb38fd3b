//! The cart with plain forms, without JavaScript.

use edgefront_gateway::Fault;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{MUG, open, person::Person};
use crate::support::{Shop, set_cookie};

const PAN: &str = "carbon-steel-frying-pan-20-cm";

#[tokio::test]
async fn a_cart_works_with_plain_forms() {
    let shop = open().await;
    let guest = Person::at(&shop);
    assert!(guest.get("/cart").await.says("Your cart is empty."));

    let page = guest.get(&format!("/products/{MUG}")).await;
    assert!(page.says("<form class=\"buy\" method=\"post\" action=\"/cart\""), "{}", page.text);
    assert_eq!((page.field("op").as_str(), page.field("id").as_str()), ("add", MUG));
    guest.add(MUG, 2).await;
    guest.add(PAN, 1).await;
    guest.add(MUG, 1).await;

    let page = guest.get("/cart").await;
    assert_eq!(page.headers["cache-control"], "no-store");
    for text in
        ["Enamel Mug, Sage", "€31.50", "Carbon Steel Frying Pan, 20 cm", "€39.00", ">€70.50<", "href=\"/checkout\""]
    {
        assert!(page.says(text), "{text}: {}", page.text);
    }

    let change = async |op, id, quantity| {
        let fields = [("op", op), ("id", id), ("quantity", quantity)];
        let answer = guest.post("/cart", &fields).await;
        assert!(answer.status == StatusCode::SEE_OTHER && answer.location().starts_with("/cart"), "{}", answer.text);
        guest.get("/cart").await
    };
    let page = change("set", MUG, "1").await;
    assert!(page.says(">€49.50<"), "{}", page.text);
    let page = change("remove", MUG, "nonsense").await;
    assert!(page.says(">€39.00<") && !page.says("Enamel Mug"), "{}", page.text);
    let page = change("set", PAN, "0").await;
    assert!(page.says("Your cart is empty."), "{}", page.text);
}

#[tokio::test]
async fn a_wrong_quantity_is_shown_again_with_its_problem() {
    let shop = open().await;
    let guest = Person::at(&shop);
    for typed in ["0", "1000", "two", "-1", "1.5", ""] {
        let page = guest.post("/cart", &[("op", "add"), ("id", MUG), ("quantity", typed)]).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{typed}");
        assert_eq!(page.problem("quantity"), "Please enter a whole number from 1 to 999.");
        assert_eq!(page.headers["cache-control"], "no-store");
        assert!(page.says("<h1>Enamel Mug, Sage</h1>") && page.says(&format!("name=\"quantity\" value=\"{typed}\"")));
    }
    guest.add(MUG, 2).await;
    let page = guest.post("/cart", &[("op", "set"), ("id", MUG), ("quantity", "many")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        page.says("name=\"quantity\" value=\"many\"") && page.says("Please enter a whole number from 0 to 999."),
        "{}",
        page.text
    );
    assert!(guest.get("/cart").await.says("value=\"2\""));

    let page = guest.post("/cart", &[("op", "add"), ("id", "no-such-mug"), ("quantity", "1")]).await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_quantity_is_at_most_the_limit_of_a_cart() {
    let variables = [("ORIGIN_URL", ""), ("ROWS_TABLE", "inventory"), ("CART_MAX_QUANTITY", "3")];
    let shop = Shop::workerd(&variables).await;
    let guest = Person::at(&shop);
    let post = async |op, quantity| guest.post("/cart", &[("op", op), ("id", MUG), ("quantity", quantity)]).await;
    assert_eq!(post("add", "4").await.problem("quantity"), "Please enter a whole number from 1 to 3.");
    guest.add(MUG, 2).await;
    assert_eq!(post("add", "2").await.problem("quantity"), "At most 3 of an item fit into a cart, and yours has 2.");
    assert!(post("set", "4").await.says("Please enter a whole number from 0 to 3."));
    assert!(guest.get("/cart").await.says("value=\"2\""));
}

#[tokio::test]
async fn a_cart_never_gets_more_than_the_stock() {
    let shop = open().await;
    let guest = Person::at(&shop);
    shop.sql(&format!("UPDATE inventory SET stock = 5 WHERE id = '{MUG}'")).await;
    let page = guest.post("/cart", &[("op", "add"), ("id", MUG), ("quantity", "6")]).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(page.problem("quantity"), "Only 5 in stock. Please reduce the quantity.");
    guest.add(MUG, 3).await;
    let page = guest.post("/cart", &[("op", "add"), ("id", MUG), ("quantity", "3")]).await;
    assert_eq!(page.problem("quantity"), "Only 5 in stock, and your cart has 3.");
    let page = guest.post("/cart", &[("op", "set"), ("id", MUG), ("quantity", "6")]).await;
    assert!(page.status == StatusCode::UNPROCESSABLE_ENTITY && page.says("Only 5 in stock."), "{}", page.text);
    assert!(guest.get("/cart").await.says("value=\"3\""));
    shop.sql(&format!("UPDATE inventory SET stock = 0 WHERE id = '{MUG}'")).await;
    let page = Person::at(&shop).post("/cart", &[("op", "add"), ("id", MUG), ("quantity", "1")]).await;
    assert_eq!(page.problem("quantity"), "Sold out.");
}

/// A script gets the changed cart, and the edge has applied the change.
#[tokio::test]
async fn a_script_changes_the_cart_and_gets_its_prices() {
    let shop = open().await;
    let post = async |cookie: &str, form: String| {
        let request = shop.request(Method::POST, "/cart").header("accept", "application/json").header("cookie", cookie);
        let request = request.header("sec-fetch-site", "same-origin").body(form);
        request.header("content-type", "application/x-www-form-urlencoded").send().await.expect("an answer")
    };
    let answer = post("", format!("op=add&id={MUG}&quantity=2")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let cookie = set_cookie(&answer);
    let cart: Value = serde_json::from_str(&answer.text().await.unwrap()).expect("JSON");
    assert_eq!((&cart["quantity"], &cart["total"]), (&json!(2), &json!("€21.00")));
    assert_eq!(cart["lines"][0]["unit"], "€10.50");
    assert!(Person::with_cookie(&shop, &cookie).get("/cart").await.says("value=\"2\""));

    let refused = post(&cookie, format!("op=set&id={MUG}&quantity=900")).await;
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text().await.unwrap().contains("in stock"));
    let empty: Value =
        serde_json::from_str(&post(&cookie, format!("op=remove&id={MUG}")).await.text().await.unwrap()).unwrap();
    assert_eq!(empty["lines"], json!([]));
}

#[tokio::test]
async fn a_cart_is_kept_while_redis_is_down() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 2).await;
    shop.store.gateway.set_fault(Some(Fault::Status(500, "{}".to_owned())));
    for path in ["/cart", "/checkout"] {
        let page = guest.get(path).await;
        assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(page.says("could not load your cart") && !page.says("Your cart is empty"), "{}", page.text);
    }
    let page = guest.post("/cart", &[("op", "add"), ("id", MUG), ("quantity", "1")]).await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE, "a change that did not happen is not confirmed");
    shop.store.gateway.set_fault(None);
    assert!(guest.get("/cart").await.says("value=\"2\""));
}

#[tokio::test]
async fn the_cart_shows_items_that_are_sold_out_or_no_longer_sold() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 3).await;
    shop.sql(&format!("UPDATE inventory SET stock = 2 WHERE id = '{MUG}'")).await;
    assert!(guest.get("/cart").await.says("Only 2 left."));
    shop.sql(&format!("UPDATE inventory SET stock = 0 WHERE id = '{MUG}'")).await;
    assert!(guest.get("/cart").await.says("Sold out. Please remove this item."));
    shop.sql(&format!("DELETE FROM inventory WHERE id = '{MUG}'")).await;
    let page = guest.get("/cart").await;
    assert!(page.says("No longer available.") && page.says("value=\"remove\""), "{}", page.text);
}
