//! `/checkout`: where a cart becomes an order. The form carries the order's number, so that the same form sent twice is one order,
//! and names what its buyer was shown, so that nobody pays a price that they did not see.

use askama::Template;
use http::{HeaderName, HeaderValue, StatusCode};

use super::{
    Shop, accounts,
    basket::Basket,
    form::{Form, Input},
    orders::{Buyer, Order, OrderId, OrderLine},
    pages::{self, see_other},
    visitor::{Held, Visitor},
};
use crate::ports::{error::Error, fetch::Response};

const EDGE_ORDER: HeaderName = HeaderName::from_static("edge-order");

#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'a> {
    order: &'a str,
    /// None: the cart cannot be reached.
    basket: Option<&'a Basket>,
    inputs: &'a [Input],
    /// A notice above the page; empty for none.
    notice: &'a str,
}

impl CheckoutPage<'_> {
    fn has_nothing_to_buy(&self) -> bool {
        self.basket.is_some_and(|basket| basket.lines.is_empty())
    }
}

/// The buyer's input so far.
pub(super) struct Fields([Input; 3]);

impl Fields {
    pub(super) fn empty() -> Self {
        Self([
            Input::new("name", "Name", "text", "name", 100),
            Input::new("mail", "Mail address", "email", "email", 128),
            Input::new("address", "Address", "textarea", "street-address", 500)
                .with_hint("Street, postcode, town and country, a line each."),
        ])
    }

    pub(super) fn typed(form: &Form) -> Self {
        Self(Self::empty().0.map(|input| input.typed(form)))
    }

    /// With what is wrong beside each.
    pub(super) fn checked(self) -> Self {
        Self(self.0.map(|input| match input.name {
            "mail" => accounts::check_mail(input),
            _ => input.check_text(),
        }))
    }

    pub(super) fn inputs(&self) -> &[Input] {
        &self.0
    }

    /// With what the visitor's account knows, if they have one.
    pub(super) async fn filled_in(mut self, shop: Shop<'_>, visitor: &Visitor) -> Result<Self, Error> {
        if let Some(account) = accounts::of(shop, visitor).await? {
            let Self([name, mail, _]) = &mut self;
            (name.value, mail.value) = (account.name, account.id);
        }
        Ok(self)
    }

    fn are_fine(&self) -> bool {
        self.0.iter().all(|input| input.problem.is_none())
    }

    /// None if a field is wrong.
    pub(super) fn buyer<'a>(&'a self, user: Option<&'a str>) -> Option<Buyer<'a>> {
        let [name, mail, address] = &self.0;
        self.are_fine().then_some(Buyer { user, mail: &mail.value, name: &name.value, address: &address.value })
    }
}

/// The form, filled in with what the account knows.
pub(super) async fn show(shop: Shop<'_>, visitor: &Visitor) -> Result<Response, Error> {
    let id = OrderId::draw()?;
    let fields = Fields::empty().filled_in(shop, visitor).await?;
    let Some(cart) = &visitor.cart else { return page(StatusCode::SERVICE_UNAVAILABLE, &id, None, &fields, "") };
    let basket = Basket::of(&shop.catalogue(), cart).await?;
    page(StatusCode::OK, &id, Some(&basket), &fields, "")
}

/// Buys what is in the cart: a new order, or the page again with what is in its way and all that was typed.
pub(super) async fn buy(shop: Shop<'_>, visitor: &Visitor, form: &Form) -> Result<Response, Error> {
    let drawn = OrderId::parse(form.text("order"));
    // Before all else: by the time a form comes twice, the cart is empty.
    if let Some(id) = &drawn
        && let Some((order, lines)) = shop.orders().find(id).await?
    {
        return Ok(bought(&order, &lines, None));
    }
    let (id, fields) = (drawn.map_or_else(OrderId::draw, Ok)?, Fields::typed(form).checked());
    let Some(cart) = &visitor.cart else { return page(StatusCode::SERVICE_UNAVAILABLE, &id, None, &fields, "") };
    let basket = Basket::of(&shop.catalogue(), cart).await?;
    let again = |status, notice: &str| page(status, &id, Some(&basket), &fields, notice);
    if basket.lines.is_empty() {
        return again(StatusCode::CONFLICT, "");
    }
    let shown = form.text("offer");
    if shown != basket.offer() {
        let before = basket.total_of(shown).map(|total| format!(": it was {total}")).unwrap_or_default();
        let notice = format!(
            "The cart or a price has changed since you saw this page. The total is {} now{before}. Please look again.",
            basket.total()
        );
        return again(StatusCode::CONFLICT, &notice);
    }
    let Some(buyer) = fields.buyer(visitor.user.as_deref()) else {
        return again(StatusCode::UNPROCESSABLE_ENTITY, LOOK_BELOW);
    };
    if basket.has_problem() {
        return again(StatusCode::CONFLICT, OUT_OF_STOCK);
    }
    match shop.orders().place(&id, &buyer, &basket).await {
        Ok(true) => {}
        Ok(false) => return refused(shop, cart, &id, &fields).await,
        Err(error) => {
            log::error!("checkout: {error}");
            return again(StatusCode::SERVICE_UNAVAILABLE, SEND_AGAIN);
        }
    }
    match shop.orders().find(&id).await? {
        Some((order, lines)) => Ok(bought(&order, &lines, None)),
        None => Err(Error::Platform("an order that was placed is not there".to_owned())),
    }
}

pub(super) const LOOK_BELOW: &str = "Please look at what is marked below.";
pub(super) const SEND_AGAIN: &str =
    "We do not know whether the order reached us. Please send it again: it is bought once only.";
const OUT_OF_STOCK: &str = "Not everything in the cart is there in that quantity. Please change the cart.";

/// The database said no: the same form was faster, or other buyers were.
async fn refused(
    shop: Shop<'_>,
    cart: &std::collections::BTreeMap<String, u32>,
    id: &OrderId,
    fields: &Fields,
) -> Result<Response, Error> {
    if let Some((order, lines)) = shop.orders().find(id).await? {
        return Ok(bought(&order, &lines, None));
    }
    let basket = Basket::of(&shop.catalogue(), cart).await?;
    // Stock that has come back in between is there for the next try.
    let notice = if basket.has_problem() { OUT_OF_STOCK } else { "Somebody was faster. Please try once more." };
    page(StatusCode::CONFLICT, id, Some(&basket), fields, notice)
}

fn page(
    status: StatusCode,
    id: &OrderId,
    basket: Option<&Basket>,
    fields: &Fields,
    notice: &str,
) -> Result<Response, Error> {
    let page = CheckoutPage { order: id.as_str(), basket, inputs: &fields.0, notice };
    pages::private(pages::html(status, &page))
}

/// 303 to the order, which tells the edge what was bought, and of a flash sale by which reservation. Told twice, it is done once.
pub(super) fn bought(order: &Order, lines: &[OrderLine], held: Option<&Held>) -> Response {
    let mut response = see_other(&format!("/orders/{}", order.id));
    let told = HeaderValue::try_from(order.for_edge(lines, held).to_string());
    response.headers_mut().extend(told.map(|told| (EDGE_ORDER, told)));
    response
}

#[derive(Template)]
#[template(path = "order.html")]
struct OrderPage<'a> {
    order: &'a Order,
    lines: &'a [OrderLine],
}

/// `/orders/{id}`, for whom it belongs to; to everybody else it is not there.
pub(super) async fn order(shop: Shop<'_>, visitor: &Visitor, id: &OrderId) -> Result<Response, Error> {
    let found = shop.orders().find(id).await?;
    let found = found.filter(|(order, _)| order.belongs_to(visitor.user.as_deref(), shop.now));
    let (order, lines) = found.ok_or(Error::NotFound("order"))?;
    pages::private(pages::html(StatusCode::OK, &OrderPage { order: &order, lines: &lines }))
}
