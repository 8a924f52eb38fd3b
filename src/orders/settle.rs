//! Settles an order: the cart, the reservation, and the viewed items that feed the insights.

use super::{
    Order, OrderedReservation,
    flash_sale::{self, ReservationId},
};
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{ItemId, RowId, UserId},
        keys::{Keys, ORDER_TTL},
        redis::Redis,
        scripts::BUY,
        shard::Shard,
        token::Token,
    },
    sessions,
};
use upstash_rest::{Command, FromReply};

/// The customer of an order, as far as the report names one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Customer<'a> {
    /// The session whose cart contains the bought items; None: no cart changes.
    pub token: Option<&'a Token>,
    /// The user that the reservation belongs to; None: the user of the session.
    pub user: Option<&'a UserId>,
}

impl Order {
    /// Removes the bought items from the customer's cart and confirms the reservation, so that the visitor's next page
    /// shows both. Returns the items that the session viewed last, newest first, for the insights.
    ///
    /// One pipeline, because its commands are independent; no request if there is neither a session nor a reservation.
    /// Scripts change the cart and the sale, because these writes depend on the cart's content and the sale's state.
    /// All commands are idempotent. Two cases take one request more: a reservation without a user, and in the sharded
    /// layout each of session and reservation.
    ///
    /// # Errors
    /// [`Error::Redis`]. Completed commands stay in effect, and the same call again executes the others.
    pub async fn settle(
        &self,
        redis: &Redis,
        customer: Customer<'_>,
        now: Timestamp,
        config: &SessionConfig,
    ) -> Result<Vec<ItemId>, Error> {
        let Customer { token, user } = customer;
        let mut commands = Vec::new();
        if let Some(token) = token {
            commands.push(sessions::viewed_items_command(redis.keys(), token));
            if self.is_settled_in(redis.keys().shard_of(token), redis).await? {
                commands.push(self.remove_from_cart_command(redis.keys(), token));
            }
        }
        if let Some(OrderedReservation { sale, id }) = &self.reservation {
            let user = match (user, token) {
                (None, Some(token)) => {
                    sessions::check(redis, token, now, config).await?.and_then(|session| session.user)
                }
                _ => user.cloned(),
            };
            let is_of_this_sale = self.is_of_this_sale(redis, sale, id).await?;
            match user {
                Some(_) if !is_of_this_sale => {}
                Some(user) => commands.push(flash_sale::confirm_command(redis.keys(), sale, id, &user, &self.id)),
                None => log::error!(
                    "an order names a reservation but no user, and the reservation was not confirmed: report the order \
                     with its user"
                ),
            }
        }
        let replies = redis.pipeline(&commands).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let viewed = replies.into_iter().next().filter(|_| token.is_some());
        let viewed = viewed.map(Vec::<String>::from_reply).transpose()?.unwrap_or_default();
        Ok(sessions::parse_viewed_items(&viewed))
    }

    /// Returns whether the order is removed from a cart in `shard`. Each shard records the orders that it has removed
    /// from its carts. If two reports of one order name sessions in two shards, the shard of the first report removes
    /// it: the order's own key records that shard.
    ///
    async fn is_settled_in(&self, shard: Shard, redis: &Redis) -> Result<bool, Error> {
        self.is_first_report(redis, "shard", &shard.number().to_string()).await
    }

    /// Returns whether the order belongs to the reservation's window of `sale`: the window of its first report. The
    /// storefront may repeat an old order while the user holds a piece of the next window, and the order must not take
    /// that piece. In the book's layout the script that confirms the reservation checks it.
    async fn is_of_this_sale(&self, redis: &Redis, sale: &RowId, id: &ReservationId) -> Result<bool, Error> {
        self.is_first_report(redis, &redis.keys().flash_sale(sale), id.window()).await
    }

    /// Records `value` under `field` of the order's own key, unless an earlier report has recorded another one. Returns
    /// whether the recorded value is `value`.
    ///
    /// One pipeline, because HSETNX alone decides. No request in the book's layout: always true.
    async fn is_first_report(&self, redis: &Redis, field: &str, value: &str) -> Result<bool, Error> {
        if !redis.keys().is_sharded() {
            return Ok(true);
        }
        let key = redis.keys().order(&self.id);
        let set = Command::write("HSETNX").arg(&key).arg(field).arg(value).repeatable();
        let get = Command::read("HGET").arg(&key).arg(field);
        let expire = Command::write("EXPIRE").arg(&key).num(ORDER_TTL).repeatable();
        let ((), first, ()): ((), String, ()) = redis.all(&[set, get, expire]).await?;
        Ok(first == value)
    }

    /// Removes the bought quantities from the cart. It does not check the session: a session that has ended has no
    /// cart.
    fn remove_from_cart_command(&self, keys: Keys, token: &Token) -> Command {
        let shard = keys.shard_of(token);
        let command = Command::script(&BUY, [shard.cart(token), shard.cart_order(&self.id)]).num(ORDER_TTL);
        let lines = self.lines.iter();
        lines.fold(command, |command, line| command.arg(line.item.as_str()).num(line.quantity)).repeatable()
    }
}
