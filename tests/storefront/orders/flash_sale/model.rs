//! Any order of events, against a model so naive that it can be read: lists, and no script.

use std::{collections::BTreeSet, time::Duration};

use edgefront::{
    orders::flash_sale::{GRACE, ReservationId},
    ports::{
        error::{Error, Refusal},
        time::Timestamp,
    },
    schema::token::Token,
};
use proptest::prelude::*;

use super::{HOLD, Sale};

const USERS: usize = 4;
const PIECES: u64 = 2;
/// How long a window lasts; the next one begins with [`Event::Window`] only.
const LASTS: Duration = Duration::from_mins(10);

#[derive(Debug, Clone)]
enum Event {
    Reserve(usize),
    /// Gives the n-th last reservation back that this user ever got.
    Cancel(usize, usize),
    /// The shop sells this user the piece of their n-th last reservation, and tells us.
    Buy(usize, usize),
    /// The shop tells us of its last order again.
    Again,
    /// The row is read again.
    Refresh,
    /// The shop begins another sale.
    Window,
    /// Seconds pass.
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let user = || 0..USERS;
    prop_oneof![
        8 => user().prop_map(Event::Reserve),
        2 => (user(), 0..2_usize).prop_map(|(user, back)| Event::Cancel(user, back)),
        2 => (user(), 0..2_usize).prop_map(|(user, back)| Event::Buy(user, back)),
        1 => Just(Event::Again),
        1 => Just(Event::Refresh),
        1 => Just(Event::Window),
        4 => prop_oneof![1 => 1..60_u64, 1 => Just(120), 1 => Just(30)].prop_map(Event::Wait),
    ]
}

struct Model {
    starts: Timestamp,
    /// user, id, end
    holds: Vec<(usize, ReservationId, Timestamp)>,
    /// In this window: user and order.
    sold: BTreeSet<(usize, String)>,
    /// What the copy of the row says of it.
    row_sold: u64,
}

impl Model {
    fn kept(&self, now: Timestamp) -> impl Iterator<Item = &(usize, ReservationId, Timestamp)> {
        self.holds.iter().filter(move |(_, _, ends)| *ends + GRACE > now)
    }

    fn left(&self, now: Timestamp) -> u64 {
        let sold = self.row_sold.max(self.sold.len() as u64);
        PIECES.saturating_sub(sold).saturating_sub(self.kept(now).count() as u64)
    }

    fn mine(&self, user: usize, now: Timestamp) -> Option<&ReservationId> {
        self.kept(now).find(|(holder, _, ends)| *holder == user && *ends > now).map(|(_, id, _)| id)
    }

    fn has_bought(&self, user: usize) -> bool {
        self.sold.iter().any(|(buyer, _)| *buyer == user)
    }

    /// What a reservation must come to: None if a new one.
    fn reserve(&self, user: usize, now: Timestamp) -> Option<Result<ReservationId, Refusal>> {
        if self.has_bought(user) {
            return Some(Err(Refusal::AlreadyBought));
        }
        if let Some(id) = self.mine(user, now) {
            return Some(Ok(id.clone()));
        }
        if now >= self.starts + LASTS {
            return Some(Err(Refusal::Ended));
        }
        (self.left(now) == 0).then_some(Err(Refusal::SoldOut))
    }
}

/// A sale, its model, and what both have been through.
struct Run {
    sale: Sale,
    tokens: Vec<Token>,
    model: Model,
    /// Of each user, with the window's begin.
    reservations: Vec<Vec<(ReservationId, Timestamp)>>,
    orders: Vec<(usize, ReservationId, Timestamp, String)>,
}

impl Run {
    async fn new() -> Self {
        let sale = Sale::of(PIECES).await;
        let mut tokens = Vec::new();
        for user in 0..USERS {
            tokens.push(sale.log_in(&format!("user-{user}")).await);
        }
        let model = Model { starts: sale.now(), holds: Vec::new(), sold: BTreeSet::new(), row_sold: 0 };
        let mut run = Self { sale, tokens, model, reservations: vec![Vec::new(); USERS], orders: Vec::new() };
        run.begin_window().await;
        run
    }

    async fn begin_window(&mut self) {
        // Two windows that begin in the same second would be one.
        self.sale.advance(Duration::from_secs(1));
        let starts = Timestamp::from_millis(self.sale.now().as_secs() * 1000);
        self.model = Model { starts, holds: Vec::new(), sold: BTreeSet::new(), row_sold: 0 };
        self.refresh().await;
    }

    async fn refresh(&mut self) {
        let Model { starts, row_sold, .. } = self.model;
        self.sale.put(&self.sale.row(starts, starts + LASTS, PIECES, row_sold)).await;
    }

    async fn tell(&mut self, user: usize, id: &ReservationId, window: Timestamp, order: &str) {
        self.sale.confirm(id, &format!("user-{user}"), order).await;
        if window == self.model.starts {
            self.model.sold.insert((user, order.to_owned()));
            self.model.holds.retain(|(holder, ..)| *holder != user);
        }
    }

    async fn step(&mut self, event: Event) {
        let now = self.sale.now();
        match event {
            Event::Reserve(user) => {
                let result = self.sale.reserve(&self.tokens[user]).await;
                match (self.model.reserve(user, now), result) {
                    (None, Ok(reserved)) => {
                        assert!(reserved.created);
                        let id = reserved.reservation.id;
                        self.model.holds.retain(|(holder, ..)| *holder != user);
                        self.model.holds.push((user, id.clone(), now + HOLD));
                        self.reservations[user].push((id, self.model.starts));
                    }
                    (Some(Ok(id)), Ok(reserved)) => {
                        assert_eq!((reserved.reservation.id, reserved.created), (id, false));
                    }
                    (Some(Err(refusal)), result) => assert_eq!(result, Err(Error::Refused(refusal))),
                    (expected, result) => panic!("{expected:?}, and not {result:?}"),
                }
            }
            Event::Cancel(user, back) => {
                let Some((id, window)) = self.reservations[user].iter().rev().nth(back).cloned() else { return };
                let is_held = self.model.kept(now).any(|(_, held, _)| *held == id);
                let result = self.sale.cancel(&self.tokens[user], &id).await;
                // Of a window that is over it may be there still, and matters to nobody.
                assert!(result.is_ok() == is_held || window != self.model.starts, "{result:?}");
                self.model.holds.retain(|(_, held, _)| *held != id);
            }
            Event::Buy(user, back) => {
                let Some((id, window)) = self.reservations[user].iter().rev().nth(back).cloned() else { return };
                let order = format!("order-{}", self.orders.len());
                self.tell(user, &id, window, &order).await;
                self.orders.push((user, id, window, order));
            }
            Event::Again => {
                let Some((user, id, window, order)) = self.orders.last().cloned() else { return };
                self.tell(user, &id, window, &order).await;
            }
            Event::Refresh => {
                self.model.row_sold = self.model.sold.len() as u64;
                self.refresh().await;
            }
            Event::Window => self.begin_window().await,
            Event::Wait(seconds) => self.sale.advance(Duration::from_secs(seconds)),
        }
    }

    async fn compare(&self) {
        let (now, model) = (self.sale.now(), &self.model);
        for (user, token) in self.tokens.iter().enumerate() {
            let found = self.sale.look(Some(token)).await.unwrap();
            assert_eq!((found.left, found.held), (model.left(now), model.kept(now).count() as u64));
            assert_eq!(found.bought, model.has_bought(user));
            assert_eq!(found.reservation.as_ref().map(|held| &held.id), model.mine(user, now));
        }
        assert!(self.sale.stored().await.as_u64() <= Some(PIECES));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_order_of_events_comes_to_what_the_model_says(events in prop::collection::vec(event(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut run = Run::new().await;
            for event in events {
                run.step(event).await;
                run.compare().await;
            }
        });
    }
}
