//! The state that the actors of a case share, and the execution of their actions.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Duration,
};

use edgefront::{
    App,
    carts::{self, CartChange, CartLine, CartWriteOutcome, Quantity},
    orders::{
        Customer, Order, OrderedReservation,
        flash_sale::{FlashSales, GRACE, ReservationId},
    },
    ports::{
        budget::Budget,
        error::Error,
        time::{Clock, Timestamp},
    },
    ranking,
    schema::{
        ids::{ItemId, OrderId, UserId},
        redis::Redis,
        token::Token,
    },
    sessions::{self, CleanupProbe, DeviceSelection, SessionTouch, TouchOutcome},
};
use serde_json::json;

use super::{
    PIECES,
    action::{Action, Item, User},
    gate::{FirstRequest, Gate},
    state::State,
};
use crate::support::{TestClock, row};

/// An action that is under way.
pub struct Doing {
    pub deed: Deed,
    pub now: Timestamp,
    /// The state before each request that the actor sent.
    pub history: Vec<State>,
    /// The response that the model expects, once known.
    pub expected: Option<String>,
    /// The session to whose cart the last request of an order led.
    pub cart: Option<String>,
}

/// An action whose session is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    Check(Token),
    Touch(Token, ItemId),
    LogIn(Option<Token>, UserId),
    LogOut(Token),
    LogOutDevices(Token, DeviceSelection),
    LogOutUser(UserId),
    Set(Option<Token>, ItemId, u32),
    Add(Option<Token>, ItemId, u32),
    Clear(Token),
    /// `stops`: the report stops after its first request.
    Order {
        token: Token,
        order: Order,
        user: Option<UserId>,
        stops: bool,
    },
    Reserve(Token),
    Cancel(Token, ReservationId),
    Clean(CleanupProbe),
    Rescale,
}

/// The state that all actors of a case share.
pub struct World {
    pub app: Rc<App>,
    pub clock: TestClock,
    pub gate: Gate,
    has_gate: bool,
    /// The current action of each actor.
    pub doing: Vec<RefCell<Option<Doing>>>,
    given: RefCell<Given>,
}

/// All tokens and reservations that were given out so far.
#[derive(Default)]
struct Given {
    tokens: Vec<Token>,
    /// The users of the tokens, without guests' tokens: a login always draws a new one.
    users: HashMap<Token, UserId>,
    /// Reservations, each with its user and its end.
    reservations: Vec<(ReservationId, UserId, Timestamp)>,
    orders: Vec<(Order, Option<UserId>)>,
    /// Pieces that the shop has sold; its database has the last word.
    sold: u64,
    /// Pieces that carts have taken.
    accepted: u64,
    /// Tokens whose logout was answered.
    logged_out: Vec<Token>,
}

impl World {
    pub fn new(app: Rc<App>, clock: &TestClock, actors: usize) -> Self {
        let doing = (0..actors).map(|_| RefCell::new(None)).collect();
        Self { app, clock: clock.clone(), gate: Gate::new(clock), has_gate: true, doing, given: RefCell::default() }
    }

    /// A world that holds no request back.
    pub fn without_gate(app: Rc<App>, clock: &TestClock, actors: usize) -> Self {
        Self { has_gate: false, ..Self::new(app, clock, actors) }
    }

    /// Number of pieces that carts have taken by [`Action::Add`].
    pub fn accepted(&self) -> u64 {
        self.given.borrow().accepted
    }

    /// Tokens whose logout was answered.
    pub fn logged_out(&self) -> Vec<Token> {
        self.given.borrow().logged_out.clone()
    }

    fn token(&self, back: usize) -> Option<Token> {
        self.given.borrow().tokens.iter().rev().nth(back).cloned()
    }

    fn give(&self, token: &Token) {
        let tokens = &mut self.given.borrow_mut().tokens;
        if !tokens.contains(token) {
            tokens.push(token.clone());
        }
    }

    /// Replaces random tokens by t0, t1, …, so that the output of a case is always the same.
    pub fn named(&self, text: &str) -> String {
        let given = self.given.borrow();
        let numbered = given.tokens.iter().enumerate();
        numbered.fold(text.to_owned(), |text, (number, token)| text.replace(token.as_str(), &format!("t{number}")))
    }

    /// None if no session or reservation exists yet for the action.
    fn deed(&self, action: Action, now: Timestamp) -> Option<Deed> {
        let reservation = |back| self.given.borrow().reservations.iter().rev().nth(back).cloned();
        Some(match action {
            Action::Check(token) => Deed::Check(self.token(token)?),
            Action::Touch(token, item) => Deed::Touch(self.token(token)?, id(item)),
            Action::LogIn(old, user) => Deed::LogIn(old.and_then(|old| self.token(old)), name(user)),
            Action::LogOut(token) => Deed::LogOut(self.token(token)?),
            Action::LogOutOthers(token) => Deed::LogOutDevices(self.token(token)?, DeviceSelection::Others),
            Action::LogOutAll(token) => Deed::LogOutDevices(self.token(token)?, DeviceSelection::All),
            Action::LogOutUser(user) => Deed::LogOutUser(name(user)),
            Action::Add(token, item, quantity) => {
                Deed::Add(token.and_then(|token| self.token(token)), id(item), quantity.into())
            }
            Action::Set(token, item, quantity) => {
                Deed::Set(token.and_then(|token| self.token(token)), id(item), quantity.into())
            }
            Action::Clear(token) => Deed::Clear(self.token(token)?),
            Action::Order(token, item, quantity) | Action::OrderAndStop(token, item, quantity) => {
                let token = self.token(token)?;
                let (order, user) = self.order(item, quantity.into(), None);
                Deed::Order { token, order, user, stops: matches!(action, Action::OrderAndStop(..)) }
            }
            Action::OrderAgain(token) => {
                let (order, user) = self.given.borrow().orders.last()?.clone();
                Deed::Order { token: self.token(token)?, order, user, stops: false }
            }
            Action::Reserve(token) => Deed::Reserve(self.token(token)?),
            Action::Cancel(token, back) => Deed::Cancel(self.token(token)?, reservation(back)?.0),
            Action::Buy(token, back) => {
                let (token, reserved) = (self.token(token)?, reservation(back)?);
                // The shop sells no more pieces than there are, and none whose reservation has ended.
                if self.given.borrow().sold >= PIECES || now >= reserved.2 + GRACE {
                    return None;
                }
                self.given.borrow_mut().sold += 1;
                let (order, user) = self.order(Item::Pan, 1, Some((reserved.0, reserved.1)));
                Deed::Order { token, order, user, stops: false }
            }
            Action::CleanOverflow => Deed::Clean(CleanupProbe::Overflow),
            Action::CleanIdle => Deed::Clean(CleanupProbe::Idle),
            Action::CleanAll => Deed::Clean(CleanupProbe::Skip),
            Action::Rescale => Deed::Rescale,
            Action::Wait(seconds) => {
                self.clock.advance(Duration::from_secs(seconds));
                return None;
            }
        })
    }

    fn order(&self, item: Item, quantity: u32, piece: Option<(ReservationId, UserId)>) -> (Order, Option<UserId>) {
        let orders = &mut self.given.borrow_mut().orders;
        let (id, lines) = (format!("order-{}", orders.len()), vec![CartLine { item: id(item), quantity }]);
        let user = piece.as_ref().map(|(_, user)| user.clone());
        let reservation = piece.map(|(id, _)| OrderedReservation { sale: row("pan"), id });
        let order = Order { id: OrderId::parse(&id).expect("an order's name"), lines, in_cart: true, reservation };
        orders.push((order.clone(), user.clone()));
        (order, user)
    }

    /// Executes `action` as `actor` through its client `redis`, and compares the response with the model's.
    pub async fn perform(&self, actor: usize, redis: &Redis, action: Action) -> Result<(), String> {
        let now = self.clock.now();
        let Some(deed) = self.deed(action, now) else { return Ok(()) };
        self.doing[actor].replace(Some(Doing {
            deed: deed.clone(),
            now,
            history: Vec::new(),
            expected: None,
            cart: None,
        }));
        let stopping = matches!(deed, Deed::Order { stops: true, .. }).then(|| self.stopping_redis(actor));
        let redis = stopping.as_ref().unwrap_or(redis);
        let told = self.told(redis, &deed, now).await.map_err(|error| format!("{action:?} failed: {error}"))?;
        let expected = self.doing[actor].take().and_then(|doing| doing.expected);
        match expected {
            Some(expected) if expected != told => {
                Err(format!("actor {actor}: {action:?} was told {told}, and not {expected}"))
            }
            _ => Ok(()),
        }
    }

    /// The response as text, as the model writes it.
    async fn told(&self, redis: &Redis, deed: &Deed, now: Timestamp) -> Result<String, Error> {
        let (config, sale) = (&self.app.config, row("pan"));
        let session = &config.session;
        Ok(match deed {
            Deed::Check(token) => {
                let session = sessions::check(redis, token, now, session).await?;
                format!("{:?}", session.map(|session| session.user.map_or_else(String::new, |user| user.to_string())))
            }
            Deed::Touch(token, item) => {
                let sight = SessionTouch { token: token.clone(), item: Some(item.clone()), at: now };
                let noted = crate::support::touch(redis, &sight, session).await?;
                if matches!(noted, TouchOutcome::ViewCounts | TouchOutcome::GuestViewCounts) {
                    redis.run::<()>(ranking::count_command(redis.keys(), item, 1)).await?;
                }
                format!("{noted:?}")
            }
            Deed::LogIn(old, user) => {
                let token = crate::support::log_in(redis, old.as_ref(), user, now, session).await?;
                self.give(&token);
                self.given.borrow_mut().users.insert(token.clone(), user.clone());
                token.as_str().to_owned()
            }
            Deed::LogOut(token) => {
                sessions::log_out(redis, token, now, session).await?;
                self.given.borrow_mut().logged_out.push(token.clone());
                String::new()
            }
            Deed::LogOutDevices(token, which) => {
                let ended = sessions::log_out_devices(redis, token, which, now, session).await?;
                if let Some(ended) = &ended {
                    ended.delete_data(redis, now, session).await?;
                }
                format!("{}", ended.is_some())
            }
            Deed::LogOutUser(user) => format!("{:?}", sessions::log_out_user(redis, user, now, session).await?),
            Deed::Set(token, item, quantity) => {
                let quantity = Quantity::parse(&json!(quantity), config.cart.max_quantity)?;
                let change = CartChange::Set(item.clone(), quantity);
                self.wrote(carts::change(redis, token.as_ref(), &change, now, config).await)
            }
            Deed::Add(token, item, quantity) => {
                let quantity = Quantity::parse(&json!(quantity), config.cart.max_quantity)?;
                let change = CartChange::Add(item.clone(), quantity);
                let wrote = carts::change(redis, token.as_ref(), &change, now, config).await;
                self.given.borrow_mut().accepted += wrote.as_ref().map_or(0, |_| quantity.get().into());
                self.wrote(wrote)
            }
            Deed::Clear(token) => self.wrote(carts::change(redis, Some(token), &CartChange::Clear, now, config).await),
            Deed::Order { token, order, user, stops } => {
                let customer = Customer { token: Some(token), user: user.as_ref() };
                let settled = order.settle(redis, customer, now, session).await;
                if !stops {
                    settled?;
                }
                String::new()
            }
            Deed::Reserve(token) => match (FlashSales { redis, source: None, config }).reserve(&sale, token, now).await
            {
                Ok(reserved) => {
                    let reservation = reserved.reservation;
                    let mut given = self.given.borrow_mut();
                    let user = given.users.get(token).filter(|_| reserved.created).cloned();
                    let reserved = user.map(|user| (reservation.id.clone(), user, reservation.until));
                    given.reservations.extend(reserved);
                    format!("held {}", reservation.id)
                }
                Err(error @ (Error::Refused(_) | Error::NotSignedIn)) => error.to_string(),
                Err(error) => return Err(error),
            },
            Deed::Cancel(token, id) => {
                match (FlashSales { redis, source: None, config }).cancel(&sale, token, id, now).await {
                    Ok(()) => "returned".to_owned(),
                    Err(error @ (Error::NotFound(_) | Error::NotSignedIn)) => error.to_string(),
                    Err(error) => return Err(error),
                }
            }
            Deed::Clean(probe) => {
                let budget = Budget::new(Rc::new(self.gate.door(0)), Duration::from_hours(1), 1_000);
                format!("{:?}", sessions::clean(redis, session, *probe, &budget).await?)
            }
            Deed::Rescale => ranking::rescale(redis, now, &config.ranking).await?.halvings.to_string(),
        })
    }

    fn wrote(&self, wrote: Result<CartWriteOutcome, Error>) -> String {
        match wrote {
            Ok(CartWriteOutcome { session: Some(session), cart, .. }) => {
                self.give(&session.token);
                format!("{}: {}", session.token.as_str(), cart.to_json())
            }
            Ok(CartWriteOutcome { session: None, .. }) => "nobody".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// As [`World::redis`]; every request after the first one fails.
    fn stopping_redis(&self, actor: usize) -> Redis {
        let door = FirstRequest { door: self.gate.door(actor), is_used: Cell::new(false) };
        self.app.redis.with_deadline(Duration::from_secs(20)).through(Rc::new(door))
    }

    /// The client of Redis of `actor`.
    pub fn redis(&self, actor: usize) -> Redis {
        let redis = self.app.redis.with_deadline(Duration::from_secs(20));
        if self.has_gate { redis.through(Rc::new(self.gate.door(actor))) } else { redis }
    }
}

fn id(item: Item) -> ItemId {
    ItemId::parse(&format!("{item:?}").to_lowercase()).expect("an item's name")
}

fn name(user: User) -> UserId {
    UserId::parse(&format!("{user:?}").to_lowercase()).expect("a user's name")
}
