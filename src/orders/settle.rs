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
use upstash_rest::{Command, FromReply, Reply, next_reply};

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
    /// The session from whose cart the order's items leave. None: they leave no cart.
    cart: Option<Token>,
    /// The order counts in the sale.
    sale: bool,
}

impl Order {
    /// Removes the bought items from the customer's cart and confirms the reservation, so that the visitor's next page
    /// shows both. Returns the items that the session viewed last, newest first, for the insights.
    ///
    /// One pipeline, because its commands are independent; no request if there is neither a session nor a reservation.
    /// Scripts change the cart and the sale, because these writes depend on the cart's content and the sale's state.
    /// All commands are idempotent. Three cases take one request more: a reservation without a user, a session or a
    /// reservation in the sharded layout, and each login that has moved the cart to a new session in the last ten
    /// minutes. A login can move the cart while the customer pays in another tab.
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
        let Effects { mut cart, sale } = self.effects(redis, customer.token).await?;
        let mut session = customer.token.cloned();
        loop {
            let mut commands = Vec::new();
            commands.extend(session.as_ref().map(|token| sessions::viewed_items_command(redis.keys(), token)));
            commands.extend(cart.as_ref().map(|token| self.remove_from_cart_command(redis.keys(), token)));
            let mut lacks_user = false;
            if let Some(OrderedReservation { sale: row, id }) = &self.reservation {
                let user = user_of(redis, Customer { token: session.as_ref(), ..customer }, now, config).await?;
                lacks_user = user.is_none();
                let user = user.filter(|_| sale);
                commands.extend(user.map(|user| flash_sale::confirm_command(redis.keys(), row, id, &user, &self.id)));
            }
            let mut replies = redis.pipeline(&commands).await?.into_iter();
            let viewed = session.as_ref().and_then(|_| replies.next()).map(sessions::empty_if_damaged).transpose()?;
            let removed = cart.as_ref().and_then(|_| replies.next()).transpose()?;
            replies.collect::<Result<Vec<_>, _>>()?;
            // A number, or the token of the session that has the cart by now.
            let follower = removed.filter(|reply| !matches!(reply, Reply::Integer(_)));
            let Some(follower) = follower.map(String::from_reply).transpose()? else {
                if lacks_user {
                    log::error!(
                        "an order names a reservation but no user, and the reservation was not confirmed: report the \
                         order with its user"
                    );
                }
                let viewed = viewed.map(Vec::<String>::from_reply).transpose()?.unwrap_or_default();
                return Ok(sessions::parse_viewed_items(&viewed));
            };
            let follower = Some(Token::parse(&follower).ok_or(upstash_rest::Error::UnexpectedType)?);
            // A repeated report may name a session other than the first report's. The cart stays with the first report's
            // session.
            if session == cart {
                session.clone_from(&follower);
            }
            cart = follower;
        }
    }

    /// Says which effects this report has in the sharded layout, where no script reaches both the order's own key and the
    /// keys of a cart or a sale. The order's own key keeps two facts of the first report:
    ///
    /// - The session. Each shard records the orders that it has removed from its carts. If two reports of one order name
    ///   two sessions, the items leave the cart of the first one: also if its report stopped after this pipeline. Older
    ///   isolates record the shard of the session only.
    /// - The window of the sale. The storefront may repeat an old order while the user holds a piece of the next window,
    ///   and the order must not take that piece.
    ///
    /// In the book's layout, the field `cart` of `order:{order}` replaces both facts for a session without a shard. If it is
    /// set, no shard's cart changes.
    ///
    /// One pipeline, because each HSETNX alone decides. No request for a session without a shard in the book's layout: the
    /// scripts check both.
    async fn effects(&self, redis: &Redis, token: Option<&Token>) -> Result<Effects, Error> {
        let keys = redis.keys();
        let own = token.map_or(Shard::BOOK, |token| keys.shard_of(token));
        let session = token.map(|token| ("shard".to_owned(), token.as_str().to_owned()));
        let reserved = self.reservation.as_ref();
        let window = reserved.map(|reserved| (keys.flash_sale(&reserved.sale), reserved.id.window().to_owned()));
        let is_books_layout = !keys.is_sharded() && own == Shard::BOOK;
        if is_books_layout || (session.is_none() && window.is_none()) {
            return Ok(Effects { cart: token.cloned(), sale: true });
        }
        let key = keys.order(&self.id);
        let set =
            |(field, value): &(String, String)| Command::write("HSETNX").arg(&key).arg(field).arg(value).repeatable();
        let get = |fact: &Option<(String, String)>| {
            Command::read("HGET").arg(&key).arg(fact.as_ref().map_or("", |(field, _)| field))
        };
        let expire = Command::write("EXPIRE").arg(&key).num(ORDER_TTL).repeatable();
        let mut commands: Vec<_> = session.iter().chain(&window).map(set).collect();
        let left_book_cart = Command::read("HGET").arg(Shard::BOOK.cart_order(&self.id)).arg("cart");
        commands.extend([expire, get(&session), get(&window), left_book_cart]);
        let replies = redis.pipeline(&commands).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut replies = replies.into_iter().rev().map(Ok);
        let mut next = || next_reply::<Option<String>>(&mut replies);
        let left_book_cart = next()?.is_some();
        let sale = next()? == window.map(|(_, window)| window);
        let cart = next()?.and_then(|recorded| {
            // An older isolate recorded the shard only.
            Token::parse(&recorded).or_else(|| token.filter(|_| recorded == own.name()).cloned())
        });
        Ok(Effects { cart: cart.filter(|cart| !left_book_cart || keys.shard_of(cart) == Shard::BOOK), sale })
    }

    /// Removes the bought quantities from the cart, or nothing if they were not in the cart: then this report still decides for
    /// the order. It does not check the session: a session that has ended has no cart, and the reply names the session that a
    /// login has moved it to.
    fn remove_from_cart_command(&self, keys: Keys, token: &Token) -> Command {
        let shard = keys.shard_of(token);
        let replaced = shard.idempotency(token.as_str(), sessions::LOGIN_RETRY_KEY);
        let command = Command::script(&BUY, [shard.cart(token), shard.cart_order(&self.id), replaced]).num(ORDER_TTL);
        let lines = self.lines.iter().filter(|_| self.in_cart);
        lines.fold(command, |command, line| command.arg(line.item.as_str()).num(line.quantity)).repeatable().synced()
    }
}

/// The user that the reservation belongs to.
async fn user_of(
    redis: &Redis,
    customer: Customer<'_>,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<UserId>, Error> {
    let (None, Some(token)) = (customer.user, customer.token) else { return Ok(customer.user.cloned()) };
    Ok(sessions::check_latest(redis, token, now, config).await?.and_then(|session| session.user))
}
