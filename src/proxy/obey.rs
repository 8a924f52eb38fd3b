//! Obeys the origin's directives: order, login, logout, cart change.

use http::{HeaderMap, HeaderValue};

use super::{
    directives::{LogoutScope, OriginDirectives},
    visit::Visit,
};
use crate::{
    carts::{self, CartChanges, CartWriteOutcome, CartWriteRequest},
    metrics::traffic::Metric,
    orders::{Customer, Order, insights},
    ports::{answer::BackgroundTask, error::Error, random},
    schema::{
        hex,
        ids::{ItemId, UserId},
        redis::Redis,
        token::Token,
    },
    sessions::{self, LoginRequest, cookie, device::DeviceLabel},
};

/// The result of [`obey`].
pub(super) struct Obeyed {
    /// The new cookie. A login that succeeded has one even if a later directive failed.
    pub cookie: Option<HeaderValue>,
    /// The token after login or logout.
    token: Option<Token>,
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

/// Executes login or logout, then the changes of the resulting session's cart. Removes the executed ones from
/// `directives`. With `idempotency_key`, the changes of one session's cart take effect once.
pub(super) async fn obey(
    visit: &Visit,
    directives: &mut OriginDirectives,
    user: Option<&UserId>,
    request: &HeaderMap,
    idempotency_key: Option<&str>,
) -> Obeyed {
    let Visit { app, now, .. } = visit;
    let (mut token, mut cookie) = (visit.token.clone(), None);
    // The calls are boxed, because few responses have directives: the futures of other requests stay small.
    let directives_executed = async {
        if let Some(user) = &directives.user {
            let label = DeviceLabel::of(request);
            let login = LoginRequest { user, old_token: token.as_ref(), label: label.as_ref(), idempotency_key: None };
            let new = Box::pin(sessions::log_in(&app.redis, &login, *now, &app.config.session)).await?;
            cookie = Some(app.keyring.set(&new)?);
            token = Some(new);
        } else if let Some(scope) = &directives.logout {
            Box::pin(log_out(&app.redis, visit, scope, user)).await?;
            if scope.ends_own() {
                cookie = Some(cookie::clear());
                token = None;
            }
        }
        (directives.user, directives.logout) = (None, None);
        if let Some(changes) = &directives.cart {
            let write = Box::pin(write_cart(&app.redis, visit, token.as_ref(), changes, idempotency_key)).await?;
            if let Some(session) = write.session.filter(|_| write.created) {
                cookie = Some(app.keyring.set(&session.token)?);
            }
            directives.cart = None;
        }
        Ok(())
    };
    let result = directives_executed.await;
    Obeyed { cookie, token, result }
}

/// Settles an order: the cart loses the bought lines, the insights learn. Then executes the other directives of the
/// response. The shop has accepted the order. So the visitor gets the shop's response, even if Redis fails or refuses a
/// directive. Failures are logged.
///
/// If Redis did not answer, the returned background task tries again: first the order, in the cart of the resulting session,
/// then the logout or the cart changes. Until then, pages show the bought lines.
pub(super) async fn obey_with_order(
    visit: &Visit,
    order: Order,
    mut directives: OriginDirectives,
    user: Option<&UserId>,
    request: &HeaderMap,
) -> (Option<HeaderValue>, BackgroundTask) {
    if visit.may_lack_session_cookie {
        log::warn!(
            "the items of an order may stay in the cart: another site sent the request, so it lacks the visitor's session \
             cookie; report such an order by POST /orders"
        );
    }
    let customer = user.or(directives.user.as_ref()).cloned();
    let mut settled = settle(&visit.app.redis, visit, &order, customer.as_ref()).await;
    if settled.is_err() && (directives.user.is_some() || directives.logout.is_some()) {
        // A logout, or a login of another user, would record the bought cart as abandoned.
        settled = settle(&visit.app.redis, visit, &order, customer.as_ref()).await;
    }
    // No client can send this key, because an idempotency key holds no space.
    let key = random::bytes::<16>().ok().map(|bytes| format!("order {}", hex(&bytes)));
    let Obeyed { mut cookie, token, result } = obey(visit, &mut directives, user, request, key.as_deref()).await;
    if let Err(error) = &result {
        log::error!("the response to an order was sent, but not all of its other directives were executed: {error}");
        let ends_own = directives.user.is_none() && directives.logout.as_ref().is_some_and(LogoutScope::ends_own);
        cookie = cookie.or_else(|| ends_own.then(cookie::clear));
    }
    if let Err(error) = &settled {
        log::error!("an order was not settled before the response, trying again: {error}");
    }
    let is_unknown = matches!(result, Err(Error::Redis(_)));
    let (visit, user) = (Visit { token, ..visit.clone() }, user.cloned());
    let task = async move {
        let app = &visit.app;
        let must_retry = settled.is_err() || is_unknown;
        let redis = if must_retry { app.redis.for_retry().await } else { app.redis.in_background() };
        if settled.is_err() {
            settled = settle(&redis, &visit, &order, customer.as_ref()).await;
        }
        if is_unknown {
            retry(&redis, &visit, &directives, user.as_ref(), key.as_deref()).await;
        }
        let is_new = match settled {
            Ok(viewed) => insights::learn(&redis, &order, &viewed, visit.now, &app.config.insights).await,
            Err(error) => Err(error),
        };
        match is_new {
            Ok(true) => app.traffic.count(Metric::Order),
            Ok(false) => {}
            Err(error) => log::warn!("an order was not settled: {error}"),
        }
    };
    (cookie, Box::pin(task))
}

/// Settles an order of the visitor's session.
async fn settle(redis: &Redis, visit: &Visit, order: &Order, user: Option<&UserId>) -> Result<Vec<ItemId>, Error> {
    let customer = Customer { token: visit.token.as_ref(), user };
    order.settle(redis, customer, visit.now, &visit.app.config.session).await
}

/// Changes the cart of the session of `token`, and counts the change.
async fn write_cart(
    redis: &Redis,
    visit: &Visit,
    token: Option<&Token>,
    changes: &CartChanges,
    idempotency_key: Option<&str>,
) -> Result<CartWriteOutcome, Error> {
    let request = CartWriteRequest { token, changes: changes.as_slice(), idempotency_key };
    let write = carts::write(redis, &request, visit.now, &visit.app.config).await?;
    visit.app.traffic.count_cart_write(&write);
    Ok(write)
}

/// Tries once more to end all sessions of a named user. The visitor gets an error, but cannot repeat the request: the
/// link of a password's reset works once.
pub(super) fn log_out_again(visit: &Visit, user: UserId) -> BackgroundTask {
    let (app, now) = (visit.app.clone(), visit.now);
    Box::pin(async move {
        let redis = app.redis.for_retry().await;
        if let Err(error) = sessions::log_out_user(&redis, &user, now, &app.config.session).await {
            log::error!("the sessions of a named user (Edge-Logout) may live on: {error}");
        }
    })
}

/// Tries the directives that were not executed once more. Only a logout or a change of an existing cart can run after the
/// response. Any other directive would need a new cookie.
async fn retry(
    redis: &Redis,
    visit: &Visit,
    directives: &OriginDirectives,
    user: Option<&UserId>,
    idempotency_key: Option<&str>,
) {
    let outcome = match directives {
        OriginDirectives { user: Some(_), .. } => return,
        OriginDirectives { logout: Some(scope), .. } => log_out(redis, visit, scope, user).await,
        OriginDirectives { cart: Some(changes), .. } if visit.token.is_some() => {
            write_cart(redis, visit, visit.token.as_ref(), changes, idempotency_key).await.map(drop)
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
    let Some(token) = &visit.token else {
        if visit.may_lack_session_cookie {
            log::warn!(
                "Edge-Logout ended no session: another site sent the request, so it lacks the visitor's session cookie"
            );
        }
        return Ok(());
    };
    if *scope == LogoutScope::All {
        let user = match user {
            Some(user) => Some(user.clone()),
            None => sessions::check_latest(redis, token, *now, config).await?.and_then(|session| session.user),
        };
        if let Some(user) = user {
            sessions::log_out_user(redis, &user, *now, config).await?;
        }
    }
    sessions::log_out(redis, token, *now, config).await
}
