//! The facts about a visitor that the origin gets as `Edge-*` request headers.

use std::iter;

use super::visit::Visit;
use crate::{
    carts::{self, Cart},
    orders::flash_sale::{self, Reservation},
    ports::error::Error,
    schema::{
        ids::{RowId, UserId},
        token::Token,
    },
    sessions::{self, Session},
};
use upstash_rest::{FromReply, Reply};

/// The facts about a visitor. The default is a visitor whose session could not be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct VisitorContext {
    /// `Edge-Session`.
    pub session: SessionState,
    /// `Edge-User`: the signed-in user.
    pub user: Option<UserId>,
    /// `Edge-Cart`: the visitor's cart; None on routes that do not send it, and if the session is unknown.
    pub cart: Option<Cart>,
    /// `Edge-Reservation`: the piece of a flash sale that is reserved for the visitor.
    pub reservation: Option<(RowId, Reservation)>,
}

/// The state of a visitor's session: the reason for an `Edge-User`, or for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionState {
    /// A user is signed in.
    User,
    /// The session belongs to no user.
    Guest,
    /// The visitor has no session, or an expired one.
    None,
    /// Redis did not answer, or the browser kept the session cookie back. The visitor may be signed in, so an origin must not end its
    /// own login.
    #[default]
    Unknown,
}

impl SessionState {
    /// The value of `Edge-Session`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Guest => "guest",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}

impl From<Option<Session>> for VisitorContext {
    /// The session as Redis knows it.
    fn from(session: Option<Session>) -> Self {
        let state = match &session {
            Some(Session { user: Some(_), .. }) => SessionState::User,
            Some(_) => SessionState::Guest,
            None => SessionState::None,
        };
        Self { session: state, user: session.and_then(|session| session.user), ..Self::default() }
    }
}

impl VisitorContext {
    /// Reads the session, and the cart and reservation if the route sends them, in one request to Redis. A visitor
    /// without a signed cookie costs no request.
    ///
    /// # Errors
    /// [`Error::Redis`].
    pub async fn read(visit: &Visit) -> Result<Self, Error> {
        if visit.may_lack_session_cookie {
            return Ok(Self::default());
        }
        let (redis, config) = (&visit.app.redis, &visit.app.config.session);
        // Without a session the cart is empty.
        let anonymous = Self { cart: visit.sends_cart.then(Cart::default), ..None.into() };
        let Some(token) = &visit.token else { return Ok(anonymous) };
        if let Some(sale) = &visit.sale {
            return Self::read_buyer(visit, token, sale).await;
        }
        if !visit.sends_cart {
            return Ok(sessions::check(redis, token, visit.now, config).await?.into());
        }
        Ok(match carts::read(redis, token, visit.now, config).await? {
            Some((session, cart)) => Self { cart: Some(cart), ..Some(session).into() },
            None => anonymous,
        })
    }

    /// The facts about a visitor while Redis is down. Without a token, there is no session to read.
    #[must_use]
    pub fn without_redis(visit: &Visit) -> Self {
        let is_unknown = visit.token.is_some() || visit.may_lack_session_cookie;
        let session = if is_unknown { SessionState::Unknown } else { SessionState::None };
        Self { session, ..Self::default() }
    }

    /// As [`VisitorContext::read`], for a request that buys a piece of `sale`. One pipeline reads everything; the
    /// sharded layout needs a second request for the reservation.
    async fn read_buyer(visit: &Visit, token: &Token, sale: &RowId) -> Result<Self, Error> {
        let (redis, now, config) = (&visit.app.redis, visit.now, &visit.app.config.session);
        let cart = carts::read_command(redis.keys(), token);
        let own = iter::once(cart).chain(flash_sale::reservation_command(redis.keys(), sale, token, now)).collect();
        let found = sessions::check_with(redis, token, now, config, own).await?;
        let Some((session, own)) = found else { return Ok(Self { cart: Some(Cart::default()), ..None.into() }) };
        let mut own = Vec::<Reply>::from_reply(own)?.into_iter();
        let cart = Cart::from_pairs(FromReply::from_reply(own.next().ok_or(upstash_rest::Error::UnexpectedType)?)?);
        let reservation: Option<Reservation> = match (own.next(), &session.user) {
            (Some(reply), _) => FromReply::from_reply(reply)?,
            (None, Some(user)) => flash_sale::read_reservation(redis, sale, token, user, now).await?,
            (None, None) => None,
        };
        let reservation = reservation.map(|reservation| (sale.clone(), reservation));
        Ok(Self { cart: Some(cart), reservation, ..Some(session).into() })
    }
}
