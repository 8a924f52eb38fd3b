//! Obeys the origin's directives: order, login, logout, cart change.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::{
    directives::{LogoutScope, OriginDirectives},
    visit::Visit,
};
use crate::{
    carts::{self, CartWriteRequest},
    metrics::traffic::Metric,
    orders::{Customer, Order, insights},
    ports::{answer::BackgroundTask, error::Error},
    schema::ids::UserId,
    sessions::{self, LoginRequest, cookie, device::DeviceLabel},
};

/// Redis deadline of an order's background work. No visitor waits, and the origin does not repeat its report.
const ORDER_TIMEOUT: Duration = Duration::from_secs(10);

/// Settles an order: the cart loses the bought lines, the insights learn. A failure does not undo the order: it is
/// logged, and the returned background task tries once more.
pub(super) async fn settle(visit: &Visit, order: Order, user: Option<&UserId>) -> BackgroundTask {
    let (app, token, now, user) = (visit.app.clone(), visit.token.clone(), visit.now, user.cloned());
    let customer = Customer { token: token.as_ref(), user: user.as_ref() };
    let settled = order.settle(&app.redis, customer, now, &app.config.session).await;
    Box::pin(async move {
        let redis = app.redis.with_deadline(ORDER_TIMEOUT);
        let settled = match settled {
            Ok(viewed) => Ok(viewed),
            Err(error) => {
                log::error!("an order was not settled before the response, trying again: {error}");
                let customer = Customer { token: token.as_ref(), user: user.as_ref() };
                order.settle(&redis, customer, now, &app.config.session).await
            }
        };
        let is_new = match settled {
            Ok(viewed) => insights::learn(&redis, &order, &viewed, now, &app.config.insights).await,
            Err(error) => Err(error),
        };
        match is_new {
            Ok(true) => app.traffic.count(Metric::Order),
            Ok(false) => {}
            Err(error) => log::warn!("an order was not settled: {error}"),
        }
    })
}

/// Executes login or logout, then the changes of the resulting session's cart. Returns the new cookie. A rate-limited
/// request has no effect.
pub(super) async fn obey(
    visit: &Visit,
    directives: OriginDirectives,
    user: Option<&UserId>,
    request: &HeaderMap,
) -> Result<Option<HeaderValue>, Error> {
    let Visit { app, now, .. } = visit;
    if directives.cart.is_some() {
        app.limits.writes.check("cart", visit.network).await?;
    }
    let (mut token, mut cookie) = (visit.token.clone(), None);
    if let Some(user) = directives.user {
        let label = DeviceLabel::of(request);
        let login =
            LoginRequest { user: &user, old_token: token.as_ref(), label: label.as_ref(), idempotency_key: None };
        let new = sessions::log_in_with(&app.redis, &login, *now, &app.config.session).await?;
        cookie = Some(app.keyring.set(&new)?);
        token = Some(new);
    } else if let Some(scope) = directives.logout {
        log_out(visit, scope, user).await?;
        cookie = Some(cookie::clear());
        token = None;
    }
    if let Some(changes) = directives.cart {
        let request = CartWriteRequest { token: token.as_ref(), changes: changes.as_slice(), idempotency_key: None };
        let write = carts::write(&app.redis, &request, *now, &app.config).await?;
        app.traffic.count_cart_additions(&write.cart, &changes.added());
        if let Some(session) = write.session.filter(|_| write.created) {
            cookie = Some(app.keyring.set(&session.token)?);
        }
    }
    Ok(cookie)
}

/// Ends the visitor's session; [`LogoutScope::All`] first ends every other session of `user`. If the session could not
/// be read before the request, Redis is asked again, because no session may be missed.
async fn log_out(visit: &Visit, scope: LogoutScope, user: Option<&UserId>) -> Result<(), Error> {
    let Visit { app, now, .. } = visit;
    let config = &app.config.session;
    let Some(token) = &visit.token else { return Ok(()) };
    if scope == LogoutScope::All {
        let user = match user {
            Some(user) => Some(user.clone()),
            None => sessions::check(&app.redis, token, *now, config).await?.and_then(|session| session.user),
        };
        if let Some(user) = user {
            sessions::log_out_user(&app.redis, &user, *now, config).await?;
        }
    }
    sessions::log_out(&app.redis, token, *now, config).await
}
