//! Random sequences of events, against a naive model that consists of lists.

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
/// The length of a window. The next window begins with [`Event::NewWindow`] only.
const WINDOW: Duration = Duration::from_mins(10);

#[derive(Debug, Clone)]
enum Event {
    Reserve(usize),
    /// The user cancels a reservation; 0 is the user's last one.
    Cancel(usize, usize),
    /// The shop sells the user the piece of a reservation (0 is the user's last one) and reports the order.
    Buy(usize, usize),
    /// The shop reports its last order again.
    RepeatOrder,
    /// The row is refreshed.
    Refresh,
    /// The shop begins another sale.
    NewWindow,
    /// Seconds pass.
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let user = || 0..USERS;
    prop_oneof![
        8 => user().prop_map(Event::Reserve),
        2 => (user(), 0..2_usize).prop_map(|(user, back)| Event::Cancel(user, back)),
        2 => (user(), 0..2_usize).prop_map(|(user, back)| Event::Buy(user, back)),
        1 => Just(Event::RepeatOrder),
        1 => Just(Event::Refresh),
        1 => Just(Event::NewWindow),
        4 => prop_oneof![1 => 1..60_u64, 1 => Just(120), 1 => Just(30)].prop_map(Event::Wait),
    ]
}

struct Model {
    starts: Timestamp,
    /// User, id, expiry.
    reservations: Vec<(usize, ReservationId, Timestamp)>,
    /// User and order, in this window.
    sold: BTreeSet<(usize, String)>,
    /// `sale_sold` in the copy of the row.
    row_sold: u64,
}

impl Model {
    fn held(&self, now: Timestamp) -> impl Iterator<Item = &(usize, ReservationId, Timestamp)> {
        self.reservations.iter().filter(move |(_, _, ends)| *ends + GRACE > now)
    }

    fn left(&self, now: Timestamp) -> u64 {
        let sold = self.row_sold.max(self.sold.len() as u64);
        PIECES.saturating_sub(sold).saturating_sub(self.held(now).count() as u64)
    }

    fn reservation_of(&self, user: usize, now: Timestamp) -> Option<&ReservationId> {
        self.held(now).find(|(holder, _, ends)| *holder == user && *ends > now).map(|(_, id, _)| id)
    }

    fn has_bought(&self, user: usize) -> bool {
        self.sold.iter().any(|(buyer, _)| *buyer == user)
    }

    /// The expected result of a reservation: None for a new reservation.
    fn reserve(&self, user: usize, now: Timestamp) -> Option<Result<ReservationId, Refusal>> {
        if self.has_bought(user) {
            return Some(Err(Refusal::AlreadyBought));
        }
        if let Some(id) = self.reservation_of(user, now) {
            return Some(Ok(id.clone()));
        }
        if now >= self.starts + WINDOW {
            return Some(Err(Refusal::Ended));
        }
        (self.left(now) == 0).then_some(Err(Refusal::SoldOut))
    }
}

/// A sale and its model, with the history of a test case.
struct Run {
    sale: Sale,
    tokens: Vec<Token>,
    model: Model,
    /// All reservations of each user, with the start of their window.
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
        let model = Model { starts: sale.now(), reservations: Vec::new(), sold: BTreeSet::new(), row_sold: 0 };
        let mut run = Self { sale, tokens, model, reservations: vec![Vec::new(); USERS], orders: Vec::new() };
        run.begin_window().await;
        run
    }

    async fn begin_window(&mut self) {
        // Windows that begin in the same second are the same window.
        self.sale.advance(Duration::from_secs(1));
        let starts = Timestamp::from_millis(self.sale.now().as_secs() * 1000);
        self.model = Model { starts, reservations: Vec::new(), sold: BTreeSet::new(), row_sold: 0 };
        self.refresh().await;
    }

    async fn refresh(&mut self) {
        let Model { starts, row_sold, .. } = self.model;
        self.sale.put(&self.sale.row(starts, starts + WINDOW, PIECES, row_sold)).await;
    }

    async fn report(&mut self, user: usize, id: &ReservationId, window: Timestamp, order: &str) {
        self.sale.confirm(id, &format!("user-{user}"), order).await;
        if window == self.model.starts {
            self.model.sold.insert((user, order.to_owned()));
            self.model.reservations.retain(|(holder, ..)| *holder != user);
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
                        self.model.reservations.retain(|(holder, ..)| *holder != user);
                        self.model.reservations.push((user, id.clone(), now + HOLD));
                        self.reservations[user].push((id, self.model.starts));
                    }
                    (Some(Ok(id)), Ok(reserved)) => {
                        assert_eq!((reserved.reservation.id, reserved.created), (id, false));
                    }
                    (Some(Err(refusal)), result) => assert_eq!(result, Err(Error::Refused(refusal))),
                    (expected, result) => panic!("expected {expected:?}, found {result:?}"),
                }
            }
            Event::Cancel(user, back) => {
                let Some((id, window)) = self.reservations[user].iter().rev().nth(back).cloned() else { return };
                let is_held = self.model.held(now).any(|(_, held, _)| *held == id);
                let result = self.sale.cancel(&self.tokens[user], &id).await;
                // A reservation of an earlier window may still be stored; its result does not matter.
                assert!(result.is_ok() == is_held || window != self.model.starts, "{result:?}");
                self.model.reservations.retain(|(_, held, _)| *held != id);
            }
            Event::Buy(user, back) => {
                let Some((id, window)) = self.reservations[user].iter().rev().nth(back).cloned() else { return };
                let order = format!("order-{}", self.orders.len());
                self.report(user, &id, window, &order).await;
                self.orders.push((user, id, window, order));
            }
            Event::RepeatOrder => {
                let Some((user, id, window, order)) = self.orders.last().cloned() else { return };
                self.report(user, &id, window, &order).await;
            }
            Event::Refresh => {
                self.model.row_sold = self.model.sold.len() as u64;
                self.refresh().await;
            }
            Event::NewWindow => self.begin_window().await,
            Event::Wait(seconds) => self.sale.advance(Duration::from_secs(seconds)),
        }
    }

    async fn compare(&self) {
        let (now, model) = (self.sale.now(), &self.model);
        for (user, token) in self.tokens.iter().enumerate() {
            let found = self.sale.read(Some(token)).await.unwrap();
            assert_eq!((found.left, found.held), (model.left(now), model.held(now).count() as u64));
            assert_eq!(found.bought, model.has_bought(user));
            assert_eq!(found.reservation.as_ref().map(|held| &held.id), model.reservation_of(user, now));
        }
        assert!(self.sale.stored_reservations().await.as_u64() <= Some(PIECES));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_sequence_of_events_agrees_with_the_model(events in prop::collection::vec(event(), 1..50)) {
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
