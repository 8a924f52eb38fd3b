//! `/orders`: what was bought, from a shop that reports it later than with its answer.

use http::StatusCode;

use super::{body::read_text, call::Call, reply};
use crate::{
    orders::{Customer, Order, insights},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
    schema::{ids::UserId, token::Token},
    sessions,
};

/// `{order_id, items, user | token, reservation?}` → 204 once all of it is done. The same order again does no harm, so a caller that
/// got no answer sends it again. Without `user` and `token` it is nobody's, and changes no cart.
pub async fn report(call: Call<'_>) -> Result<Answer, Problem> {
    let mut fields = call.fields()?;
    let user = fields.take_if_any("user").map(|user| read_text("user", &user, UserId::parse)).transpose()?;
    let token = fields.take_if_any("token").map(|token| read_text("token", &token, parse_token)).transpose()?;
    let order = Order::take_from(fields.all(), &call.app.config.cart)?;
    fields.end()?;
    let (app, config) = (call.app, &call.app.config);
    let token = match (&user, token) {
        (Some(_), Some(_)) => return Err(Error::invalid("token", "cannot be given beside the user").into()),
        // Of a user's carts the one that they filled last is in the session that they began last, as far as we can know.
        (Some(user), None) => sessions::latest_login(&app.redis, user, call.now, &config.session).await?,
        (None, token) => token,
    };
    let customer = Customer { token: token.as_ref(), user: user.as_ref() };
    let viewed = order.settle(&app.redis, customer, call.now, &config.session).await?;
    if insights::learn(&app.redis, &order, &viewed, call.now, &config.insights).await? {
        app.traffic.order();
    }
    Ok(reply::empty(StatusCode::NO_CONTENT).into())
}

fn parse_token(text: &str) -> Result<Token, Error> {
    Token::parse(text).ok_or_else(|| Error::invalid("token", "must be the token of a session"))
}
