//! Sign in, sign up and sign out. Like any origin, the shop answers with `Edge-Login` or `Edge-Logout`; the edge then
//! issues a new token and moves the guest's cart to the user.
//!
//! Password guessing is slowed down twice. The edge counts attempts per network. The shop counts attempts per account
//! and network, because only the shop knows which account a form names (`attempts`).

use std::borrow::Cow;

use askama::Template;
use http::{HeaderName, HeaderValue, StatusCode, header::RETRY_AFTER, request::Parts};
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use url::form_urlencoded;

use super::{
    Shop,
    accounts::check_email,
    attempts::Admission,
    forms::{FormField, SubmittedForm, local_path},
    pages::{self, Frame, see_other},
    passwords,
    shopper::Shopper,
};
use crate::ports::{error::Error, fetch::Response, rate_limit::PERIOD};

const EDGE_LOGIN: HeaderName = HeaderName::from_static("edge-login");
pub(super) const EDGE_LOGOUT: HeaderName = HeaderName::from_static("edge-logout");

/// The default redirect target after signing in.
const HOME: &str = "/";

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    frame: Frame<'a>,
    fields: &'a [FormField],
    next: &'a str,
    /// The visitor has just reset the password.
    is_changed: bool,
}

#[derive(Template)]
#[template(path = "signup.html")]
struct SignUpPage<'a> {
    frame: Frame<'a>,
    fields: &'a [FormField],
    next: &'a str,
}

/// Percent-encodes a query value, for the templates.
fn encoded(next: &str) -> PercentEncode<'_> {
    utf8_percent_encode(next, NON_ALPHANUMERIC)
}

fn login_fields() -> [FormField; 2] {
    [
        FormField::new("email", "Email", "email", "username", 128),
        FormField::new("password", "Password", "password", "current-password", 512),
    ]
}

fn sign_up_fields() -> [FormField; 3] {
    [
        FormField::new("name", "Full name", "text", "name", 100),
        FormField::new("email", "Email", "email", "username", 128),
        FormField::new("password", "Password", "password", "new-password", 512).with_hint(passwords::RULE),
    ]
}

/// The redirect target in the query parameter `next`.
fn next_path(head: &Parts) -> String {
    local_path(query_value(head, "next").as_deref().unwrap_or_default(), HOME).to_owned()
}

fn query_value<'a>(head: &'a Parts, name: &str) -> Option<Cow<'a, str>> {
    let query = head.uri.query().unwrap_or_default().as_bytes();
    form_urlencoded::parse(query).find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The sign-in form. Redirects a signed-in visitor to the account.
pub(super) fn show_login(head: &Parts, shopper: &Shopper) -> Result<Response, Error> {
    if shopper.user.is_some() {
        return Ok(see_other("/account"));
    }
    let is_changed = query_value(head, "changed").is_some();
    let (fields, next) = (&login_fields(), &next_path(head));
    pages::private(pages::html(StatusCode::OK, &LoginPage { frame: Frame::form("Sign in"), fields, next, is_changed }))
}

fn login_page(status: StatusCode, fields: &[FormField], next: &str) -> Result<Response, Error> {
    pages::private(pages::html(status, &LoginPage { frame: Frame::form("Sign in"), fields, next, is_changed: false }))
}

/// Signs in. A wrong password and an unknown email get the same answer after the same time.
pub(super) async fn log_in(shop: Shop<'_>, shopper: &Shopper, form: &SubmittedForm) -> Result<Response, Error> {
    let next = local_path(form.trimmed("next"), HOME);
    let [email, password] = login_fields().map(|field| field.filled_from(form));
    let email = check_email(email);
    let missing = form.raw("password").is_empty().then_some("Please enter your password.");
    if email.problem.is_some() || missing.is_some() {
        return login_page(StatusCode::UNPROCESSABLE_ENTITY, &[email, password.with_problem(missing)], next);
    }
    let problem = match try_password(shop, shopper, &email.value, form.raw("password")).await? {
        Attempt::Correct => return Ok(logged_in(&email.value, next)),
        Attempt::Incorrect => "Email or password is incorrect. Please try again.",
        Attempt::Limited(seconds) => {
            let problem = format!("Too many attempts. Please wait {} and try again.", duration(seconds));
            let fields = [email, password.with_problem(Some(&problem))];
            let mut page = login_page(StatusCode::TOO_MANY_REQUESTS, &fields, next)?;
            page.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            return Ok(page);
        }
    };
    login_page(StatusCode::UNPROCESSABLE_ENTITY, &[email, password.with_problem(Some(problem))], next)
}

/// The result of an attempt to sign in.
enum Attempt {
    Correct,
    /// The password is wrong, or the email has no account.
    Incorrect,
    /// The password was not checked. Seconds until the next attempt.
    Limited(u64),
}

/// Checks a password within the limits of sign-in attempts. A correct password makes the network known.
async fn try_password(shop: Shop<'_>, shopper: &Shopper, email: &str, password: &str) -> Result<Attempt, Error> {
    let attempts = shop.sign_in_attempts(email, shopper);
    match attempts.count().await? {
        Admission::Wait(seconds) => return Ok(Attempt::Limited(seconds)),
        Admission::Allowed { is_known: true } => {}
        Admission::Allowed { is_known: false } => {
            if shop.logins.check("account", Some(email)).await.is_err() {
                return Ok(Attempt::Limited(PERIOD.as_secs()));
            }
        }
    }
    let account = shop.accounts().find(email).await?;
    let hash = account.as_ref().map(|account| account.password_hash.as_str());
    if !passwords::verify(password, hash)? {
        return Ok(Attempt::Incorrect);
    }
    attempts.succeed().await;
    Ok(Attempt::Correct)
}

/// The form for a new account. Redirects a signed-in visitor to the account.
pub(super) fn show_sign_up(head: &Parts, shopper: &Shopper) -> Result<Response, Error> {
    if shopper.user.is_some() {
        return Ok(see_other("/account"));
    }
    sign_up_page(StatusCode::OK, &sign_up_fields(), &next_path(head))
}

fn sign_up_page(status: StatusCode, fields: &[FormField], next: &str) -> Result<Response, Error> {
    pages::private(pages::html(status, &SignUpPage { frame: Frame::form("Create account"), fields, next }))
}

/// Creates an account and signs in. If the form is sent twice, the second one signs in to the account of the first: it has
/// the account's email and password. Such an attempt has the limits of a sign-in, so a sign-up tries no passwords faster.
///
/// The answer reveals whether an email has an account. OWASP's Authentication Cheat Sheet recommends the same answer in
/// both cases and an email with the rest. This shop sends no email, so a user would never learn why the sign-up failed.
pub(super) async fn sign_up(shop: Shop<'_>, shopper: &Shopper, form: &SubmittedForm) -> Result<Response, Error> {
    let next = local_path(form.trimmed("next"), HOME);
    let [name, email, password] = sign_up_fields().map(|field| field.filled_from(form));
    let (name, email) = (name.check_text(), check_email(email));
    let typed = form.raw("password");
    let password = password.with_problem(passwords::problem(typed, &email.value, &name.value));
    if [&name, &email, &password].iter().any(|field| field.problem.is_some()) {
        return sign_up_page(StatusCode::UNPROCESSABLE_ENTITY, &[name, email, password], next);
    }
    if shop.accounts().create(&email.value, &name.value, &passwords::hash(typed)?).await? {
        shop.sign_in_attempts(&email.value, shopper).succeed().await;
        return Ok(logged_in(&email.value, next));
    }
    if let Attempt::Correct = try_password(shop, shopper, &email.value, typed).await? {
        return Ok(logged_in(&email.value, next));
    }
    let email = email.with_problem(Some("An account with this email already exists. Please sign in instead."));
    sign_up_page(StatusCode::CONFLICT, &[name, email, password], next)
}

/// `1 second`, `40 seconds`, `15 minutes`: minutes are rounded up.
fn duration(seconds: u64) -> String {
    match seconds {
        1 => "1 second".to_owned(),
        60 => "a minute".to_owned(),
        2..60 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds.div_ceil(60)),
    }
}

fn logged_in(user: &str, next: &str) -> Response {
    let mut response = see_other(next);
    response.headers_mut().extend(HeaderValue::try_from(user).map(|user| (EDGE_LOGIN, user)));
    response
}

/// Signs out of this device, or of all devices if the form has the field `everywhere`.
pub(super) fn log_out(form: &SubmittedForm) -> Response {
    let scope = if form.trimmed("everywhere").is_empty() { "1" } else { "all" };
    let mut response = see_other(HOME);
    response.headers_mut().insert(EDGE_LOGOUT, HeaderValue::from_static(scope));
    response
}
