//! Sign up, sign in and sign out.

use http::StatusCode;
use serde_json::json;

use super::{
    MUG, open,
    person::{PASSWORD, Page, Person},
};

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
