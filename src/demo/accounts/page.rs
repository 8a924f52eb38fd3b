//! `/account`: the user's orders, addresses and devices. A script gets the devices from the edge's API.

use askama::Template;
use futures_util::future::try_join3;
use http::StatusCode;

use crate::{
    demo::{
        Shop,
        forms::SubmittedForm,
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
    now: Timestamp,
}

/// The page of a signed-in user. Redirects a guest to sign in and then back here.
pub(in crate::demo) async fn show(shop: Shop<'_>, shopper: &Shopper) -> Result<Response, Error> {
    let Some(user) = &shopper.user else { return Ok(see_other("/login?next=/account")) };
    let (account, orders, addresses) =
        try_join3(super::of_shopper(shop, shopper), async { shop.orders().find_by_user(user).await }, async {
            shop.accounts().addresses(user).await
        })
        .await?;
    let name = account.as_ref().map_or(user.as_str(), |account| &account.name);
    let frame = Frame::private("Your account", shopper);
    let page = AccountPage { frame, user, name, orders: &orders, addresses: &addresses, now: shop.now };
    pages::private(pages::html(StatusCode::OK, &page))
}

/// Removes the saved address that the form names, and shows the account again.
pub(in crate::demo) async fn forget_address(
    shop: Shop<'_>,
    shopper: &Shopper,
    form: &SubmittedForm,
) -> Result<Response, Error> {
    if let Some(user) = &shopper.user {
        shop.accounts().forget(user, form.raw("address")).await?;
    }
    Ok(see_other("/account#addresses"))
}
