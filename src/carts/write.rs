//! Changes a cart.

use std::slice;

use upstash_rest::{Command, Pairs};

use super::{Cart, CartChange, Quantity};
use crate::{
    config::Config,
    ports::{error::Error, time::Timestamp},
    schema::{keys::IDEMPOTENCY_TTL, redis::Redis, scripts::CART_WRITE, token::Token},
    sessions::{self, Session, TOUCH_EVERY},
};

/// A request to change the cart of a session.
#[derive(Debug, Clone, Copy)]
pub struct CartWriteRequest<'a> {
    /// The visitor's token. If its session is not live, a guest's session starts when an item is put into the cart.
    pub token: Option<&'a Token>,
    /// Executed in their order, all or none.
    pub changes: &'a [CartChange],
    /// With a key, a live session's request takes effect once per day. A repetition changes nothing and returns the
    /// current cart.
    pub idempotency_key: Option<&'a str>,
}

/// The result of a write. The default is that of a write without a session and with nothing to put into a cart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CartWriteOutcome {
    /// The session of the cart. `None` if there was no live session and nothing to put into a cart.
    pub session: Option<Session>,
    /// The write started the session of a guest, so the response must set its cookie.
    pub created: bool,
    /// The cart after the write.
    pub cart: Cart,
    /// The additions to the cart: each [`CartChange::Add`], and in an empty cart also each [`CartChange::Set`] of an item.
    /// A repetition adds nothing.
    pub additions: usize,
    /// The write put the first item into an empty cart.
    pub starts_cart: bool,
}

/// Changes the cart of the session of `token`. As [`write()`], without an idempotency key.
///
/// # Errors
/// As [`write()`].
pub async fn change(
    redis: &Redis,
    token: Option<&Token>,
    change: &CartChange,
    now: Timestamp,
    config: &Config,
) -> Result<CartWriteOutcome, Error> {
    write(redis, &CartWriteRequest { token, changes: slice::from_ref(change), idempotency_key: None }, now, config)
        .await
}

/// Changes a cart: all changes in one step, or none. Removing an item that is not in the cart is not an error.
///
/// A script, because the write depends on the session and on the content of the cart. It is not repeated after a lost
/// reply: a second execution would add twice, or undo what another request wrote after the first one. A guest's first
/// write that only sets quantities is repeated, because nobody else knows its token.
///
/// A session of another layout than `SHARDS` stays where it is. If it has ended, a second request starts the guest's
/// session in the layout of new sessions.
///
/// # Errors
/// Nothing is changed, except that [`Error::Redis`] may mean that the reply was lost.
/// - [`Error::Invalid`] for an [`CartChange::Add`] of 0.
/// - [`Error::CartFull`] if an item would be one more than
///   [`CartConfig::max_lines`](crate::config::CartConfig::max_lines).
/// - [`Error::KeyReused`] if the same session used the idempotency key for another change.
/// - [`Error::Conflict`] if a login replaced the session, and the new session was active in the last ten seconds: the
///   visitor's next request carries the new token.
/// - [`Error::Redis`].
pub async fn write(
    redis: &Redis,
    request: &CartWriteRequest<'_>,
    now: Timestamp,
    config: &Config,
) -> Result<CartWriteOutcome, Error> {
    let keys = redis.keys();
    // A visitor without a token gets the same token twice: its session is not live, because it was drawn just now.
    let new_guest = || keys.draw(now).map(|token| (token.clone(), Some(token)));
    let mut tokens = match request.token {
        Some(token) if keys.is_of_other_layout(token) => (token.clone(), None),
        // Both are in one shard, so that one script can reach both.
        Some(token) => (token.clone(), Some(keys.draw_beside(token, now)?)),
        None => new_guest()?,
    };
    loop {
        let outcome = write_once(redis, request, &tokens, now, config).await?;
        if outcome.session.is_some() || tokens.1.is_some() {
            return Ok(outcome);
        }
        tokens = new_guest()?;
    }
}

/// Runs the script for the session of the first token. If that is not live, a guest's session starts under the second
/// token, if any, which is in the same shard.
async fn write_once(
    redis: &Redis,
    request: &CartWriteRequest<'_>,
    (token, guest_token): &(Token, Option<Token>),
    now: Timestamp,
    config: &Config,
) -> Result<CartWriteOutcome, Error> {
    let (guest_token, shard) = (guest_token.as_ref(), redis.keys().shard_of(token));
    let is_drawn = guest_token == Some(token);
    let mut keys = vec![shard.login(), shard.recent(), shard.cart(token), shard.cart(guest_token.unwrap_or(token))];
    // No login has replaced a token that was just drawn, and no request has used it.
    if !is_drawn {
        let names = [sessions::LOGIN_RETRY_KEY].into_iter().chain(request.idempotency_key);
        keys.extend(names.map(|name| shard.idempotency(token.as_str(), name)));
    }
    let mut command = Command::script(&CART_WRITE, keys)
        .args([token.as_str(), guest_token.map_or("", Token::as_str)])
        .num(now)
        .num(now - config.session.idle)
        .num(config.cart.max_lines)
        .num(config.cart.max_quantity)
        .num(IDEMPOTENCY_TTL)
        .num(TOUCH_EVERY.as_secs())
        .arg(sessions::start_if_young(token, now, &config.session));
    for change in request.changes {
        let (operation, item, quantity) = script_arguments(change)?;
        command = command.args([operation, item]).num(quantity.get());
    }
    let adds = request.changes.iter().any(|change| matches!(change, CartChange::Add(..)));
    let is_repeatable = request.token.is_none() && !adds;
    let command = if is_repeatable { command.repeatable() } else { command }.synced();
    let reply: Option<(String, String, Pairs<String, String>)> = redis.run(command).await?;
    let Some((outcome, login_value, cart)) = reply else {
        return Ok(CartWriteOutcome::default());
    };
    let created = match outcome.as_str() {
        // If the visitor had no token, an earlier execution started this session and its reply was lost.
        "kept" | "started" | "repeated" => is_drawn,
        "created" => true,
        "full" => return Err(Error::CartFull { limit: config.cart.max_lines }),
        "replaced" => return Err(Error::Conflict("you have just signed in: try again")),
        _ => return Err(Error::KeyReused),
    };
    let (cart, was_empty) = (Cart::from_pairs(cart), created || outcome == "started");
    let is_addition = |change: &&CartChange| match change {
        CartChange::Add(..) => outcome != "repeated",
        CartChange::Set(_, quantity) => was_empty && *quantity != Quantity::ZERO,
        CartChange::Clear => false,
    };
    let token = guest_token.filter(|_| created).unwrap_or(token);
    Ok(CartWriteOutcome {
        session: Session::from_login_value(token, &login_value),
        created,
        additions: request.changes.iter().filter(is_addition).count(),
        starts_cart: was_empty && !cart.lines.is_empty(),
        cart,
    })
}

/// The operation, item and quantity of a change, as the script reads them.
fn script_arguments(change: &CartChange) -> Result<(&'static str, &str, Quantity), Error> {
    match change {
        CartChange::Add(_, Quantity::ZERO) => Err(Error::invalid("quantity", "must be at least 1")),
        CartChange::Add(item, quantity) => Ok(("add", item.as_str(), *quantity)),
        CartChange::Set(item, quantity) => Ok(("set", item.as_str(), *quantity)),
        CartChange::Clear => Ok(("clear", "", Quantity::ZERO)),
    }
}
