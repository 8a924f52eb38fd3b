//! Checkout with a real D1: no overselling, and no partial order.

use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use super::{
    MUG, open,
    person::{Page, Person},
};
use crate::support::Shop;

const PAN: &str = "carbon-steel-frying-pan-20-cm";
const EMAIL: &str = "ada@example.org";

/// Fills in and submits the form of a checkout page.
pub async fn buy(person: &Person<'_>, form: &Page) -> Page {
    let (order_id, quote) = (form.field("order_id"), form.field("quote"));
    let fields = [
        ("order_id", &*order_id),
        ("quote", &*quote),
        ("name", "Ada"),
        ("email", "Ada@Example.org"),
        ("address", "1 Analytical Street"),
        ("postcode", "W1"),
        ("city", "London"),
        ("country", "United Kingdom"),
    ];
    person.post("/checkout", &fields).await
}

pub async fn count(shop: &Shop, table: &str) -> u64 {
    shop.sql(&format!("SELECT count(*) AS n FROM {table}")).await[0]["n"].as_u64().expect("a number")
}

pub async fn stock(shop: &Shop, item: &str) -> i64 {
    shop.sql(&format!("SELECT stock FROM inventory WHERE id = '{item}'")).await[0]["stock"].as_i64().expect("a number")
}

async fn set_stock(shop: &Shop, item: &str, stock: u32) {
    shop.sql(&format!("UPDATE inventory SET stock = {stock} WHERE id = '{item}'")).await;
}

#[tokio::test]
async fn a_guest_buys() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 2).await;
    guest.add(PAN, 1).await;
    let (mugs, pans) = (stock(&shop, MUG).await, stock(&shop, PAN).await);

    let form = guest.get("/checkout").await;
    assert!(form.says("Place order · €60.00") && form.says("autocomplete=\"postal-code\""), "{}", form.text);
    let bought = buy(&guest, &form).await;
    assert_eq!(
        (bought.status, bought.location()),
        (StatusCode::SEE_OTHER, &*format!("/orders/{}", form.field("order_id")))
    );
    assert!(bought.headers.keys().all(|name| !name.as_str().starts_with("edge-")));

    let orders = shop.sql("SELECT user, mail, name, address, total_cents, currency FROM orders").await;
    let address = "1 Analytical Street\nW1\nLondon\nUnited Kingdom";
    let order =
        json!({"user": null, "mail": EMAIL, "name": "Ada", "address": address, "total_cents": 6000, "currency": "EUR"});
    assert_eq!(orders, [order]);
    let lines = shop.sql("SELECT item, quantity, price_cents FROM order_lines ORDER BY item").await;
    let line = |item, quantity, cents| json!({"item": item, "quantity": quantity, "price_cents": cents});
    assert_eq!(lines, [line(PAN, 1, 3900), line(MUG, 2, 1050)]);
    assert_eq!((stock(&shop, MUG).await, stock(&shop, PAN).await), (mugs - 2, pans - 1));

    let page = guest.get(bought.location()).await;
    assert_eq!((page.status, page.headers["cache-control"].as_bytes()), (StatusCode::OK, &b"no-store"[..]));
    for text in ["Thank you, Ada", "Enamel Mug, Sage", "€21.00", "€60.00", EMAIL, "Analytical Street"] {
        assert!(page.says(text), "{text}: {}", page.text);
    }
    assert!(
        !page.says(&format!("Order {}", &form.field("order_id")[..8].to_uppercase())),
        "the number is not the address"
    );
    let unknown = guest.get("/orders/0123456789abcdef0123456789abcdef").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);

    let visitor = Person::at(&shop);
    shop.sql("UPDATE orders SET placed_at = placed_at - 30 * 86400 + 600").await;
    assert_eq!(visitor.get(bought.location()).await.status, StatusCode::OK, "the link opens the order");
    shop.sql("UPDATE orders SET placed_at = placed_at - 600").await;
    assert_eq!(visitor.get(bought.location()).await.status, StatusCode::NOT_FOUND, "for 30 days");
}

#[tokio::test]
async fn the_same_form_twice_is_one_order() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 1).await;
    let before = stock(&shop, MUG).await;
    let form = guest.get("/checkout").await;
    let both = join_all([buy(&guest, &form), buy(&guest, &form)]).await;
    let again = buy(&guest, &form).await;
    for answer in both.iter().chain([&again]) {
        assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, both[0].location()), "{}", answer.text);
    }
    assert_eq!((count(&shop, "orders").await, count(&shop, "order_lines").await), (1, 1));
    assert_eq!(stock(&shop, MUG).await, before - 1);
}

/// Each tab has a form of its own.
#[tokio::test]
async fn two_tabs_that_order_a_cart_at_once_place_one_order() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 1).await;
    let tabs = [guest.get("/checkout").await, guest.get("/checkout").await];
    assert_ne!(tabs[0].field("order_id"), tabs[1].field("order_id"));
    let answers = join_all(tabs.iter().map(|form| buy(&guest, form))).await;
    let mut statuses = answers.iter().map(|answer| answer.status.as_u16()).collect::<Vec<_>>();
    statuses.sort_unstable();
    assert_eq!((statuses, count(&shop, "orders").await), (vec![303, 409], 1));
}

#[tokio::test]
async fn an_order_that_overlaps_another_tabs_order_of_the_cart_is_refused() {
    const TICKET: &str = "__Secure-checkout";
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 1).await;
    let (before, tabs) = (stock(&shop, MUG).await, [guest.get("/checkout").await, guest.get("/checkout").await]);
    let ticket = guest.cookie(TICKET);
    assert_eq!(buy(&guest, &tabs[0]).await.status, StatusCode::SEE_OTHER);
    // The second tab's request has the ticket and the cart from before the first order.
    guest.set_cookie(TICKET, &ticket);
    guest.add(MUG, 1).await;
    let refused = buy(&guest, &tabs[1]).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.says("already ordered this cart in another tab"), "{}", refused.text);
    assert_eq!((count(&shop, "orders").await, stock(&shop, MUG).await), (1, before - 1));
    guest.set_cookie(TICKET, &ticket);
    assert_eq!(buy(&guest, &tabs[0]).await.status, StatusCode::SEE_OTHER, "a repeated form shows its order");
    // From now on the cart is a new one.
    assert_eq!(buy(&guest, &refused).await.status, StatusCode::SEE_OTHER);
    assert_eq!(count(&shop, "orders").await, 2);
}

#[tokio::test]
async fn each_wrong_field_shows_its_problem_and_keeps_its_value() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 1).await;
    let form = guest.get("/checkout").await;
    let (order_id, quote) = (form.field("order_id"), form.field("quote"));
    let fields = [
        ("order_id", &*order_id),
        ("quote", &*quote),
        ("name", " "),
        ("email", "ada@home"),
        ("address", "<Here> & \"there\""),
        ("postcode", ""),
    ];
    let page = guest.post("/checkout", &fields).await;
    assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(page.problem("name"), "Please enter your full name.");
    assert_eq!(page.problem("email"), "This email is not valid. Please enter one like ada@example.org.");
    assert_eq!((page.problem("address"), page.problem("postcode")), ("", "Please enter your postal code."));
    assert!(page.says("value=\"&#60;Here&#62; &#38; &#34;there&#34;\""), "{}", page.text);
    assert_eq!((page.field("email").as_str(), page.field("order_id")), ("ada@home", order_id), "the order id stays");
    assert_eq!(count(&shop, "orders").await, 0);
    assert_eq!(buy(&guest, &page).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_changed_price_is_shown_before_the_order_is_placed() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(PAN, 2).await;
    let form = guest.get("/checkout").await;
    shop.sql(&format!("UPDATE inventory SET price_cents = 4100 WHERE id = '{PAN}'")).await;
    let page = buy(&guest, &form).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(page.says("The total is now €82.00 (it was €78.00)."), "{}", page.text);
    assert_eq!(page.field("name"), "Ada");
    assert_eq!(count(&shop, "orders").await, 0);

    let bought = buy(&guest, &page).await;
    assert_eq!(bought.status, StatusCode::SEE_OTHER);
    assert_eq!(shop.sql("SELECT total_cents FROM orders").await, [json!({"total_cents": 8200})]);
}

#[tokio::test]
async fn a_session_that_ends_during_a_checkout_loses_no_details() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(PAN, 1).await;
    let form = guest.get("/checkout").await;
    let stranger = Person::at(&shop);
    let page = buy(&stranger, &form).await;
    assert!(page.status == StatusCode::CONFLICT && page.says("Your order was not placed"), "{}", page.text);
    assert_eq!((page.field("name"), page.field("city")), ("Ada".to_owned(), "London".to_owned()));
    assert_eq!(count(&shop, "orders").await, 0);

    // The same form works as soon as the new session has a cart. It shows the total first.
    stranger.add(PAN, 1).await;
    let page = buy(&stranger, &page).await;
    assert!(page.status == StatusCode::CONFLICT && page.says("The total is now €39.00"), "{}", page.text);
    let bought = buy(&stranger, &page).await;
    assert_eq!(bought.status, StatusCode::SEE_OTHER, "{}", bought.text);
}

#[tokio::test]
async fn an_item_above_the_stock_shows_how_many_are_left() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 3).await;
    guest.add(PAN, 1).await;
    let form = guest.get("/checkout").await;
    set_stock(&shop, MUG, 2).await;
    let page = buy(&guest, &form).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(
        page.says("Enamel Mug, Sage") && page.says("<p class=\"problem\">Only 2 left. Please reduce the quantity.</p>"),
        "{}",
        page.text
    );
    assert_eq!((count(&shop, "orders").await, stock(&shop, MUG).await), (0, 2));
}

#[tokio::test]
async fn pieces_reserved_for_a_flash_sale_are_not_sold_elsewhere() {
    let shop = open().await;
    let casserole = "cast-iron-casserole-sage";
    assert_eq!(
        shop.sql(&format!("SELECT stock, sale_pieces FROM inventory WHERE id = '{casserole}'")).await,
        [json!({"stock": 40, "sale_pieces": 25})]
    );
    let (one, other) = (Person::at(&shop), Person::at(&shop));
    one.add(casserole, 15).await;
    let form = one.get("/checkout").await;
    other.add(casserole, 1).await;
    let bought = buy(&other, &other.get("/checkout").await).await;
    assert_eq!(bought.status, StatusCode::SEE_OTHER);

    let page = buy(&one, &form).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(page.says("Only 14 left."), "{}", page.text);
    assert_eq!((count(&shop, "orders").await, stock(&shop, casserole).await), (1, 39));
}

/// The last statement of the transaction fails, so the others are rolled back.
#[tokio::test]
async fn a_refused_order_leaves_no_trace_in_the_database() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 1).await;
    guest.add(PAN, 1).await;
    let (mugs, pans) = (stock(&shop, MUG).await, stock(&shop, PAN).await);
    let last = "BEFORE UPDATE ON inventory WHEN (SELECT count(*) FROM order_lines) = 2";
    let trigger = format!("CREATE TRIGGER refuse {last} AND NEW.id = '{MUG}' BEGIN SELECT RAISE(ABORT, 'no'); END");
    shop.sql(&trigger).await;
    let form = guest.get("/checkout").await;
    let page = buy(&guest, &form).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert!(page.says("The stock changed") && page.field("name") == "Ada", "{}", page.text);
    assert_eq!((count(&shop, "orders").await, count(&shop, "order_lines").await), (0, 0));
    assert_eq!((stock(&shop, MUG).await, stock(&shop, PAN).await), (mugs, pans));

    shop.sql("DROP TRIGGER refuse").await;
    assert_eq!(buy(&guest, &page).await.status, StatusCode::SEE_OTHER, "the same form succeeds on the next attempt");
    assert_eq!((stock(&shop, MUG).await, stock(&shop, PAN).await), (mugs - 1, pans - 1));
}

/// A failed database is not a broken constraint: the visitor is not told that the order was refused.
#[tokio::test]
async fn a_database_failure_is_not_a_refused_order() {
    let shop = open().await;
    let guest = Person::at(&shop);
    guest.add(MUG, 1).await;
    let form = guest.get("/checkout").await;
    shop.sql("ALTER TABLE order_lines RENAME COLUMN price_cents TO cents").await;
    // The lookup of the order reads that column, too, and fails first. In any case no order is written.
    let page = buy(&guest, &form).await;
    assert_eq!(page.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(count(&shop, "orders").await, 0);
}

#[tokio::test]
async fn many_buyers_of_the_last_pieces_never_get_more_than_there_are() {
    const BUYERS: usize = 24;
    let shop = open().await;
    set_stock(&shop, MUG, 7).await;
    set_stock(&shop, PAN, 1000).await;
    let people: Vec<_> = (0..BUYERS).map(|_| Person::at(&shop)).collect();
    let forms = join_all(people.iter().map(async |person| {
        person.add(MUG, 1).await;
        person.add(PAN, 2).await;
        person.get("/checkout").await
    }))
    .await;
    // Each buyer sends the form twice, like a double click.
    let all = people.iter().zip(&forms).flat_map(|(person, form)| [buy(person, form), buy(person, form)]);
    let answers = join_all(all).await;

    for answer in &answers {
        assert!(matches!(answer.status.as_u16(), 303 | 409), "{}: {}", answer.status, answer.text);
        if answer.status == StatusCode::CONFLICT {
            assert!(answer.says("Sold out.") || answer.says("Only "), "{}", answer.text);
        }
    }
    let bought =
        answers.chunks(2).filter(|both| both.iter().any(|answer| answer.status == StatusCode::SEE_OTHER)).count();
    assert_eq!(bought, 7);
    assert_eq!((stock(&shop, MUG).await, stock(&shop, PAN).await), (0, 1000 - 14));
    let whole = "SELECT order_id, count(*) AS lines, sum(quantity) AS pieces FROM order_lines GROUP BY order_id";
    let orders: Vec<Value> = shop.sql(whole).await;
    assert_eq!((orders.len(), count(&shop, "orders").await), (7, 7));
    assert!(orders.iter().all(|order| (&order["lines"], &order["pieces"]) == (&json!(2), &json!(3))), "{orders:?}");
}

#[tokio::test]
async fn a_users_order_shows_to_nobody_else() {
    let shop = open().await;
    let (ada, eve) = (Person::at(&shop), Person::at(&shop));
    ada.sign_up(EMAIL).await;
    ada.add(MUG, 1).await;
    let form = ada.get("/checkout").await;
    assert_eq!((form.field("name").as_str(), form.field("email").as_str()), ("Ada Lovelace", EMAIL), "prefilled");
    let order = buy(&ada, &form).await.location().to_owned();
    assert_eq!(shop.sql("SELECT user FROM orders").await, [json!({"user": EMAIL})]);

    shop.sql("UPDATE orders SET placed_at = placed_at - 1000").await;
    assert_eq!(eve.get(&order).await.status, StatusCode::NOT_FOUND);
    assert_eq!(ada.get(&order).await.status, StatusCode::OK);
    let account = ada.get("/account").await;
    assert!(account.says("Hello, Ada Lovelace") && account.says(&format!("href=\"{order}\"")), "{}", account.text);
    assert!(account.says("€10.50"), "{}", account.text);
}
