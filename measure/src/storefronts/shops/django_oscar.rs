//! django-oscar. Each page shows the total of the basket and whether the visitor is signed in.

use xtask::failure::Failure;

use super::{compare, product_names};
use crate::storefronts::{
    tally::Violation,
    visitor::{Page, Visitor, refused},
};

/// Common value of `csrftoken` behind edgefront. Any other secret in a page would belong to one visitor.
const CSRF_SECRET: &str = "edgefrontverifiestheoriginheader";
/// The characters of Django's CSRF tokens (django/middleware/csrf.py, `CSRF_ALLOWED_CHARS`).
const CSRF_CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

pub fn products() -> Vec<String> {
    (1..).zip(product_names()).map(|(id, name)| format!("/catalogue/{name}_{id}/")).collect()
}

/// Registers the visitor, or signs in with the account of an earlier registration.
pub async fn sign_in(visitor: &Visitor) -> Result<(), Failure> {
    let (email, password) = (visitor.email.as_str(), "visitor-password-1");
    let token = csrf_token(&visitor.get("/accounts/login/").await?)?;
    let fields = [("login-username", email), ("login-password", password), ("login_submit", "1")];
    let page =
        visitor.post_form("/accounts/login/", &[&fields[..], &[("csrfmiddlewaretoken", &token)]].concat()).await?;
    if is_signed_in(&page) {
        return Ok(());
    }
    let token = csrf_token(&page)?;
    let fields = [
        ("registration-email", email),
        ("registration-password1", password),
        ("registration-password2", password),
        ("registration_submit", "1"),
        ("csrfmiddlewaretoken", &token),
    ];
    let page = visitor.post_form("/accounts/login/", &fields).await?;
    if !is_signed_in(&page) {
        return Err(refused("a registration", &page));
    }
    read_messages(visitor).await
}

pub async fn sign_out(visitor: &Visitor) -> Result<(), Failure> {
    let page = visitor.get("/accounts/logout/").await?;
    if is_signed_in(&page) { Err(refused("to sign out", &page)) } else { Ok(()) }
}

/// Every visitor adds another product, so every basket has another total.
pub async fn fill_basket(visitor: &Visitor) -> Result<(), Failure> {
    let product = visitor.number.to_string();
    let path = products().into_iter().nth(visitor.number as usize - 1).unwrap_or_default();
    let token = csrf_token(&visitor.get(&path).await?)?;
    let fields = [("quantity", "1"), ("csrfmiddlewaretoken", &token)];
    visitor.post_form(&format!("/basket/add/{product}/"), &fields).await?;
    read_messages(visitor).await
}

/// The seed's price of product n is £(4 + n).
fn own_total(visitor: &Visitor) -> String {
    format!("£{}.00", if visitor.has_basket { visitor.number + 4 } else { 0 })
}

pub fn check(visitor: &Visitor, page: &Page) -> Option<Violation> {
    let total = |text: String| (text != "£0.00").then_some(text);
    let shown = page.between("<strong>Basket total:</strong>", "<").map(str::to_owned).and_then(total);
    let own = total(own_total(visitor));
    let message = page.between("<div id=\"messages\">", "</div>").filter(|text| !text.is_empty());
    let signed_in = |is_signed_in: bool| is_signed_in.then_some("signed in");
    compare("basket total", shown.as_deref(), own.as_deref())
        .or_else(|| compare("sign-in", signed_in(is_signed_in(page)), signed_in(visitor.is_signed_in)))
        .or_else(|| compare("message", message, None))
        .or_else(|| foreign_secret(page).map(|secret| Violation::Leak(format!("the CSRF secret {secret}"))))
}

fn is_signed_in(page: &Page) -> bool {
    page.body.contains("id=\"logout_link\"")
}

/// Django shows a message on the next page only.
async fn read_messages(visitor: &Visitor) -> Result<(), Failure> {
    visitor.get("/basket/").await.map(drop)
}

fn csrf_token(page: &Page) -> Result<String, Failure> {
    let token = page.between("name=\"csrfmiddlewaretoken\" value=\"", "\"");
    token.map(str::to_owned).ok_or_else(|| refused("a form with a token", page))
}

/// The secret of a token in the page, if it is not the common one.
fn foreign_secret(page: &Page) -> Option<String> {
    let tokens = page.body.split("name=\"csrfmiddlewaretoken\" value=\"").skip(1);
    let secrets = tokens.filter_map(|rest| unmask(rest.split('"').next()?));
    secrets.into_iter().find(|secret| secret != CSRF_SECRET)
}

/// The secret of a masked token: the second half minus the first, character by character (`_unmask_cipher_token`).
fn unmask(token: &str) -> Option<String> {
    let (mask, cipher) = token.split_at_checked(token.len() / 2)?;
    let position = |byte| CSRF_CHARACTERS.iter().position(|character| *character == byte);
    let count = CSRF_CHARACTERS.len();
    let pairs = mask.bytes().zip(cipher.bytes());
    let secret = pairs.map(|(mask, cipher)| {
        let index = (position(cipher)? + count - position(mask)?) % count;
        CSRF_CHARACTERS.get(index).map(|byte| char::from(*byte))
    });
    secret.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_unmasked_as_django_does() {
        // With a mask of a's, the cipher is the secret. A mask of b's shifts by one.
        assert_eq!(unmask(&format!("{}secret09", "a".repeat(8))).as_deref(), Some("secret09"));
        assert_eq!(unmask("bbbbbbbbtfdsfu1a").as_deref(), Some("secret09"));
    }
}
