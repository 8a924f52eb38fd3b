//! `/account`: the user's orders and devices. A script gets the devices from the edge's API.

use askama::Template;
use futures_util::future::try_join;
use http::StatusCode;

use crate::{
    demo::{
        Shop,
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
    now: Timestamp,
}

impl AccountPage<'_> {
    /// The address of the last order.
    fn address(&self) -> Option<&str> {
        self.orders.first().map(|order| &*order.address)
    }
}

/// The page of a signed-in user. Redirects a guest to sign in and then back here.
pub(in crate::demo) async fn show(shop: Shop<'_>, shopper: &Shopper) -> Result<Response, Error> {
    let Some(user) = &shopper.user else { return Ok(see_other("/login?next=/account")) };
    let (account, orders) =
        try_join(super::of_shopper(shop, shopper), async { shop.orders().find_by_user(user).await }).await?;
    let name = account.as_ref().map_or(user.as_str(), |account| &account.name);
    pages::private(pages::html(
        StatusCode::OK,
        &AccountPage { frame: Frame::private("Your account", shopper), user, name, orders: &orders, now: shop.now },
    ))
}
