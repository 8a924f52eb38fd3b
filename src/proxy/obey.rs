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
    ports::{answer::BackgroundTask, error::Error, random},
    schema::{hex, ids::UserId, redis::Redis},
    sessions::{self, LoginRequest, cookie, device::DeviceLabel},
};

/// Redis deadline of background work. No visitor waits, and the origin does not repeat its directives.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Settles an order: the cart loses the bought lines, the insights learn. A failure does not undo the order: it is
/// logged, and the returned background task tries once more.
pub(super) async fn settle(visit: &Visit, order: Order, user: Option<&UserId>) -> BackgroundTask {
    let (app, token, now, user) = (visit.app.clone(), visit.token.clone(), visit.now, user.cloned());
    let customer = Customer { token: token.as_ref(), user: user.as_ref() };
    let settled = order.settle(&app.redis, customer, now, &app.config.session).await;
    Box::pin(async move {
        let redis = app.redis.with_deadline(RETRY_TIMEOUT);
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

/// The result of [`obey`].
pub(super) struct Obeyed {
    /// The new cookie. A login that succeeded has one even if a later directive failed.
    pub cookie: Option<HeaderValue>,
    /// The error of the first directive that failed. No later one was executed.
    pub result: Result<(), Error>,
}

/// Checks the rate limit of the origin's cart changes.
///
/// # Errors
/// [`Error::TooOften`]: no directive may be executed.
pub(super) async fn check_limit(visit: &Visit, directives: &OriginDirectives) -> Result<(), Error> {
    match &directives.cart {
        Some(_) => visit.app.limits.writes.check("cart", visit.network).await,
        None => Ok(()),
    }
}

/// Executes login or logout, then the changes of the resulting session's cart. With `idempotency_key`, the changes of
/// one session's cart take effect once.
pub(super) async fn obey(
    visit: &Visit,
    directives: OriginDirectives,
    user: Option<&UserId>,
    request: &HeaderMap,
    idempotency_key: Option<&str>,
) -> Obeyed {
    let Visit { app, now, .. } = visit;
    let (mut token, mut cookie) = (visit.token.clone(), None);
    let directives_executed = async {
        if let Some(user) = directives.user {
            let label = DeviceLabel::of(request);
            let login =
                LoginRequest { user: &user, old_token: token.as_ref(), label: label.as_ref(), idempotency_key: None };
            let new = sessions::log_in_with(&app.redis, &login, *now, &app.config.session).await?;
            cookie = Some(app.keyring.set(&new)?);
            token = Some(new);
        } else if let Some(scope) = directives.logout {
            log_out(&app.redis, visit, &scope, user).await?;
            if scope.ends_own() {
                cookie = Some(cookie::clear());
                token = None;
            }
        }
        if let Some(changes) = directives.cart {
            let request = CartWriteRequest { token: token.as_ref(), changes: changes.as_slice(), idempotency_key };
            let write = carts::write(&app.redis, &request, *now, &app.config).await?;
            app.traffic.count_cart_write(&write);
            if let Some(session) = write.session.filter(|_| write.created) {
                cookie = Some(app.keyring.set(&session.token)?);
            }
        }
        Ok(())
    };
    let result = directives_executed.await;
    Obeyed { cookie, result }
}

/// As [`obey`], for the other directives of a response with an order. The order stands, so the visitor gets the
/// response even if Redis fails or refuses a directive: an error would say that the order was refused. The failure is
/// logged. The returned background task tries a logout or the cart changes once more.
pub(super) async fn obey_beside_order(
    visit: &Visit,
    directives: OriginDirectives,
    user: Option<&UserId>,
    request: &HeaderMap,
) -> (Option<HeaderValue>, Option<BackgroundTask>) {
    // No client can send this key, because an idempotency key holds no space.
    let key = random::bytes::<16>().ok().map(|bytes| format!("order {}", hex(&bytes)));
    let again = directives.clone();
    let Obeyed { cookie, result } = obey(visit, directives, user, request, key.as_deref()).await;
    let Err(error) = result else { return (cookie, None) };
    log::error!("the response to an order was sent, but not all of its other directives were executed: {error}");
    let cookie = cookie.or_else(|| {
        again.logout.as_ref().filter(|scope| again.user.is_none() && scope.ends_own()).map(|_| cookie::clear())
    });
    let is_unknown = matches!(error, Error::Redis(_));
    let (visit, user) = (visit.clone(), user.cloned());
    let retry = async move { retry(&visit, again, user.as_ref(), key.as_deref()).await };
    (cookie, is_unknown.then(|| -> BackgroundTask { Box::pin(retry) }))
}

/// Tries once more to end all sessions of a named user. The visitor gets an error, but cannot repeat the request: the
/// link of a password's reset works once.
pub(super) fn log_out_again(visit: &Visit, user: UserId) -> BackgroundTask {
    let (app, now) = (visit.app.clone(), visit.now);
    Box::pin(async move {
        let redis = app.redis.with_deadline(RETRY_TIMEOUT);
        if let Err(error) = sessions::log_out_user(&redis, &user, now, &app.config.session).await {
            log::error!("the sessions of a named user (Edge-Logout) may live on: {error}");
        }
    })
}

/// Tries a logout once more, or the changes of an existing session's cart. Nothing else can follow the response: a new
/// session would need a cookie.
async fn retry(visit: &Visit, directives: OriginDirectives, user: Option<&UserId>, key: Option<&str>) {
    let (app, now) = (&visit.app, visit.now);
    let redis = app.redis.with_deadline(RETRY_TIMEOUT);
    let outcome = match directives {
        OriginDirectives { user: Some(_), .. } => return,
        OriginDirectives { logout: Some(scope), .. } => log_out(&redis, visit, &scope, user).await,
        OriginDirectives { cart: Some(changes), .. } if visit.token.is_some() => {
            let changes = changes.as_slice();
            let request = CartWriteRequest { token: visit.token.as_ref(), changes, idempotency_key: key };
            carts::write(&redis, &request, now, &app.config).await.map(drop)
        }
        _ => return,
    };
    if let Err(error) = outcome {
        log::warn!("a directive beside an order was not executed: {error}");
    }
}

/// Ends the visitor's session; [`LogoutScope::All`] first ends every other session of `user`. If the session could not
/// be read before the request, Redis is asked again, because no session may be missed. [`LogoutScope::User`] ends the
/// sessions of the named user only.
async fn log_out(redis: &Redis, visit: &Visit, scope: &LogoutScope, user: Option<&UserId>) -> Result<(), Error> {
    let Visit { app, now, .. } = visit;
    let config = &app.config.session;
    if let LogoutScope::User(named) = scope {
        return sessions::log_out_user(redis, named, *now, config).await.map(drop);
    }
    let Some(token) = &visit.token else { return Ok(()) };
    if *scope == LogoutScope::All {
        let user = match user {
            Some(user) => Some(user.clone()),
            None => sessions::check(redis, token, *now, config).await?.and_then(|session| session.user),
        };
        if let Some(user) = user {
            sessions::log_out_user(redis, &user, *now, config).await?;
        }
    }
    sessions::log_out(redis, token, *now, config).await
}
