//! `/account`: who is signed in, what they bought, and where else they are signed in. The devices come from the edge's API by the
//! script; to sign out everywhere is a plain form.

use askama::Template;
use http::StatusCode;

use super::{
    Shop,
    accounts::{self, Account},
    orders::Order,
    pages::{self, see_other},
    visitor::Visitor,
};
use crate::ports::{error::Error, fetch::Response};

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage<'a> {
    user: &'a str,
    name: &'a str,
    orders: &'a [Order],
}

/// The page; who is not signed in is asked to, and comes back.
pub(super) async fn show(shop: Shop<'_>, visitor: &Visitor) -> Result<Response, Error> {
    let Some(user) = &visitor.user else { return Ok(see_other("/login?next=/account")) };
    let (account, orders) =
        futures_util::future::try_join(accounts::of(shop, visitor), async { shop.orders().of_user(user).await })
            .await?;
    let name = account.as_ref().map_or(user.as_str(), |Account { name, .. }| name);
    pages::private(pages::html(StatusCode::OK, &AccountPage { user, name, orders: &orders }))
}
