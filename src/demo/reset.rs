//! `/reset`: sends a link to a visitor who forgot the password. `/reset/{token}`: sets the new password.
//!
//! The link works once, for 30 minutes. The database keeps a hash of its token. The answer does not reveal whether an
//! email has an account (OWASP, "Forgot Password Cheat Sheet").

use askama::Template;
use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    Shop,
    accounts::check_email,
    forms::{FormField, SubmittedForm},
    pages::{self, Frame, see_other},
    passwords,
    rows::deserialize_rows,
    sign_in::EDGE_LOGOUT,
};
use crate::{
    ports::{error::Error, fetch::Response, mail::Mail, random},
    schema::hex,
};

/// The token in a link: 128 random bits as 32 hexadecimal digits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResetToken(String);

#[derive(Template)]
#[template(path = "reset.html")]
struct ResetPage<'a> {
    frame: Frame<'a>,
    title: &'a str,
    text: &'a str,
    /// The only field of the form; None for a message without a form.
    field: Option<FormField>,
    /// The button of the form; of a message, the link to a new form. Empty for none.
    button: &'a str,
}

/// The account of a valid link.
#[derive(Deserialize)]
struct ResettingUser {
    email: String,
    name: String,
}

/// Stores the hash of a new link for an account. At most one link a minute, so that nobody floods a mailbox.
const REQUEST: &str =
    "INSERT INTO password_resets (user, token_hash, requested_at) SELECT id, ?2, ?3 FROM users WHERE id = ?1
    ON CONFLICT (user) DO UPDATE SET token_hash = ?2, requested_at = ?3 WHERE requested_at + 60 <= ?3
    RETURNING user";
const FIND: &str = "SELECT users.id AS email, name FROM password_resets JOIN users ON users.id = user
    WHERE token_hash = ?1 AND ?2 < requested_at + 1800";
/// Sets the password only if the link still works: of two concurrent requests, one finds no link.
const CHANGE: &str = "UPDATE users SET password = ?3
    WHERE id = (SELECT user FROM password_resets WHERE token_hash = ?1 AND ?2 < requested_at + 1800)";
const USE_UP: &str = "DELETE FROM password_resets WHERE token_hash = ?1 RETURNING user";

impl ResetToken {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (text.len() == 32 && is_hex).then(|| Self(text.to_owned()))
    }

    fn hash(&self) -> String {
        hex(&Sha256::digest(&self.0))
    }
}

fn email_field() -> FormField {
    FormField::new("email", "Email", "email", "username", 128)
}

fn password_field() -> FormField {
    FormField::new("password", "New password", "password", "new-password", 512).with_hint(passwords::RULE)
}

/// The form that asks for a link.
pub(super) fn show_request(shop: Shop<'_>) -> Result<Response, Error> {
    if shop.mailer.is_none() {
        return message("Reset password", "This shop sends no email, so it cannot reset passwords.");
    }
    request_page(StatusCode::OK, email_field())
}

fn request_page(status: StatusCode, field: FormField) -> Result<Response, Error> {
    let text = "Enter the email of your account. We will send you a link to choose a new password.";
    page(status, "Reset password", text, Some(field), "Send link")
}

/// Sends a link if the email has an account. Shows the same page if it has none.
pub(super) async fn request(shop: Shop<'_>, form: &SubmittedForm) -> Result<Response, Error> {
    let Some(mailer) = shop.mailer else { return show_request(shop) };
    let field = check_email(email_field().filled_from(form));
    if field.problem.is_some() {
        return request_page(StatusCode::UNPROCESSABLE_ENTITY, field);
    }
    let token = ResetToken(hex(&random::bytes::<16>()?));
    let binds = [json!(field.value), json!(token.hash()), json!(shop.now.as_secs())];
    if !shop.database.query(REQUEST, &binds).await?.is_empty() {
        let text = format!(
            "Open this link to choose a new password:\n\n{}/reset/{}\n\nThe link works once, for 30 minutes. \
            If you did not ask for it, ignore this email.\n\nEdgeware",
            shop.site, token.0
        );
        // An error page would reveal that the email has an account.
        if let Err(error) = mailer.send(&Mail { to: &field.value, subject: "Reset your password", text: &text }).await {
            log::error!("a link to reset a password was not sent: {error}");
        }
    }
    let text = format!("If {} has an account, we have sent a link to it. The link works for 30 minutes.", field.value);
    message("Check your email", &text)
}

/// The form for the new password.
pub(super) async fn show_change(shop: Shop<'_>, token: &ResetToken) -> Result<Response, Error> {
    match find(shop, token).await? {
        Some(_) => change_page(StatusCode::OK, password_field()),
        None => expired(),
    }
}

fn change_page(status: StatusCode, field: FormField) -> Result<Response, Error> {
    page(status, "Choose a new password", "", Some(field), "Save password")
}

/// Sets the password, uses the link up, and ends all sessions of the user: somebody else may have one of them. The user
/// then signs in with the new password.
pub(super) async fn change(shop: Shop<'_>, token: &ResetToken, form: &SubmittedForm) -> Result<Response, Error> {
    let Some(user) = find(shop, token).await? else { return expired() };
    let typed = form.raw("password");
    let field = password_field().with_problem(passwords::problem(typed, &user.email, &user.name));
    if field.problem.is_some() {
        return change_page(StatusCode::UNPROCESSABLE_ENTITY, field);
    }
    let (hash, now) = (token.hash(), shop.now.as_secs());
    let change = (CHANGE, vec![json!(hash), json!(now), json!(passwords::hash(typed)?)]);
    let results = shop.database.transaction(&[change, (USE_UP, vec![json!(hash)])]).await?;
    if results.last().is_none_or(Vec::is_empty) {
        return expired();
    }
    let mut response = see_other("/login?next=/account&changed=1");
    response
        .headers_mut()
        .extend(HeaderValue::try_from(format!("user={}", user.email)).map(|user| (EDGE_LOGOUT, user)));
    Ok(response)
}

async fn find(shop: Shop<'_>, token: &ResetToken) -> Result<Option<ResettingUser>, Error> {
    let rows = shop.database.query(FIND, &[json!(token.hash()), json!(shop.now.as_secs())]).await?;
    Ok(deserialize_rows(rows)?.pop())
}

fn expired() -> Result<Response, Error> {
    let text = "This link has expired, or it was used already. Please ask for a new one.";
    page(StatusCode::GONE, "Link expired", text, None, "Send a new link")
}

fn message(title: &str, text: &str) -> Result<Response, Error> {
    page(StatusCode::OK, title, text, None, "")
}

fn page(
    status: StatusCode,
    title: &str,
    text: &str,
    field: Option<FormField>,
    button: &str,
) -> Result<Response, Error> {
    pages::private(pages::html(status, &ResetPage { frame: Frame::form(title), title, text, field, button }))
}
