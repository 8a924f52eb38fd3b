//! Signing up, in and out, as any origin does it: it answers with `Edge-Login` or `Edge-Logout`, and the edge does the rest: a new
//! token, and the guest's cart along with it.
//!
//! Tries are counted by the platform: those of a network at the edge, those of an account here, since only the shop knows its name.

use askama::Template;
use http::{HeaderName, HeaderValue, StatusCode, header::RETRY_AFTER, request::Parts};
use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use url::form_urlencoded;

use super::{
    Shop, accounts,
    form::{Form, Input, local_path},
    pages::{self, see_other},
    passwords,
    visitor::Visitor,
};
use crate::ports::{error::Error, fetch::Response, rate_limit::PERIOD};

const EDGE_LOGIN: HeaderName = HeaderName::from_static("edge-login");
const EDGE_LOGOUT: HeaderName = HeaderName::from_static("edge-logout");

/// Where a sign-in leads if the visitor was on the way to nowhere.
const HOME: &str = "/";

#[derive(Template)]
#[template(path = "login.html")]
struct LoginPage<'a> {
    inputs: &'a [Input],
    next: &'a str,
}

#[derive(Template)]
#[template(path = "signup.html")]
struct SignUpPage<'a> {
    inputs: &'a [Input],
    next: &'a str,
}

/// As it stands in a query; for the templates.
fn encoded(next: &str) -> PercentEncode<'_> {
    utf8_percent_encode(next, NON_ALPHANUMERIC)
}

fn login_inputs() -> [Input; 2] {
    [
        Input::new("mail", "Mail address", "email", "username", 128),
        Input::new("password", "Password", "password", "current-password", 512),
    ]
}

fn sign_up_inputs() -> [Input; 3] {
    [
        Input::new("name", "Name", "text", "name", 100),
        Input::new("mail", "Mail address", "email", "username", 128),
        Input::new("password", "Password", "password", "new-password", 512).with_hint(passwords::RULE),
    ]
}

/// Where the visitor was going, by the parameter `next`.
fn next(head: &Parts) -> String {
    let query = head.uri.query().unwrap_or_default().as_bytes();
    let next = form_urlencoded::parse(query).find(|(name, _)| name == "next").map(|(_, next)| next);
    local_path(next.as_deref().unwrap_or_default(), HOME).to_owned()
}

/// The form; who is signed in already is led to their account.
pub(super) fn show_login(head: &Parts, visitor: &Visitor) -> Result<Response, Error> {
    if visitor.user.is_some() {
        return Ok(see_other("/account"));
    }
    login_page(StatusCode::OK, &login_inputs(), &next(head))
}

fn login_page(status: StatusCode, inputs: &[Input], next: &str) -> Result<Response, Error> {
    pages::private(pages::html(status, &LoginPage { inputs, next }))
}

/// Signs in. A wrong password and an unknown address are told by the same words, after the same time.
pub(super) async fn log_in(shop: Shop<'_>, form: &Form) -> Result<Response, Error> {
    let next = local_path(form.text("next"), HOME);
    let [mail, password] = login_inputs().map(|input| input.typed(form));
    let mail = accounts::check_mail(mail);
    let missing = form.as_typed("password").is_empty().then_some("Password is missing.");
    if mail.problem.is_some() || missing.is_some() {
        return login_page(StatusCode::UNPROCESSABLE_ENTITY, &[mail, password.with_problem(missing)], next);
    }
    if shop.logins.check("account", Some(&mail.value)).await.is_err() {
        let problem = "This was tried too often: please wait a minute.";
        let inputs = [mail, password.with_problem(Some(problem))];
        let mut page = login_page(StatusCode::TOO_MANY_REQUESTS, &inputs, next)?;
        page.headers_mut().insert(RETRY_AFTER, HeaderValue::from(PERIOD.as_secs()));
        return Ok(page);
    }
    let account = shop.accounts().find(&mail.value).await?;
    let kept = account.as_ref().map(|account| account.password.as_str());
    if passwords::is_right(form.as_typed("password"), kept)? {
        return Ok(logged_in(&mail.value, next));
    }
    let problem = "This mail address and this password do not belong together.";
    login_page(StatusCode::UNPROCESSABLE_ENTITY, &[mail, password.with_problem(Some(problem))], next)
}

/// The form; who is signed in already is led to their account.
pub(super) fn show_sign_up(head: &Parts, visitor: &Visitor) -> Result<Response, Error> {
    if visitor.user.is_some() {
        return Ok(see_other("/account"));
    }
    sign_up_page(StatusCode::OK, &sign_up_inputs(), &next(head))
}

fn sign_up_page(status: StatusCode, inputs: &[Input], next: &str) -> Result<Response, Error> {
    pages::private(pages::html(status, &SignUpPage { inputs, next }))
}

/// Opens an account and signs in.
///
/// That an address has an account already is said openly. OWASP's Authentication Cheat Sheet would answer the same in both cases and say the
/// rest by mail; this shop sends none, so nobody would ever learn why they cannot sign in.
pub(super) async fn sign_up(shop: Shop<'_>, form: &Form) -> Result<Response, Error> {
    let next = local_path(form.text("next"), HOME);
    let [name, mail, password] = sign_up_inputs().map(|input| input.typed(form));
    let (name, mail) = (name.check_text(), accounts::check_mail(mail));
    let typed = form.as_typed("password");
    let password = password.with_problem(passwords::problem(typed, &mail.value, &name.value));
    if [&name, &mail, &password].iter().any(|input| input.problem.is_some()) {
        return sign_up_page(StatusCode::UNPROCESSABLE_ENTITY, &[name, mail, password], next);
    }
    if shop.accounts().open(&mail.value, &name.value, &passwords::hash(typed)?).await? {
        return Ok(logged_in(&mail.value, next));
    }
    let mail = mail.with_problem(Some("There is an account with this address already: sign in instead."));
    sign_up_page(StatusCode::CONFLICT, &[name, mail, password], next)
}

fn logged_in(user: &str, next: &str) -> Response {
    let mut response = see_other(next);
    response.headers_mut().extend(HeaderValue::try_from(user).map(|user| (EDGE_LOGIN, user)));
    response
}

/// Signs out: this device, or with the field `everywhere` all of them.
pub(super) fn log_out(form: &Form) -> Response {
    let which = if form.text("everywhere").is_empty() { "1" } else { "all" };
    let mut response = see_other(HOME);
    response.headers_mut().insert(EDGE_LOGOUT, HeaderValue::from_static(which));
    response
}
