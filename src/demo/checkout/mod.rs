//! `/checkout`: turns a cart into an order.
//!
//! The form carries the order's id, so a form that is sent twice places one order. It also carries the quote of the
//! cart that the buyer saw, so a changed price is shown before it is paid.
//!
//! - `form`: the buyer's name, email and address.
//! - `ticket`: keeps two tabs from ordering one cart twice.

mod form;
pub(super) mod ticket;

use std::collections::BTreeMap;

use askama::Template;
use http::{HeaderName, HeaderValue, StatusCode};

pub(super) use self::form::CheckoutForm;
use super::{
    Shop,
    cart::PricedCart,
    forms::{FormField, SubmittedForm},
    orders::{DemoOrder, DemoOrderId, DemoOrderLine},
    pages::{self, Frame, see_other},
    shopper::{ReservedPiece, Shopper},
};
use crate::ports::{error::Error, fetch::Response};

const EDGE_ORDER: HeaderName = HeaderName::from_static("edge-order");

#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'a> {
    frame: Frame<'a>,
    order_id: &'a str,
    /// None while Redis is down.
    cart: Option<&'a PricedCart>,
    fields: &'a [FormField],
    /// Saved addresses to choose from.
    choices: Vec<String>,
    /// An error message above the form; empty for none.
    notice: &'a str,
}

impl CheckoutPage<'_> {
    fn has_empty_cart(&self) -> bool {
        self.cart.is_some_and(|cart| cart.lines.is_empty())
    }

    /// The visitor has entered something.
    fn has_details(&self) -> bool {
        self.fields.iter().any(|field| !field.value.is_empty())
    }

    /// Without a cart, only a form with details is worth keeping.
    fn has_form(&self) -> bool {
        match self.cart {
            None => self.has_details(),
            Some(cart) => !cart.lines.is_empty() || !self.notice.is_empty(),
        }
    }
}

/// The form, with name, email and address of the visitor's account.
pub(super) async fn show(shop: Shop<'_>, shopper: &Shopper, query: &str) -> Result<Response, Error> {
    let id = DemoOrderId::generate()?;
    let form = CheckoutForm::prefilled(shop, shopper, query).await?;
    let draft = Draft { shopper, id: &id, form: &form };
    let Some(cart) = &shopper.cart else { return draft.page(StatusCode::SERVICE_UNAVAILABLE, None, "") };
    let cart = PricedCart::load(&shop.catalogue(), cart).await?;
    let page = draft.page(StatusCode::OK, Some(&cart), "")?;
    if shopper.ticket.is_some() { Ok(page) } else { ticket::renew(page) }
}

/// Places an order for the cart. On a problem, shows the page again with an error message and everything that the
/// visitor entered.
pub(super) async fn place_order(
    shop: Shop<'_>,
    shopper: &Shopper,
    submitted: &SubmittedForm,
) -> Result<Response, Error> {
    let parsed_id = DemoOrderId::parse(submitted.trimmed("order_id"));
    // First of all: after the first of two equal forms, the cart is empty.
    if let Some(id) = &parsed_id
        && let Some((order, lines)) = shop.orders().find(id).await?
    {
        return complete(&order, &lines);
    }
    let (id, form) = (parsed_id.map_or_else(DemoOrderId::generate, Ok)?, CheckoutForm::checked(submitted));
    let draft = Draft { shopper, id: &id, form: &form };
    let Some(edge_cart) = &shopper.cart else {
        return draft.page(StatusCode::SERVICE_UNAVAILABLE, None, "");
    };
    let cart = PricedCart::load(&shop.catalogue(), edge_cart).await?;
    let show_again = |status, notice: &str| draft.page(status, Some(&cart), notice);
    if cart.lines.is_empty() {
        return show_again(StatusCode::CONFLICT, NO_CART);
    }
    let shown = submitted.trimmed("quote");
    if shown != cart.quote() {
        return show_again(StatusCode::CONFLICT, &changed_total(&cart, shown));
    }
    let Some(customer) = form.customer(shopper.user.as_deref()) else {
        return show_again(StatusCode::UNPROCESSABLE_ENTITY, CHECK_FIELDS);
    };
    if cart.has_problem() {
        return show_again(StatusCode::CONFLICT, OUT_OF_STOCK);
    }
    match shop.orders().place(&id, &customer, &cart, shopper.ticket.as_deref()).await {
        Ok(true) => {}
        Ok(false) => return refused(shop, edge_cart, &draft).await,
        Err(error) => {
            log::error!("checkout: {error}");
            return show_again(StatusCode::SERVICE_UNAVAILABLE, RESEND);
        }
    }
    match shop.orders().find(&id).await? {
        Some((order, lines)) => complete(&order, &lines),
        None => Err(Error::Platform("the placed order is not in the database".to_owned())),
    }
}

pub(super) const CHECK_FIELDS: &str = "Some details are missing or incorrect. Please check the marked fields.";
pub(super) const RESEND: &str = "We could not confirm your order. Please place it again: it will not be ordered twice.";
/// The session has ended, or the visitor has emptied the cart in another tab.
const NO_CART: &str = "Your order was not placed, because your cart is empty. If your session has ended, please sign in again in a new tab. \
    The details that you entered stay on this page.";
const OUT_OF_STOCK: &str = "Some items are not available in this quantity. Please edit your cart.";
const ORDERED: &str = "You have already ordered this cart in another tab.";
const STOCK_CHANGED: &str = "The stock changed while you placed your order. Please place it again.";

/// The message for a cart that no longer matches the quote that the buyer saw.
fn changed_total(cart: &PricedCart, shown: &str) -> String {
    let before = cart.quoted_total(shown).map(|total| format!(" (it was {total})")).unwrap_or_default();
    format!(
        "Your cart or a price has changed. The total is now {}{before}. Please review your order and place it again.",
        cart.total()
    )
}

/// The response when a constraint refused the order: the same form was sent twice at once, another tab ordered the cart, or
/// other buyers took the stock.
async fn refused(shop: Shop<'_>, cart: &BTreeMap<String, u32>, draft: &Draft<'_>) -> Result<Response, Error> {
    if let Some((order, lines)) = shop.orders().find(draft.id).await? {
        return complete(&order, &lines);
    }
    let cart = PricedCart::load(&shop.catalogue(), cart).await?;
    if shop.orders().has_used(draft.shopper.ticket.as_deref()).await? {
        return ticket::renew(draft.page(StatusCode::CONFLICT, Some(&cart), ORDERED)?);
    }
    // The stock may be back by now; then the next attempt succeeds.
    let notice = if cart.has_problem() { OUT_OF_STOCK } else { STOCK_CHANGED };
    draft.page(StatusCode::CONFLICT, Some(&cart), notice)
}

/// A checkout under way: everything that its page shows, except the cart and the error message.
struct Draft<'a> {
    shopper: &'a Shopper,
    id: &'a DemoOrderId,
    form: &'a CheckoutForm,
}

impl Draft<'_> {
    fn page(&self, status: StatusCode, cart: Option<&PricedCart>, notice: &str) -> Result<Response, Error> {
        let frame = Frame::private("Checkout", self.shopper);
        let (order_id, fields, choices) = (self.id.as_str(), self.form.fields(), self.form.choices());
        let page = CheckoutPage { frame, order_id, cart, fields, choices, notice };
        pages::private(pages::html(status, &page))
    }
}

/// Confirms the order of a cart, and gives the browser a ticket for its next checkout.
fn complete(order: &DemoOrder, lines: &[DemoOrderLine]) -> Result<Response, Error> {
    ticket::renew(confirm(order, lines, None))
}

/// Redirects to the order's page, and reports the order to the edge with its flash sale reservation. The edge counts a
/// repeated report once.
pub(super) fn confirm(order: &DemoOrder, lines: &[DemoOrderLine], reservation: Option<&ReservedPiece>) -> Response {
    let mut response = see_other(&format!("/orders/{}", order.id));
    let report = HeaderValue::try_from(order.edge_order(lines, reservation).to_string());
    response.headers_mut().extend(report.map(|report| (EDGE_ORDER, report)));
    response
}
