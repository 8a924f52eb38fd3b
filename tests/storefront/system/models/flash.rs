//! A flash sale: see `models/src/flash.rs`.

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    orders::flash_sale::{FlashSales, GRACE, ReservationId, confirm_command},
    ports::{error::Error, time::Timestamp},
    schema::{
        ids::{OrderId, RowId, UserId},
        token::Token,
    },
};
use edgefront_gateway::{Fault, FaultScope};
use edgefront_models::{
    flash::{Action, Flash, HOLD, Hold, Id, Report, State, WINDOW},
    of_flash,
};
use serde_json::json;

use super::{Real, Step, equal, replay_all};
use crate::support::{Store, row};

/// A time step of the model.
const STEP: Duration = GRACE;
const USERS: [&str; 2] = ["ada", "bob"];

struct World {
    app: Rc<App>,
    sale: RowId,
    began: Timestamp,
    tokens: Vec<Token>,
    /// In the order of the model's ids.
    reservations: Vec<ReservationId>,
}

impl World {
    fn time(&self, steps: u8) -> Timestamp {
        self.began + STEP * u32::from(steps)
    }

    fn sales(&self) -> FlashSales<'_> {
        FlashSales { redis: &self.app.redis, source: None, config: &self.app.config }
    }

    /// Windows that begin in the same second are the same, so each begins some seconds later than in the model.
    fn starts(&self, (window, starts, _): (Id, u8, u8)) -> Timestamp {
        self.time(starts) - Duration::from_secs(10 - u64::from(window))
    }

    async fn put_row(&self, store: &Store, row: (Id, u8, u8), pieces: u8) {
        let copy = json!({
            "id": self.sale.as_str(), "sale_starts_at": self.starts(row).as_secs(),
            "sale_ends_at": self.time(row.1 + WINDOW).as_secs(), "sale_pieces": pieces, "sale_sold": row.2,
        });
        store.raw(&["SET", "inv:pan", &copy.to_string()]).await;
        store.raw(&["ZADD", "schedule:", &self.time(100).to_string(), "pan"]).await;
        store.raw(&["ZADD", "delay:", "3600", "pan"]).await;
    }

    /// The id of a reservation in `window`, for a report of an order.
    fn reservation_in(&self, window: Id, state: &State) -> ReservationId {
        let starts = [state.database, state.row].into_iter().find(|row| row.0 == window).unwrap_or((0, 0, 0));
        let window = format!("{}.", self.starts(starts).as_secs());
        let known = self.reservations.iter().find(|id| id.as_str().starts_with(&window));
        known.expect("a reported order had a reservation").clone()
    }

    async fn confirm(&self, report: Report, state: &State) -> Result<(), Error> {
        let user = user(state.orders[usize::from(report.order)].user);
        let order = OrderId::parse(&format!("order-{}", report.order))?;
        let id = self.reservation_in(report.window, state);
        let command = confirm_command(self.app.redis.keys(), &self.sale, &id, &user, &order);
        Ok(self.app.redis.run(command).await?)
    }
}

impl Real<Flash> for World {
    async fn new(store: &Store, model: &Flash) -> Self {
        let hold = (STEP * u32::from(HOLD)).as_secs().to_string();
        let app = store.app(&[("FLASH_HOLD", &hold)]);
        let next_second = 1000 - app.clock.now().as_millis() % 1000;
        store.clock.advance(Duration::from_millis(next_second));
        let began = app.clock.now();
        let mut tokens = Vec::new();
        for number in 0..USERS.len() {
            let user = user(u8::try_from(number).expect("few users"));
            let token = crate::support::log_in(&app.redis, None, &user, began, &app.config.session).await;
            tokens.push(token.expect("Redis answers"));
        }
        let world = Self { app, sale: row("pan"), began, tokens, reservations: Vec::new() };
        world.put_row(store, (0, 0, 0), model.pieces).await;
        world
    }

    async fn act(&mut self, store: &Store, step: &Step<'_, Flash>) -> Result<(), String> {
        let (now, failed) = (self.app.clock.now(), |error: Error| error.to_string());
        match *step.action {
            Action::Reserve { user, is_reply_lost } => {
                if is_reply_lost {
                    store.gateway.set_fault_for(Fault::LoseReply, FaultScope::Next(2));
                }
                let token = &self.tokens[usize::from(user)];
                let outcome = self.sales().reserve(&self.sale, token, now).await;
                store.gateway.set_fault(None);
                let holds = step.model.reservation(step.after, user).is_some();
                match outcome {
                    Err(Error::Redis(_)) if is_reply_lost => {}
                    Err(Error::Refused(_)) if !holds || step.model.has_bought(step.after, user) => {}
                    Ok(_) if holds && !is_reply_lost => {}
                    other => return Err(format!("{other:?}")),
                }
                // Found by its user, even if the reply was lost.
                let found = self.sales().read(&self.sale, Some(token), now).await.map_err(failed)?.reservation;
                let is_new = |id: &ReservationId| !self.reservations.contains(id);
                self.reservations.extend(found.map(|found| found.id).filter(is_new));
            }
            Action::Cancel { user, is_old } => {
                let told = step.before.told[usize::from(user)][usize::from(is_old)].ok_or("no reservation")?;
                let (token, id) = (&self.tokens[usize::from(user)], &self.reservations[usize::from(told.id)]);
                match self.sales().cancel(&self.sale, token, id, now).await {
                    Ok(()) | Err(Error::NotFound(_)) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            Action::Deliver(report) => self.confirm(report, step.before).await.map_err(failed)?,
            Action::Refresh => self.put_row(store, step.after.row, step.model.pieces).await,
            Action::Wait => store.clock.advance(STEP),
            Action::Buy(_) | Action::Lose(_) | Action::ReportAgain(_) | Action::BeginWindow => {}
        }
        Ok(())
    }

    async fn compare(&self, store: &Store, model: &Flash, state: &State) -> Result<(), String> {
        for (number, token) in self.tokens.iter().enumerate() {
            let user = u8::try_from(number).expect("few users");
            let sales = FlashSales { redis: &store.aside, ..self.sales() };
            let read = sales.read(&self.sale, Some(token), self.app.clock.now()).await;
            let read = read.map_err(|error| error.to_string())?;
            equal("pieces left", &read.left, &model.pieces_left(state).into())?;
            equal("pieces held", &read.held, &model.pieces_held(state).into())?;
            equal(&format!("purchase of {number}"), &read.bought, &model.has_bought(state, user))?;
            let reservation = read.reservation.map(|held| (held.id, held.until));
            let named = |hold: Hold| (self.reservations[usize::from(hold.id)].clone(), self.time(hold.ends));
            equal(&format!("reservation of {number}"), &reservation, &model.reservation(state, user).map(named))?;
        }
        let sold = store.raw(&["HGET", "flash:pan", "sold"]).await;
        let sold = sold.as_str().and_then(|sold| sold.parse().ok()).unwrap_or(0);
        equal("orders counted", &sold, &state.sale.sold)
    }
}

fn user(number: Id) -> UserId {
    UserId::parse(USERS[usize::from(number)]).expect("a user")
}

#[tokio::test]
async fn the_real_flash_sale_does_what_the_model_does() {
    replay_all::<Flash, World>(of_flash()).await;
}
