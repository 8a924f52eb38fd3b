//! `/flash/{item}/checkout`: buys the piece that the edge reserves for the visitor.

use askama::Template;
use http::StatusCode;

use crate::{
    demo::{
        Shop,
        catalogue::FlashOffer,
        checkout::{CHECK_FIELDS, CheckoutForm, RESEND, confirm},
        forms::{FormField, SubmittedForm},
        orders::DemoOrderId,
        pages::{self, Frame, see_other},
        shopper::{ReservedPiece, Shopper},
    },
    ports::{error::Error, fetch::Response, time::Timestamp},
    schema::ids::ItemId,
};

#[derive(Template)]
#[template(path = "flash_checkout.html")]
struct FlashCheckoutPage<'a> {
    frame: Frame<'a>,
    offer: &'a FlashOffer,
    order_id: &'a str,
    fields: &'a [FormField],
    /// Saved addresses to choose from.
    choices: Vec<String>,
    /// Seconds until the reservation expires; None without a reservation.
    seconds: Option<u64>,
    /// An error message above the form; empty for none.
    notice: &'a str,
}

/// A checkout under way: everything that its page shows, except the error message.
struct FlashCheckout<'a> {
    offer: &'a FlashOffer,
    order_id: &'a DemoOrderId,
    form: &'a CheckoutForm,
    reservation: Option<&'a ReservedPiece>,
    shopper: &'a Shopper,
    now: Timestamp,
}

impl FlashCheckout<'_> {
    fn page(&self, status: StatusCode, notice: &str) -> Result<Response, Error> {
        let seconds = self.reservation.map(|reservation| reservation.expires().since(self.now).as_secs());
        let (order_id, fields) = (self.order_id.as_str(), self.form.fields());
        let frame = Frame::private("Checkout", self.shopper);
        let choices = self.form.choices();
        let page = FlashCheckoutPage { frame, offer: self.offer, order_id, fields, choices, seconds, notice };
        pages::private(pages::html(status, &page))
    }
}

/// The form, with name and email of the visitor's account. Without a reservation, redirects to the sale. 503 while the
/// reservation is unknown.
pub(in crate::demo) async fn show_checkout(
    shop: Shop<'_>,
    shopper: &Shopper,
    item: &ItemId,
    query: &str,
) -> Result<Response, Error> {
    if shopper.is_unknown {
        return Ok(pages::unavailable());
    }
    let offer = shop.catalogue().flash_sale(item).await?;
    let Some(reservation) = shopper.reservation_in(&offer) else { return Ok(see_other(&format!("/flash/{item}"))) };
    let form = CheckoutForm::prefilled(shop, shopper, query).await?;
    let order_id = DemoOrderId::generate()?;
    let reservation = Some(reservation);
    let checkout =
        FlashCheckout { offer: &offer, order_id: &order_id, form: &form, reservation, shopper, now: shop.now };
    checkout.page(StatusCode::OK, "")
}

/// Places an order for the reserved piece. On a problem, shows the page again with an error message and everything that
/// the visitor entered.
pub(in crate::demo) async fn place_order(
    shop: Shop<'_>,
    shopper: &Shopper,
    submitted: &SubmittedForm,
    item: &ItemId,
) -> Result<Response, Error> {
    let parsed_id = DemoOrderId::parse(submitted.trimmed("order_id"));
    // First of all: after the first of two equal forms, the reservation is gone.
    if let Some(id) = &parsed_id
        && let Some(response) = confirmation(shop, id, item, shopper.reservation_for(item)).await?
    {
        return Ok(response);
    }
    let offer = shop.catalogue().flash_sale(item).await?;
    let reservation = shopper.reservation_in(&offer);
    let (id, form) = (parsed_id.map_or_else(DemoOrderId::generate, Ok)?, CheckoutForm::checked(submitted));
    let checkout = FlashCheckout { offer: &offer, order_id: &id, form: &form, reservation, shopper, now: shop.now };
    if shopper.is_unknown {
        return checkout.page(StatusCode::SERVICE_UNAVAILABLE, RESEND);
    }
    let Some(user) = shopper.user.as_deref() else { return checkout.page(StatusCode::CONFLICT, SIGN_IN_AGAIN) };
    if reservation.is_none() {
        return checkout.page(StatusCode::CONFLICT, NO_RESERVATION);
    }
    if submitted.trimmed("price_cents") != offer.sale_cents.to_string() {
        let price = offer.price();
        let notice = format!("The price has changed. It is now {price}. Please review your order and place it again.");
        return checkout.page(StatusCode::CONFLICT, &notice);
    }
    let Some(customer) = form.customer(Some(user)) else {
        return checkout.page(StatusCode::UNPROCESSABLE_ENTITY, CHECK_FIELDS);
    };
    match shop.orders().place_flash(&id, &customer, &offer).await {
        Ok(true) => {}
        Ok(false) => {
            if let Some(response) = confirmation(shop, &id, item, reservation).await? {
                return Ok(response);
            }
            let has_bought = shop.orders().has_bought(&offer, user).await?;
            return checkout.page(StatusCode::CONFLICT, if has_bought { ALREADY_BOUGHT } else { SOLD_OUT });
        }
        Err(error) => {
            log::error!("flash sale checkout: {error}");
            return checkout.page(StatusCode::SERVICE_UNAVAILABLE, RESEND);
        }
    }
    confirmation(shop, &id, item, reservation)
        .await?
        .ok_or_else(|| Error::Platform("the placed order is not in the database".to_owned()))
}

/// The visitor has signed out since.
const SIGN_IN_AGAIN: &str =
    "We could not confirm that you are signed in. Please sign in in another tab, then place your order again.";
const NO_RESERVATION: &str = "You have no active reservation. Please reserve this item again on the sale page.";
const ALREADY_BOUGHT: &str = "You have already bought this item. The limit is one per customer.";
const SOLD_OUT: &str = "Sorry, this item is sold out.";

/// The response to an order that exists; None if it does not. Reports the reservation to the edge only if the order is
/// of the sale that the reservation belongs to: otherwise any other order of the visitor, or their order in an earlier
/// sale of this item, would count as a sold piece.
async fn confirmation(
    shop: Shop<'_>,
    id: &DemoOrderId,
    item: &ItemId,
    reservation: Option<&ReservedPiece>,
) -> Result<Option<Response>, Error> {
    let Some((order, lines)) = shop.orders().find(id).await? else { return Ok(None) };
    let is_flash = match reservation.and_then(ReservedPiece::sale_starts) {
        Some(starts) => shop.orders().is_flash(id, item, starts).await?,
        None => false,
    };
    Ok(Some(confirm(&order, &lines, reservation.filter(|_| is_flash))))
}
