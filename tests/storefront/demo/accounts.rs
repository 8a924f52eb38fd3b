//! Sign up, sign in and sign out; a forgotten password; saved addresses.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    MUG,
    checkout::buy,
    open,
    person::{PASSWORD, Page, Person},
};
use crate::support::{Shop, eventually};

const EMAIL: &str = "ada@example.org";

async fn log_in(person: &Person<'_>, email: &str, password: &str, next: &str) -> Page {
    person.post("/login", &[("email", email), ("password", password), ("next", next)]).await
}

#[tokio::test]
async fn a_guest_creates_an_account_and_keeps_the_cart() {
    let shop = open().await;
    let ada = Person::at(&shop);
    ada.add(MUG, 2).await;
    ada.sign_up(EMAIL).await;
    let cart = ada.get("/cart").await;
    assert!(cart.says("Hello, ada@example.org") && cart.says("value=\"2\""), "{}", cart.text);
    let account = ada.get("/account").await;
    assert_eq!(account.headers["cache-control"], "no-store");
    assert!(
        account.says("Hello, Ada Lovelace") && account.says("You have not placed any orders yet."),
        "{}",
        account.text
    );
    let kept = &shop.sql("SELECT password FROM users").await[0]["password"];
    assert!(kept.as_str().unwrap().starts_with("$argon2id$v=19$m=7168,t=5,p=1$"), "{kept}");

    assert_eq!(ada.post("/logout", &[]).await.location(), "/");
    assert_eq!(ada.get("/account").await.location(), "/login?next=/account");
}

#[tokio::test]
async fn signing_in_keeps_the_cart_and_returns_to_the_previous_page() {
    let shop = open().await;
    Person::at(&shop).sign_up(EMAIL).await;
    let ada = Person::at(&shop);
    ada.add(MUG, 3).await;
    let answer = log_in(&ada, " Ada@Example.org ", PASSWORD, "/checkout").await;
    assert_eq!((answer.status, answer.location()), (StatusCode::SEE_OTHER, "/checkout"));
    assert!(ada.get("/cart").await.says("value=\"3\""));
    let answer = log_in(&Person::at(&shop), EMAIL, PASSWORD, "//evil.example").await;
    assert_eq!(answer.location(), "/");
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_address_are_told_alike() {
    let shop = open().await;
    Person::at(&shop).sign_up(EMAIL).await;
    let guest = Person::at(&shop);
    let wrong = log_in(&guest, EMAIL, "four unrelated word", "/").await;
    let unknown = log_in(&guest, "eve@example.org", PASSWORD, "/").await;
    for answer in [&wrong, &unknown] {
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(answer.problem("password"), "Email or password is incorrect. Please try again.");
        assert!(!answer.headers.contains_key("set-cookie") && !answer.says(PASSWORD));
    }
    assert_eq!(wrong.text, unknown.text.replace("eve@", "ada@"));
    assert_eq!(log_in(&guest, EMAIL, "", "/").await.problem("password"), "Please enter your password.");
    let long = log_in(&guest, EMAIL, &"a".repeat(600), "/").await;
    assert_eq!(long.problem("password"), "Email or password is incorrect. Please try again.");
}

#[tokio::test]
async fn an_email_has_one_account() {
    let shop = open().await;
    let (ada, eve) = (Person::at(&shop), Person::at(&shop));
    ada.sign_up(EMAIL).await;
    let fields = [("name", "Eve"), ("email", "ADA@example.org"), ("password", "another four words")];
    let answer = eve.post("/signup", &fields).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.problem("email").starts_with("An account with this email") && answer.field("name") == "Eve");
    assert_eq!(shop.sql("SELECT id, name FROM users").await, [json!({"id": EMAIL, "name": "Ada Lovelace"})]);
    assert_eq!(log_in(&eve, EMAIL, "another four words", "/").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_sign_up_that_is_sent_twice_signs_in_twice() {
    let shop = open().await;
    let ada = Person::at(&shop);
    ada.add(MUG, 2).await;
    ada.sign_up(EMAIL).await;
    // The reply was lost: the browser still has the guest's cookie, or none.
    let again = Person::at(&shop);
    again.sign_up(EMAIL).await;
    assert!(again.get("/account").await.says("Hello, Ada Lovelace"));
    ada.sign_up(EMAIL).await;
    assert!(ada.get("/cart").await.says("data-cart-count>2</span>"), "the cart stays");
    assert_eq!(shop.sql("SELECT id FROM users").await.len(), 1);
}

#[tokio::test]
async fn a_sign_up_tries_no_more_passwords_than_a_sign_in() {
    let shop = open().await;
    let (ada, eve) = (Person::at(&shop), Person::at(&shop));
    ada.sign_up(EMAIL).await;
    let sign_up =
        async |password: &str| eve.post("/signup", &[("name", "Eve"), ("email", EMAIL), ("password", password)]).await;
    for _ in 0..5 {
        let answer = sign_up("another four words").await;
        assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
    }
    let failures = "SELECT failures FROM sign_in_attempts";
    assert_eq!(shop.sql(failures).await, [json!({"failures": 5})], "each counts as a failed sign-in");
    shop.sql("UPDATE sign_in_attempts SET failures = 20").await;
    let right = sign_up(PASSWORD).await;
    assert_eq!(right.status, StatusCode::CONFLICT, "the right password is not even tried");
    assert!(!right.headers.contains_key("set-cookie"));
    assert_eq!(log_in(&eve, EMAIL, PASSWORD, "/").await.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_plain_form_signs_out_on_all_devices() {
    let shop = open().await;
    let (desk, phone) = (Person::at(&shop), Person::at(&shop));
    desk.sign_up(EMAIL).await;
    assert_eq!(log_in(&phone, EMAIL, PASSWORD, "/").await.status, StatusCode::SEE_OTHER);
    assert_eq!(phone.get("/account").await.status, StatusCode::OK);
    assert!(desk.get("/account").await.says("name=\"everywhere\""));
    desk.post("/logout", &[("everywhere", "1")]).await;
    for device in [desk, phone] {
        assert_eq!(device.get("/account").await.location(), "/login?next=/account");
    }
}

/// The mails in the log.
fn mails(shop: &Shop) -> Vec<Value> {
    let logs = shop.logs();
    let lines = logs.iter().filter_map(|line| serde_json::from_str::<Value>(line.get(line.find('{')?..)?).ok());
    lines.filter(|line| line["event"] == "mail").collect()
}

/// Asks for a link to reset the password. Returns the link's path from the mail.
async fn reset_link(shop: &Shop, email: &str) -> String {
    let earlier = mails(shop).len();
    let answer = Person::at(shop).post("/reset", &[("email", email)]).await;
    assert!(answer.status == StatusCode::OK && answer.says("Check your email"), "{}", answer.text);
    eventually("the mail is in the log", async || mails(shop).len() > earlier).await;
    let mail = mails(shop).pop().unwrap();
    assert_eq!(mail["to"], email);
    let (_, rest) = mail["text"].as_str().unwrap().split_once("https://shop.example/reset/").expect("a link");
    format!("/reset/{}", rest.split_whitespace().next().unwrap())
}

async fn open_with_mail() -> Shop {
    Shop::workerd(&[("ORIGIN_URL", ""), ("DEMO_MAIL", "log"), ("DEMO_URL", "https://shop.example/")]).await
}

#[tokio::test]
async fn a_forgotten_password_is_reset_by_a_link_that_works_once() {
    let shop = open_with_mail().await;
    let ada = Person::at(&shop);
    ada.sign_up(EMAIL).await;
    let link = reset_link(&shop, EMAIL).await;
    let kept = shop.sql("SELECT token_hash FROM password_resets").await[0]["token_hash"].to_string();
    assert!(!kept.contains(link.trim_start_matches("/reset/")), "the database keeps a hash of the token");

    let guest = Person::at(&shop);
    guest.add(MUG, 2).await;
    assert_eq!(guest.get(&link).await.status, StatusCode::OK);
    let short = guest.post(&link, &[("password", "short")]).await;
    assert!(short.status == StatusCode::UNPROCESSABLE_ENTITY && short.problem("password").contains("too short"));
    let new = [("password", "another four quiet words")];
    let changed = guest.post(&link, &new).await;
    assert_eq!((changed.status, changed.location()), (StatusCode::SEE_OTHER, "/login?next=/account&changed=1"));
    assert!(
        guest.get(changed.location()).await.says("Your password has been changed. You are signed out on all devices.")
    );
    assert_eq!(ada.get("/account").await.location(), "/login?next=/account", "the sessions of the user have ended");
    assert!(guest.get("/cart").await.says("data-cart-count>2</span>"), "the guest's session stays");
    for answer in [guest.get(&link).await, guest.post(&link, &[("password", PASSWORD)]).await] {
        assert!(answer.status == StatusCode::GONE && answer.says("This link has expired"), "{}", answer.text);
    }
    assert_eq!(log_in(&guest, EMAIL, PASSWORD, "/").await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(log_in(&guest, EMAIL, new[0].1, "/").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_request_for_a_link_does_not_reveal_an_account_and_floods_no_mailbox() {
    let shop = open_with_mail().await;
    Person::at(&shop).sign_up(EMAIL).await;
    let link = reset_link(&shop, EMAIL).await;
    let guest = Person::at(&shop);
    let [known, unknown] = [EMAIL, "eve@example.org"].map(|email| [("email", email)]);
    let (known, unknown) = (guest.post("/reset", &known).await, guest.post("/reset", &unknown).await);
    assert_eq!((known.status, known.text), (unknown.status, unknown.text.replace("eve@", "ada@")));
    assert_eq!(guest.get(&link).await.status, StatusCode::OK, "a second request within a minute changes nothing");
    assert_eq!(mails(&shop).len(), 1);

    shop.sql("UPDATE password_resets SET requested_at = requested_at - 1800").await;
    assert_eq!(guest.get(&link).await.status, StatusCode::GONE, "after half an hour");
    assert_ne!(reset_link(&shop, EMAIL).await, link);
}

#[tokio::test]
async fn a_shop_without_mail_says_that_it_resets_no_passwords() {
    let shop = open().await;
    Person::at(&shop).sign_up(EMAIL).await;
    let guest = Person::at(&shop);
    for answer in [guest.get("/reset").await, guest.post("/reset", &[("email", EMAIL)]).await] {
        assert!(answer.says("This shop sends no email"), "{}", answer.text);
    }
    assert_eq!(shop.sql("SELECT user FROM password_resets").await.len(), 0);
}

#[tokio::test]
async fn an_account_keeps_the_addresses_of_its_orders() {
    let shop = open().await;
    let ada = Person::at(&shop);
    ada.sign_up(EMAIL).await;
    for street in ["1 Home Road", "2 Work Street"] {
        ada.add(MUG, 1).await;
        let form = ada.get("/checkout").await;
        let (order, quote) = (form.field("order_id"), form.field("quote"));
        let fields = [("order_id", &*order), ("quote", &quote), ("name", "Ada"), ("email", EMAIL), ("address", street)];
        let rest = [("postcode", "W1"), ("city", "London"), ("country", "UK")];
        let placed = ada.post("/checkout", &[&fields[..], &rest].concat()).await;
        assert_eq!(placed.status, StatusCode::SEE_OTHER, "{}", placed.text);
        // The next order has a later time.
        shop.sql("UPDATE addresses SET used_at = used_at - 10").await;
    }
    ada.add(MUG, 1).await;
    let [first, second] = [ada.get("/checkout").await, ada.get("/checkout?address=1").await];
    assert_eq!([first.field("address"), second.field("address")], ["2 Work Street", "1 Home Road"]);
    assert!(first.says("<a href=\"?address=1\">1 Home Road, W1, London, UK</a>"), "{}", first.text);

    let remove = [("address", "1 Home Road\r\nW1\r\nLondon\r\nUK")];
    Person::at(&shop).post("/account", &remove).await;
    assert!(ada.get("/account").await.says("1 Home Road"), "a guest removes nothing");
    assert_eq!(ada.post("/account", &remove).await.location(), "/account#addresses");
    let account = ada.get("/account").await;
    assert!(account.says("2 Work Street") && !account.says("1 Home Road"), "{}", account.text);
}

#[tokio::test]
async fn a_form_saves_at_most_five_addresses() {
    let shop = open().await;
    let ada = Person::at(&shop);
    ada.sign_up(EMAIL).await;
    let save = async |person: &Person<'_>, street: &str| {
        let rest = [("op", "add"), ("postcode", "W1"), ("city", "London"), ("country", "UK")];
        let saved = person.post("/account", &[&rest[..], &[("address", street)]].concat()).await;
        // The next address has a later time.
        shop.sql("UPDATE addresses SET used_at = used_at - 10").await;
        saved
    };
    assert_eq!(save(&ada, "1 Home Road").await.location(), "/account#addresses");
    ada.add(MUG, 1).await;
    assert_eq!(ada.get("/checkout").await.field("address"), "1 Home Road", "an order can use it");

    let refused = save(&ada, " ").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.problem("address"), "Please enter your street and number.");
    assert!(
        refused.says("<details open>")
            && refused.says("autocomplete=\"postal-code\"")
            && refused.field("city") == "London"
    );
    save(&Person::at(&shop), "a guest's").await;

    for street in ["2", "3", "4", "5", "6"] {
        save(&ada, street).await;
    }
    let full = ada.get("/account").await;
    assert!(full.says("Remove one to add another") && !full.says("<details"), "{}", full.text);
    let count = async || shop.sql("SELECT address FROM addresses").await.len();
    assert!(count().await == 5 && !full.says("6\nW1"), "{}", full.text);

    assert_eq!(buy(&ada, &ada.get("/checkout").await).await.status, StatusCode::SEE_OTHER);
    let account = ada.get("/account").await;
    assert!(count().await == 5 && account.says("1 Analytical Street\n"), "{}", account.text);
    assert!(!account.says("1 Home Road"), "the address that was used first is gone: {}", account.text);
}

/// The header of a page that is rendered for its visitor needs no script.
#[tokio::test]
async fn pages_of_one_visitor_show_name_and_cart_in_the_header() {
    let shop = open().await;
    let ada = Person::at(&shop);
    ada.sign_up(EMAIL).await;
    ada.add(MUG, 1).await;
    let order = buy(&ada, &ada.get("/checkout").await).await.location().to_owned();
    ada.add(MUG, 2).await;
    for path in ["/account", "/cart", "/checkout", &order] {
        let page = ada.get(path).await;
        assert!(
            page.says("aria-label=\"Account: ada\"") && page.says("data-cart-count>2</span>"),
            "{path}: {}",
            page.text
        );
    }
}
