//! Carts and orders.

use edgefront::{carts::CartChanges, config::CartConfig, orders::Order};
use http::Method;
use xtask::failure::Failure;

use super::judge_directive;
use crate::{
    arguments::{self, ContractArguments},
    clause::{Outcome, Report},
    form::{Cookies, with_hidden},
    origin::{Origin, Visitor},
};

/// The defaults of `CART_MAX_LINES` and `CART_MAX_QUANTITY`.
const LIMITS: CartConfig = CartConfig { max_lines: 100, max_quantity: 999 };

pub(super) async fn check(
    arguments: &ContractArguments,
    origin: &Origin,
    cookies: &Cookies,
    report: &mut Report,
) -> Result<(), Failure> {
    let visitor = arguments.user.as_ref().map_or(Visitor::None, Visitor::User);
    let mut cookies = cookies.clone();
    // The cart that edgefront would send.
    let cart = arguments.item.as_ref().map(|item| serde_json::json!({ item.as_str(): 1 }).to_string());
    report.add(
        "cart",
        match &arguments.cart {
            None => Outcome::not_checked("needs --cart and --cart-form"),
            Some(path) => {
                let forms = (arguments.product.as_str(), path.as_str());
                let fields = arguments::fields(&arguments.cart_form);
                let fields = with_hidden(origin, &mut cookies, visitor, forms, fields).await?;
                let answer = origin.call(Method::POST, path, visitor).cookies(&cookies).form(&fields).send().await?;
                cookies.update(&answer.headers);
                let parse = |text: &str| CartChanges::parse(text, &LIMITS);
                judge_directive(&answer, "edge-cart", parse, "send Edge-Cart with the response to a change of the cart")
            }
        },
    );
    report.add("cart-shown", shown(arguments, origin, &cookies).await?);
    report.add(
        "order",
        match &arguments.order {
            None => Outcome::not_checked("needs --order and --order-form"),
            Some(path) => {
                let fields = arguments::fields(&arguments.order_form);
                let fields = with_hidden(origin, &mut cookies, visitor, (path, path), fields).await?;
                let call = origin.call(Method::POST, path, visitor).cookies(&cookies).form(&fields);
                let answer = call.header("edge-cart", cart.as_deref()).send().await?;
                judge_directive(
                    &answer,
                    "edge-order",
                    Order::parse,
                    "send Edge-Order with the response that accepts an order",
                )
            }
        },
    );
    Ok(())
}

/// The cart's page depends on the header `Edge-Cart`.
async fn shown(arguments: &ContractArguments, origin: &Origin, cookies: &Cookies) -> Result<Outcome, Failure> {
    let (Some(page), Some(item)) = (&arguments.cart_page, &arguments.item) else {
        return Ok(Outcome::not_checked("needs --cart-page and --item"));
    };
    let visitor = arguments.user.as_ref().map_or(Visitor::Guest, Visitor::User);
    let get =
        async |cart: &str| origin.get(page, visitor).cookies(cookies).header("edge-cart", Some(cart)).send().await;
    let full = get(&serde_json::json!({ item.as_str(): 2 }).to_string()).await?;
    let empty = get("{}").await?;
    let remedy = "show the cart of the header Edge-Cart, and send Cache-Control: private";
    if full.is_declared_shared() || empty.is_declared_shared() {
        return Ok(Outcome::broken(format!("{page} is declared shared"), remedy));
    }
    if full.status != empty.status || full.body == empty.body {
        return Ok(Outcome::broken(format!("{page} does not depend on Edge-Cart"), remedy));
    }
    Ok(Outcome::holds(format!("{page} shows the cart of Edge-Cart")))
}
