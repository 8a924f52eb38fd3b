//! Settles an order: the cart, the reservation, and the viewed items that feed the insights.

use super::{Order, OrderedReservation, flash_sale};
use crate::{
    config::SessionConfig,
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{ItemId, UserId},
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

/// The effects of a report.
struct Effects {
    /// The order's items leave the cart.
    cart: bool,
    /// The order counts in the sale.
    sale: bool,
}

impl Order {
    /// Removes the bought items from the customer's cart and confirms the reservation, so that the visitor's next page
    /// shows both. Returns the items that the session viewed last, newest first, for the insights.
    ///
    /// One pipeline, because its commands are independent; no request if there is neither a session nor a reservation.
    /// Scripts change the cart and the sale, because these writes depend on the cart's content and the sale's state.
    /// All commands are idempotent. Two cases take one request more: a reservation without a user, and a session or a
    /// reservation in the sharded layout.
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
        let effects = self.effects(redis, token).await?;
        let mut commands = Vec::new();
        if let Some(token) = token {
            commands.push(sessions::viewed_items_command(redis.keys(), token));
            if effects.cart {
                commands.push(self.remove_from_cart_command(redis.keys(), token));
            }
        }
        if let Some(OrderedReservation { sale, id }) = &self.reservation {
            let user = match (user, token) {
                (None, Some(token)) => {
                    // A read region may not know a new session.
                    redis.catch_up().await?;
                    sessions::check(redis, token, now, config).await?.and_then(|session| session.user)
                }
                _ => user.cloned(),
            };
            match user {
                Some(_) if !effects.sale => {}
                Some(user) => commands.push(flash_sale::confirm_command(redis.keys(), sale, id, &user, &self.id)),
                None => log::error!(
                    "an order names a reservation but no user, and the reservation was not confirmed: report the order \
                     with its user"
                ),
            }
        }
        let mut replies = redis.pipeline(&commands).await?.into_iter();
        let viewed = token.and_then(|_| replies.next()).map(sessions::empty_if_damaged).transpose()?;
        replies.collect::<Result<Vec<_>, _>>()?;
        let viewed = viewed.map(Vec::<String>::from_reply).transpose()?.unwrap_or_default();
        Ok(sessions::parse_viewed_items(&viewed))
    }

    /// Says which effects this report has in the sharded layout, where no script reaches both the order's own key and the
    /// keys of a cart or a sale. The order's own key keeps two facts of the first report:
    ///
    /// - The shard of the cart. Each shard records the orders that it has removed from its carts. If two reports of one
    ///   order name sessions in two shards, the shard of the first report removes it.
    /// - The window of the sale. The storefront may repeat an old order while the user holds a piece of the next window,
    ///   and the order must not take that piece.
    ///
    /// In the book's layout, the first report of a session without a shard sets neither fact. It sets the field `cart` of
    /// the book's `order:{order}`, and an order with this field leaves no cart of a shard.
    ///
    /// One pipeline, because each HSETNX alone decides. No request for a session without a shard in the book's layout: the
    /// scripts check both.
    async fn effects(&self, redis: &Redis, token: Option<&Token>) -> Result<Effects, Error> {
        let keys = redis.keys();
        let own = token.map_or(Shard::BOOK, |token| keys.shard_of(token));
        let shard = token.map(|_| ("shard".to_owned(), own.name()));
        let reserved = self.reservation.as_ref();
        let window = reserved.map(|reserved| (keys.flash_sale(&reserved.sale), reserved.id.window().to_owned()));
        let is_books_layout = !keys.is_sharded() && own == Shard::BOOK;
        if is_books_layout || (shard.is_none() && window.is_none()) {
            return Ok(Effects { cart: true, sale: true });
        }
        let key = keys.order(&self.id);
        let set =
            |(field, value): &(String, String)| Command::write("HSETNX").arg(&key).arg(field).arg(value).repeatable();
        let get = |fact: &Option<(String, String)>| {
            Command::read("HGET").arg(&key).arg(fact.as_ref().map_or("", |(field, _)| field))
        };
        let expire = Command::write("EXPIRE").arg(&key).num(ORDER_TTL).repeatable();
        let mut commands: Vec<_> = shard.iter().chain(&window).map(set).collect();
        commands.extend([expire, get(&shard), get(&window)]);
        if own != Shard::BOOK {
            commands.push(Command::read("HGET").arg(Shard::BOOK.cart_order(&self.id)).arg("cart"));
        }
        let mut replies =
            redis.pipeline(&commands).await?.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().rev();
        let mut is_first = |fact: Option<(String, String)>| -> Result<bool, Error> {
            let first = Option::<String>::from_reply(replies.next().ok_or(upstash_rest::Error::UnexpectedType)?)?;
            Ok(first == fact.map(|(_, value)| value))
        };
        let left_no_book_cart = own == Shard::BOOK || is_first(None)?;
        Ok(Effects { sale: is_first(window)?, cart: is_first(shard)? && left_no_book_cart })
    }

    /// Removes the bought quantities from the cart. It does not check the session: a session that has ended has no
    /// cart.
    fn remove_from_cart_command(&self, keys: Keys, token: &Token) -> Command {
        let shard = keys.shard_of(token);
        let command = Command::script(&BUY, [shard.cart(token), shard.cart_order(&self.id)]).num(ORDER_TTL);
        let lines = self.lines.iter();
        lines.fold(command, |command, line| command.arg(line.item.as_str()).num(line.quantity)).repeatable().synced()
    }
}
