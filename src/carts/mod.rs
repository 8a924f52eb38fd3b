//! A visitor's cart: quantity per item, in a hash under the session's token. A write is one script, which also starts a
//! guest's session where there is none: a visitor's first item is in the cart after one request.

pub mod abandoned;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::schema::scripts::CART_WRITE;
use crate::{
    config::{CartConfig, Config, SessionConfig},
    ports::{error::Error, sort, time::Timestamp},
    schema::{
        ids::ItemId,
        keys::{IDEMPOTENCY_TTL, Keys},
        token::Token,
    },
    sessions::{self, Session},
    upstash::{Command, Pairs, Redis},
};

/// What is in a cart, ordered by item. The same content is always the same sequence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cart {
    pub lines: Vec<CartLine>,
}

/// One item of a cart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CartLine {
    pub item: ItemId,
    /// At least 1.
    pub quantity: u32,
}

/// How many of an item: 0 up to what a cart may hold of one ([`CartConfig::max_quantity`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity(u32);

/// A change that somebody else than the visitor's script asks for: the origin, in its header `Edge-Cart`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CartChange {
    /// More of an item; never 0.
    Add(ItemId, Quantity),
    /// So many of an item; 0 removes it.
    Set(ItemId, Quantity),
    /// Nothing is in it any more.
    Clear,
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CartWrite {
    /// Whose cart it is. None if there was no session, and nothing to put into a cart that would need one.
    pub session: Option<Session>,
    /// The session is a new guest's: its cookie must be set.
    pub created: bool,
    /// The cart as it is now.
    pub cart: Cart,
}

impl Cart {
    /// How many pieces there are of all items together.
    #[must_use]
    pub fn quantity(&self) -> u64 {
        self.lines.iter().map(|line| u64::from(line.quantity)).sum()
    }

    /// `{"mug": 2}`: item → quantity, in the order of the lines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let lines = self.lines.iter().map(|line| (line.item.to_string(), line.quantity.into()));
        Value::Object(lines.collect::<Map<_, _>>())
    }

    /// Reads `item → quantity`. What other code of the book put there and is no line of ours is left out.
    pub(crate) fn from_pairs(Pairs(pairs): Pairs<String, String>) -> Self {
        let line = |(item, quantity): (String, String)| {
            let quantity = quantity.parse().ok().filter(|quantity| *quantity > 0)?;
            Some(CartLine { item: ItemId::parse(&item).ok()?, quantity })
        };
        let mut lines: Vec<_> = pairs.into_iter().filter_map(line).collect();
        sort::sort_by(&mut lines, |one, other| one.item.cmp(&other.item));
        Self { lines }
    }
}

impl Quantity {
    /// None of it.
    pub const ZERO: Self = Self(0);

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Reads a JSON number. As in the book a negative one means the same as 0.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is no whole number, or more than a cart may hold.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
    pub fn parse(json: &Value, config: &CartConfig) -> Result<Self, Error> {
        let whole = json.as_f64().filter(|number| number.fract() == 0.0);
        let number = whole.ok_or_else(|| Error::invalid("quantity", "must be a whole number"))?;
        if number > f64::from(config.max_quantity) {
            return Err(Error::invalid("quantity", format!("must be at most {}", config.max_quantity)));
        }
        Ok(Self(number.max(0.0) as u32))
    }
}

impl CartChange {
    /// Reads `{"op": "add" | "set" | "clear", "id": "mug", "quantity": 2}`; `clear` needs no more than its name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the field that is wrong.
    pub fn parse(text: &str, config: &CartConfig) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Fields {
            op: String,
            #[serde(default)]
            id: String,
            #[serde(default)]
            quantity: Value,
        }
        let rule = "must be a JSON object with op, id and quantity";
        let fields: Fields = serde_json::from_str(text).map_err(|_| Error::invalid("change", rule))?;
        let line = || Ok((ItemId::parse(&fields.id)?, Quantity::parse(&fields.quantity, config)?));
        match fields.op.as_str() {
            "clear" => Ok(Self::Clear),
            "set" => line().map(|(item, quantity)| Self::Set(item, quantity)),
            "add" => match line()? {
                (_, Quantity::ZERO) => Err(Error::invalid("quantity", "must be at least 1")),
                (item, quantity) => Ok(Self::Add(item, quantity)),
            },
            _ => Err(Error::invalid("op", "must be add, set or clear")),
        }
    }
}

/// The reads of [`read`], for a caller who puts them beside its own in one pipeline: those of
/// [`sessions::check_commands`], and the cart.
#[must_use]
pub fn read_commands(keys: Keys, token: &Token) -> [Command; 3] {
    let [user, seen] = sessions::check_commands(keys, token);
    [user, seen, Command::read("HGETALL").arg(keys.shard_of(token).cart(token))]
}

/// The session of `token` and its cart; None if it does not live. One pipeline: the reads are independent.
///
/// # Errors
/// [`Error::Redis`].
pub async fn read(
    redis: &Redis,
    token: &Token,
    now: Timestamp,
    config: &SessionConfig,
) -> Result<Option<(Session, Cart)>, Error> {
    let (user, seen, cart) = redis.all(&read_commands(redis.keys(), token)).await?;
    Ok(sessions::from_check(token, user, seen, now, config).map(|session| (session, Cart::from_pairs(cart))))
}

/// Makes the quantity of `item` what is said; 0 removes it.
///
/// # Errors
/// [`Error::CartFull`] if the item would be one too many, and [`Error::Redis`].
pub async fn set_item(
    redis: &Redis,
    token: Option<&Token>,
    item: &ItemId,
    quantity: Quantity,
    now: Timestamp,
    config: &Config,
) -> Result<CartWrite, Error> {
    Write::new(redis.keys(), token, now)?.run(redis, "set", Some(item), quantity, None, config).await
}

/// Adds to the quantity of `item`, up to what a cart may hold of one. With an idempotency `key` a living session's request
/// is executed once in a day; again, it changes nothing and finds the cart as it is then.
///
/// # Errors
/// [`Error::Invalid`] if the quantity is 0, [`Error::CartFull`] if the item would be one too many, [`Error::KeyReused`] if the
/// same session used `key` for something else, and [`Error::Redis`].
pub async fn add_item(
    redis: &Redis,
    token: Option<&Token>,
    item: &ItemId,
    quantity: Quantity,
    key: Option<&str>,
    now: Timestamp,
    config: &Config,
) -> Result<CartWrite, Error> {
    if quantity == Quantity::ZERO {
        return Err(Error::invalid("quantity", "must be at least 1"));
    }
    Write::new(redis.keys(), token, now)?.run(redis, "add", Some(item), quantity, key, config).await
}

/// Takes `item` out. That it was not there is no error.
///
/// # Errors
/// [`Error::Redis`].
pub async fn remove_item(
    redis: &Redis,
    token: Option<&Token>,
    item: &ItemId,
    now: Timestamp,
    config: &Config,
) -> Result<CartWrite, Error> {
    set_item(redis, token, item, Quantity::ZERO, now, config).await
}

/// Empties the cart.
///
/// # Errors
/// [`Error::Redis`].
pub async fn clear(redis: &Redis, token: Option<&Token>, now: Timestamp, config: &Config) -> Result<CartWrite, Error> {
    Write::new(redis.keys(), token, now)?.run(redis, "clear", None, Quantity::ZERO, None, config).await
}

/// Does what a [`CartChange`] says.
///
/// # Errors
/// As [`set_item`], [`add_item`] and [`clear`].
pub async fn change(
    redis: &Redis,
    token: Option<&Token>,
    change: &CartChange,
    now: Timestamp,
    config: &Config,
) -> Result<CartWrite, Error> {
    match change {
        CartChange::Add(item, quantity) => add_item(redis, token, item, *quantity, None, now, config).await,
        CartChange::Set(item, quantity) => set_item(redis, token, item, *quantity, now, config).await,
        CartChange::Clear => clear(redis, token, now, config).await,
    }
}

/// A write to the cart of whoever comes with `token`.
struct Write {
    token: Token,
    /// The token of the guest's session that starts if `token`'s does not live.
    fresh: Token,
    now: Timestamp,
}

impl Write {
    /// A visitor without a token is one whose session does not live: the fresh token stands in for it. Both are in one shard, so
    /// that one script can have them.
    fn new(keys: Keys, token: Option<&Token>, now: Timestamp) -> Result<Self, Error> {
        let fresh = token.map_or_else(
            || Token::new(now),
            |token| Token::new_in_shard(keys.shard_of(token).number(), keys.shard_count(), now),
        )?;
        Ok(Self { token: token.unwrap_or(&fresh).clone(), fresh, now })
    }

    /// A script, because what is written depends on the session and on what is in the cart.
    async fn run(
        self,
        redis: &Redis,
        operation: &str,
        item: Option<&ItemId>,
        quantity: Quantity,
        key: Option<&str>,
        config: &Config,
    ) -> Result<CartWrite, Error> {
        let Self { token, fresh, now } = self;
        let shard = redis.keys().shard_of(&fresh);
        let mut keys = vec![shard.login(), shard.recent(), shard.cart(&token), shard.cart(&fresh)];
        keys.extend(key.map(|key| shard.idempotency(token.as_str(), key)));
        let write = Command::script(&CART_WRITE, keys)
            .args([token.as_str(), fresh.as_str()])
            .num(now)
            .num(now - config.session.idle)
            .args([operation, item.map_or("", ItemId::as_str)])
            .num(quantity.0)
            .num(config.cart.max_lines)
            .num(config.cart.max_quantity)
            .num(IDEMPOTENCY_TTL);
        // To set, remove or clear twice is to do it once; what was added may not be added again after a lost reply.
        let write = if operation == "add" { write } else { write.repeatable() };
        let reply: Option<(String, String, Pairs<String, String>)> = redis.run(write).await?;
        let Some((outcome, user, cart)) = reply else {
            return Ok(CartWrite { session: None, created: false, cart: Cart::default() });
        };
        let created = match outcome.as_str() {
            // A visitor without a token is kept where the reply that told of their new session was lost.
            "kept" => token == fresh,
            "created" => true,
            "full" => return Err(Error::CartFull { limit: config.cart.max_lines }),
            _ => return Err(Error::KeyReused),
        };
        let token = if created { &fresh } else { &token };
        Ok(CartWrite { session: sessions::from_login(token, &user), created, cart: Cart::from_pairs(cart) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_quantity_is_a_whole_number_that_a_cart_can_hold() {
        let config = CartConfig { max_lines: 100, max_quantity: 999 };
        let parse = |json| Quantity::parse(&json, &config);
        for (json, quantity) in [(json!(1), 1), (json!(999), 999), (json!(2.0), 2), (json!(0), 0), (json!(-3), 0)] {
            assert_eq!(parse(json), Ok(Quantity(quantity)));
        }
        for json in [json!(1.5), json!("2"), json!(null), json!(true), json!([1]), json!({})] {
            assert_eq!(parse(json), Err(Error::invalid("quantity", "must be a whole number")));
        }
        for json in [json!(1000), json!(u64::MAX), json!(1e300)] {
            assert_eq!(parse(json), Err(Error::invalid("quantity", "must be at most 999")));
        }
    }

    #[test]
    fn a_change_says_what_and_how_many() {
        let config = CartConfig { max_lines: 100, max_quantity: 999 };
        let mug = || ItemId::parse("mug").unwrap();
        for (text, change) in [
            (r#"{"op":"add","id":"mug","quantity":2}"#, CartChange::Add(mug(), Quantity(2))),
            (r#"{"op":"set","id":"mug","quantity":0}"#, CartChange::Set(mug(), Quantity::ZERO)),
            (r#"{"op":"clear"}"#, CartChange::Clear),
        ] {
            assert_eq!(CartChange::parse(text, &config), Ok(change));
        }
        for text in [
            "",
            "mug",
            "[]",
            r#"{"op":"steal","id":"mug","quantity":2}"#,
            r#"{"op":"add","id":"mug","quantity":0}"#,
            r#"{"op":"add","id":"mug"}"#,
            r#"{"op":"set","id":"a:b","quantity":1}"#,
            r#"{"op":"set","quantity":1}"#,
            r#"{"op":"set","id":"mug","quantity":1000}"#,
        ] {
            assert!(CartChange::parse(text, &config).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cart_leaves_out_what_is_no_line() {
        let pair = |item: &str, quantity: &str| (item.to_owned(), quantity.to_owned());
        let pairs = vec![
            pair("mug", "2"),
            pair("", "1"),
            pair("a:b", "1"),
            pair("cup", "x"),
            pair("bowl", "-1"),
            pair("a", "3"),
        ];
        let cart = Cart::from_pairs(Pairs(pairs));
        assert_eq!(cart.lines.iter().map(|line| line.item.as_str()).collect::<Vec<_>>(), ["a", "mug"]);
        assert_eq!(cart.quantity(), 5);
        assert_eq!(cart.to_json(), json!({"a": 3, "mug": 2}));
    }
}
