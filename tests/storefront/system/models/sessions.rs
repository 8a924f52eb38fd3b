//! Sessions: see `models/src/sessions`.

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    carts::{self, CartChange, CartWriteRequest, Quantity},
    orders::{Customer, Order},
    ports::{
        budget::Budget,
        error::Error,
        time::{Clock, Timestamp},
    },
    schema::{
        ids::{ItemId, UserId},
        token::Token,
    },
    sessions::{self, CleanupProbe, DeviceSelection, EndedSessions, SessionTouch},
};
use edgefront_gateway::{Fault, FaultScope};
use edgefront_models::{
    of_sessions,
    sessions::{Action, Cart, IDLE, LIMIT, Sessions, User},
};
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::{Real, Step, equal, replay_all};
use crate::{
    support::Store,
    system::races::{
        gate::{Actor, Gate, advance},
        state::State,
    },
};

/// A time step of the model.
const STEP: Duration = Duration::from_mins(1);
/// The door of an order's report. The cleanups have the doors 0 and 1.
const REPORT: usize = 2;

struct World {
    app: Rc<App>,
    began: Timestamp,
    gate: Gate,
    /// In the order of their draw.
    tokens: Vec<Token>,
    activity: Option<SessionTouch>,
    cleanups: [FuturesUnordered<Actor>; 2],
    /// The session of the order, and its report.
    order: Option<Token>,
    report: FuturesUnordered<Actor>,
    ended: Option<EndedSessions>,
    /// The request whose reply was lost.
    lost: Option<Request>,
    keys: u32,
}

#[derive(Clone)]
enum Request {
    /// With an idempotency key.
    Add(Option<Token>, String),
    LogIn(Option<Token>, UserId),
}

impl World {
    fn token(&self, number: u8) -> Token {
        self.tokens[usize::from(number)].clone()
    }

    /// The model begins at the time [`IDLE`].
    fn time(&self, steps: u8) -> Timestamp {
        self.began + STEP * u32::from(steps - IDLE)
    }

    async fn send(&mut self, store: &Store, request: Request, is_reply_lost: bool) -> Result<(), String> {
        let (redis, config, now) = (&self.app.redis, &self.app.config, self.app.clock.now());
        if is_reply_lost {
            // The reply to the client's own repetition is lost, too.
            store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(2));
        }
        let outcome = match &request {
            Request::Add(token, key) => {
                let quantity = Quantity::parse(&json!(1), config.cart.max_quantity).expect("a quantity");
                let changes = [CartChange::Add(ItemId::parse("mug").expect("an item"), quantity)];
                let request = CartWriteRequest { token: token.as_ref(), changes: &changes, idempotency_key: Some(key) };
                carts::write(redis, &request, now, config).await.map(drop)
            }
            Request::LogIn(old, user) => {
                crate::support::log_in(redis, old.as_ref(), user, now, &config.session).await.map(drop)
            }
        };
        store.gateway.set_fault(None);
        self.lost = Some(request).filter(|_| is_reply_lost);
        match outcome {
            Err(Error::Redis(_)) if is_reply_lost => Ok(()),
            Ok(()) if !is_reply_lost => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Takes the next request of a cleanup to its end, and the cleanup to its next request.
    async fn step_cleanup(&mut self, number: usize) -> Result<(), String> {
        advance(&mut self.cleanups[number])?;
        // The other cleanup has an older or a younger request of its own.
        let held = self.gate.held_by(number);
        let request = held.first().ok_or("the cleanup sends nothing")?;
        self.gate.step(*request).await;
        self.gate.step(*request).await;
        advance(&mut self.cleanups[number])
    }

    fn drop_cleanup(&mut self, number: usize) {
        self.cleanups[number] = FuturesUnordered::new();
        self.gate.forget(number);
    }

    /// Executes the next request of the order's report.
    async fn settle(&mut self, is_reply_lost: bool) -> Result<(), String> {
        if self.report.is_empty() {
            let token = self.order.clone().ok_or("no order")?;
            let door = Rc::new(self.gate.door(REPORT));
            let redis = self.app.redis.with_deadline(Duration::from_secs(20)).through(door);
            let (config, now) = (self.app.config.clone(), self.app.clock.now());
            self.report.push(Box::pin(async move {
                let order = r#"{"order_id":"A-1","items":[{"id":"mug","quantity":1}]}"#;
                let order = Order::parse(order).expect("an order");
                let customer = Customer { token: Some(&token), user: None };
                order.settle(&redis, customer, now, &config.session).await.map(drop).map_err(|error| error.to_string())
            }));
            advance(&mut self.report)?;
        }
        let request = *self.gate.held_by(REPORT).first().ok_or("the report sends nothing")?;
        self.gate.step(request).await;
        if is_reply_lost {
            self.report = FuturesUnordered::new();
            self.gate.forget(REPORT);
            return Ok(());
        }
        self.gate.step(request).await;
        advance(&mut self.report)
    }

    async fn act(&mut self, store: &Store, action: Action) -> Result<(), String> {
        let (app, now) = (self.app.clone(), self.app.clock.now());
        let (redis, session) = (&app.redis, &app.config.session);
        let failed = |error: Error| error.to_string();
        match action {
            Action::Act(token) => self.activity = Some(SessionTouch { token: self.token(token), item: None, at: now }),
            Action::WriteActivity => {
                let touch = self.activity.take().ok_or("no activity")?;
                crate::support::touch(redis, &touch, session).await.map_err(failed)?;
            }
            Action::EvictIsolate => self.activity = None,
            Action::Add { token, is_reply_lost } => {
                self.keys += 1;
                let request = Request::Add(token.map(|token| self.token(token)), format!("key-{}", self.keys));
                self.send(store, request, is_reply_lost).await?;
            }
            Action::LogIn { old, user, is_reply_lost } => {
                let user = UserId::parse(name(user)).map_err(failed)?;
                let request = Request::LogIn(old.map(|old| self.token(old)), user);
                self.send(store, request, is_reply_lost).await?;
            }
            Action::Repeat => {
                let request = self.lost.take().ok_or("nothing to repeat")?;
                self.send(store, request, false).await?;
            }
            Action::GiveUp => self.lost = None,
            Action::LogOut(token) => {
                sessions::log_out(redis, &self.token(token), now, session).await.map_err(failed)?;
            }
            Action::CheckOut(token) => self.order = Some(self.token(token)),
            Action::Settle { is_reply_lost } => self.settle(is_reply_lost).await?,
            Action::EndLogins(own) => {
                let token = self.token(own);
                let ended = sessions::log_out_devices(redis, &token, &DeviceSelection::All, now, session).await;
                self.ended = Some(ended.map_err(failed)?.ok_or("the session is not live")?);
            }
            Action::DeleteData => {
                let ended = self.ended.take().ok_or("nothing has ended")?;
                ended.delete_data(redis, now, session).await.map_err(failed)?;
            }
            Action::DropDeletion => self.ended = None,
            Action::ReadVictims(number) => {
                let (door, clock) = (Rc::new(self.gate.door(number)), Rc::new(self.gate.door(number)));
                let redis = app.redis.with_deadline(Duration::from_secs(20)).through(door);
                let config = app.config.session.clone();
                self.cleanups[number].push(Box::pin(async move {
                    let budget = Budget::new(clock, Duration::from_hours(1), 1_000);
                    let cleaned = sessions::clean(&redis, &config, CleanupProbe::Skip, &budget).await;
                    cleaned.map(drop).map_err(|error| error.to_string())
                }));
                self.step_cleanup(number).await?;
            }
            Action::EndVictims(number) => {
                self.step_cleanup(number).await?;
                self.drop_cleanup(number);
            }
            Action::DropCleanup(number) => self.drop_cleanup(number),
            Action::Wait => {}
        }
        Ok(())
    }
}

impl Real<Sessions> for World {
    async fn new(store: &Store, _: &Sessions) -> Self {
        // Half a step more, because the clock moves a little while a cleanup runs.
        let idle = (STEP * u32::from(IDLE) + STEP / 2).as_secs().to_string();
        let app = store.app(&[("SESSION_LIMIT", &LIMIT.to_string()), ("SESSION_IDLE", &idle)]);
        let began = app.clock.now();
        let (activity, cleanups, order, report, ended, lost, keys) = Default::default();
        let gate = Gate::new(&store.clock);
        Self { app, began, gate, tokens: Vec::new(), activity, cleanups, order, report, ended, lost, keys }
    }

    async fn act(&mut self, store: &Store, step: &Step<'_, Sessions>) -> Result<(), String> {
        let now = self.time(step.after.now);
        store.clock.advance(now.since(store.clock.now()));
        World::act(self, store, *step.action).await?;
        let known = |token: &String| self.tokens.iter().any(|known| known.as_str() == token);
        let drawn = State::read(&store.aside).await.login.into_keys().find(|token| !known(token));
        self.tokens.extend(drawn.and_then(|token| Token::parse(&token)));
        equal("tokens drawn", &self.tokens.len(), &usize::from(step.after.drawn))
    }

    async fn compare(
        &self,
        store: &Store,
        _: &Sessions,
        state: &edgefront_models::sessions::State,
    ) -> Result<(), String> {
        let real = State::read(&store.aside).await;
        for (number, (token, session)) in self.tokens.iter().zip(&state.sessions).enumerate() {
            let named = |map: &std::collections::BTreeMap<String, String>| map.get(token.as_str()).cloned();
            let name = |user: Option<User>| user.map(|user| name(user).to_owned());
            equal(&format!("login of {number}"), &named(&real.login), &name(session.user))?;
            equal(&format!("ended login of {number}"), &named(&real.ended), &name(session.ended))?;
            let seen = real.recent.get(token.as_str()).copied();
            equal(&format!("activity of {number}"), &seen, &session.seen.map(|seen| self.time(seen)))?;
            let pieces = real.carts.get(token.as_str()).map_or(0, |cart| cart.values().sum());
            equal(&format!("cart of {number}"), &pieces, &count(session.cart))?;
        }
        equal("the order has left a cart", &real.settled.contains("A-1"), &state.is_ordered)?;
        let mut abandoned: Vec<_> =
            state.abandoned.iter().map(|(user, cart)| (user.map_or("", name), count(*cart))).collect();
        abandoned.sort_unstable();
        let mut found: Vec<_> =
            real.abandoned.iter().map(|(user, cart)| (user.as_str(), cart.values().sum::<u64>())).collect();
        found.sort_unstable();
        equal("abandoned carts", &found, &abandoned)
    }
}

/// As in Redis.
fn name(user: User) -> &'static str {
    match user {
        User::Guest => "",
        User::Ada => "ada",
        User::Bob => "bob",
    }
}

fn count(cart: Cart) -> u64 {
    cart.iter().copied().map(u64::from).sum()
}

#[tokio::test]
async fn the_real_sessions_do_what_the_model_does() {
    replay_all::<Sessions, World>(of_sessions()).await;
}
