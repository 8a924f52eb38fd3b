//! `/account`: the user's orders, addresses and devices. A script gets the devices from the edge's API.

use askama::Template;
use futures_util::future::try_join3;
use http::StatusCode;

use super::address::{MAX_ADDRESSES, address_fields, address_lines, checked_fields};
use crate::{
    demo::{
        Shop,
        forms::{FormField, SubmittedForm},
        orders::DemoOrder,
        pages::{self, Frame, see_other},
        shopper::Shopper,
    },
    ports::{error::Error, fetch::Response, time::Timestamp},
};

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage<'a> {
    frame: Frame<'a>,
    user: &'a str,
    name: &'a str,
    /// The newest first.
    orders: &'a [DemoOrder],
    /// The last used first.
    addresses: &'a [String],
    /// The form that adds an address.
    fields: &'a [FormField],
    now: Timestamp,
}

impl AccountPage<'_> {
    fn is_full(&self) -> bool {
        self.addresses.len() >= MAX_ADDRESSES
    }

    /// The visitor's last input was rejected.
    fn has_problem(&self) -> bool {
        self.fields.iter().any(|field| field.problem.is_some())
    }
}

/// The page of a signed-in user. Redirects a guest to sign in and then back here.
pub(in crate::demo) async fn show(shop: Shop<'_>, shopper: &Shopper) -> Result<Response, Error> {
    page(shop, shopper, StatusCode::OK, &address_fields()).await
}

async fn page(shop: Shop<'_>, shopper: &Shopper, status: StatusCode, fields: &[FormField]) -> Result<Response, Error> {
    if shopper.is_unknown {
        return Ok(pages::unavailable());
    }
    let Some(user) = &shopper.user else { return Ok(see_other("/login?next=/account")) };
    let (account, orders, addresses) =
        try_join3(super::of_shopper(shop, shopper), async { shop.orders().find_by_user(user).await }, async {
            shop.accounts().addresses(user).await
        })
        .await?;
    let name = account.as_ref().map_or(user.as_str(), |account| &account.name);
    let frame = Frame::private("Your account", shopper);
    let page = AccountPage { frame, user, name, orders: &orders, addresses: &addresses, fields, now: shop.now };
    pages::private(pages::html(status, &page))
}

/// Saves the address in the form, or removes the one that the form names, and shows the account again.
pub(in crate::demo) async fn change_addresses(
    shop: Shop<'_>,
    shopper: &Shopper,
    form: &SubmittedForm,
) -> Result<Response, Error> {
    if shopper.is_unknown {
        return Ok(pages::unavailable());
    }
    let to_account = Ok(see_other("/account#addresses"));
    let Some(user) = &shopper.user else { return to_account };
    if form.raw("op") != "add" {
        shop.accounts().forget(user, form.raw("address")).await?;
        return to_account;
    }
    let fields = checked_fields(form);
    if fields.iter().any(|field| field.problem.is_some()) {
        return page(shop, shopper, StatusCode::UNPROCESSABLE_ENTITY, &fields).await;
    }
    shop.accounts().save(user, &address_lines(&fields)).await?;
    to_account
}
