//! The clauses of the contract, in the order of the report.
//!
//! - [`key`]: nothing is believed without the right `Edge-Key`.
//! - [`pages`]: shared renders, items, tags, addresses.
//! - [`visitors`]: users, logins and logouts.
//! - [`shopping`]: carts and orders.
//! - [`rows`]: the rows of `ROWS_URL`.

mod key;
mod pages;
mod rows;
mod shopping;
mod visitors;

use http::HeaderValue;
use xtask::failure::Failure;

use crate::{
    arguments::ContractArguments,
    clause::{Outcome, Report},
    origin::{Answer, Origin, Visitor},
};

/// Checks every clause.
///
/// # Errors
/// When the origin does not answer, refuses the right key, or is edgefront itself.
pub async fn check_all(arguments: &ContractArguments, key: HeaderValue, report: &mut Report) -> Result<(), Failure> {
    let origin = Origin::new(arguments.address.clone(), arguments.public_url.clone(), key)?;
    let first = origin.get(&arguments.product, Visitor::None).send().await?;
    if first.header("cache-status").is_some_and(|value| value.contains("edgefront")) {
        let cause = format!("{} is edgefront itself (Cache-Status)", arguments.address);
        return Err(Failure::new(cause, "name the shop's own address, as ORIGIN_URL does"));
    }
    if !first.status.is_success() {
        let cause = format!("{} answers {} to a request with the key", arguments.product, first.status);
        let remedy = "check the key, and name a page of the shop with --product; \
            if the shop checks its host name, name its address with --public-url";
        return Err(Failure::new(cause, remedy));
    }
    key::check(arguments, &origin, report).await?;
    pages::check(arguments, &origin, report).await?;
    let cookies = visitors::check(arguments, &origin, report).await?;
    shopping::check(arguments, &origin, &cookies, report).await?;
    visitors::check_logout(arguments, &origin, report).await?;
    rows::check(arguments, &origin, report).await
}

/// Checks that a directive is valid and that its response cannot be stored.
fn judge_directive<T>(
    answer: &Answer,
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, edgefront::ports::error::Error>,
    missing: &'static str,
) -> Outcome {
    if answer.headers.get_all(name).iter().count() > 1 {
        return Outcome::broken(format!("two headers {name}"), "send one header; edgefront reads the first");
    }
    match answer.headers.get(name).map(|value| value.to_str()) {
        None => Outcome::broken(format!("no {name} (status {})", answer.status), missing),
        Some(Err(_)) => Outcome::broken(format!("{name} is not ASCII"), "use ids of docs/api.md#ids"),
        Some(Ok(text)) => match parse(text) {
            Ok(_) if answer.is_declared_shared() => Outcome::broken(
                format!("{name} in a response that is declared shared"),
                "send Cache-Control: private with a response for one visitor",
            ),
            Ok(_) => Outcome::holds(format!("{name}: {text}")),
            Err(error) => Outcome::broken(format!("{name} is ignored: {error}"), "use ids of docs/api.md#ids"),
        },
    }
}
