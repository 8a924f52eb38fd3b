//! `/orders`: orders, from a shop that reports them later than with its response.

use http::StatusCode;

use super::{request::ApiRequest, respond};
use crate::{
    metrics::traffic::Metric,
    orders::{Customer, Order, insights},
    ports::{answer::Answer, error::Error},
    routes::problem::Problem,
    schema::{ids::UserId, token::Token},
    sessions,
};

/// `{order_id, items, user | token, reservation?}` → 204 after every step is done. A repeated report changes nothing,
/// so a caller without an answer repeats it. An order without `user` and `token` changes no cart.
pub async fn report(request: ApiRequest<'_>) -> Result<Answer, Problem> {
    let (app, config) = (request.app, &request.app.config);
    let mut fields = request.json_fields()?;
    let user = fields.take_optional_parsed("user", UserId::parse)?;
    let token = fields.take_optional_parsed("token", parse_token)?;
    let order = Order::take_from(fields.remaining())?;
    fields.finish()?;
    let token = match (&user, token) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("token", "cannot be combined with user: send one of them").into());
        }
        // The newest login is the best guess at the session whose cart the user ordered.
        (Some(user), None) => sessions::latest_login(&app.redis, user, request.now, &config.session).await?,
        (None, token) => token,
    };
    let customer = Customer { token: token.as_ref(), user: user.as_ref() };
    let viewed = order.settle(&app.redis, customer, request.now, &config.session).await?;
    if insights::learn(&app.redis, &order, &viewed, request.now, &config.insights).await? {
        app.traffic.count(Metric::Order);
    }
    Ok(respond::empty(StatusCode::NO_CONTENT).into())
}

fn parse_token(text: &str) -> Result<Token, Error> {
    Token::parse(text).ok_or_else(|| Error::invalid("token", "must be the token of a session"))
}
