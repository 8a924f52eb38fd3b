//! Flash sales on a real server: who gets a piece, how long they have it, and that it comes back once.

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    orders::flash_sale::{self, FlashSale, GRACE, Reservation, ReservationId, ReserveOutcome, SaleState},
    ports::{
        error::{Error, Refusal},
        time::Timestamp,
    },
    schema::{
        ids::{OrderId, RowId, UserId},
        token::Token,
    },
    sessions,
};
use edgefront_gateway::Fault;
use serde_json::{Value, json};

use crate::support::{Store, row};

/// 500 buyers for 100 pieces.
mod crowd;
/// A hold runs out, is given back, or becomes a sold piece.
mod ends;
/// Any order of events, against a naive model.
mod model;
/// Two at once.
mod races;

const HOLD: Duration = Duration::from_mins(2);
const HOUR: Duration = Duration::from_hours(1);
const MOMENT: Duration = Duration::from_millis(1);

/// A running sale of pans, and users who want one. Time stands still until a test moves it.
pub struct Sale {
    pub store: Store,
    pub app: Rc<App>,
    pub id: RowId,
}

impl Sale {
    /// A sale of `pieces` that began a minute ago and lasts an hour.
    pub async fn of(pieces: u64) -> Self {
        let store = Store::new().await;
        let app = store.app(&[]);
        let sale = Self { store, app, id: row("pan") };
        let starts = sale.now() - Duration::from_mins(1);
        sale.put(&sale.row(starts, starts + HOUR, pieces, 0)).await;
        sale
    }

    pub fn now(&self) -> Timestamp {
        self.app.clock.now()
    }

    pub fn row(&self, starts: Timestamp, ends: Timestamp, pieces: u64, sold: u64) -> Value {
        json!({
            "id": self.id.as_str(), "sale_starts_at": starts.as_secs(), "sale_ends_at": ends.as_secs(),
            "sale_pieces": pieces, "sale_sold": sold, "sale_price_cents": 900, "price_cents": 1200,
        })
    }

    /// Makes `row` the copy of the sale's row, and schedules it.
    pub async fn put(&self, row: &Value) {
        put(&self.store, self.id.as_str(), row, self.now() + HOUR).await;
    }

    /// A new session of `user`.
    pub async fn log_in(&self, user: &str) -> Token {
        sessions::log_in(&self.app.redis, None, &user_id(user), self.now(), &self.app.config.session).await.unwrap()
    }

    pub async fn look(&self, token: Option<&Token>) -> Result<FlashSale, Error> {
        flash_sale::look(&self.app.redis, None, &self.id, token, self.now(), &self.app.config).await
    }

    /// How many are left, and how many are held.
    pub async fn counts(&self) -> (u64, u64) {
        let sale = self.look(None).await.unwrap();
        (sale.left, sale.held)
    }

    pub async fn reserve(&self, token: &Token) -> Result<ReserveOutcome, Error> {
        flash_sale::reserve(&self.app.redis, None, &self.id, token, self.now(), &self.app.config).await
    }

    pub async fn cancel(&self, token: &Token, id: &ReservationId) -> Result<(), Error> {
        flash_sale::cancel(&self.app.redis, &self.id, token, id, self.now(), &self.app.config.session).await
    }

    pub async fn confirm(&self, reservation: &ReservationId, user: &str, order: &str) {
        let order = OrderId::parse(order).unwrap();
        let confirm = flash_sale::confirm(self.store.redis.keys(), &self.id, reservation, &user_id(user), &order);
        self.app.redis.run::<()>(confirm).await.unwrap();
    }

    pub fn advance(&self, duration: Duration) {
        self.store.clock.advance(duration);
    }

    /// How many holds are stored, over or not.
    pub async fn stored(&self) -> Value {
        self.store.raw(&["ZCARD", "held:pan"]).await
    }
}

/// Makes `row` the copy of the row `id`, which is scheduled and due at `due`.
pub async fn put(store: &Store, id: &str, row: &Value, due: Timestamp) {
    store.raw(&["SET", &format!("inv:{id}"), &row.to_string()]).await;
    store.raw(&["ZADD", "schedule:", &due.to_string(), id]).await;
    store.raw(&["ZADD", "delay:", "5", id]).await;
}

fn user_id(user: &str) -> UserId {
    UserId::parse(user).unwrap()
}

fn refused(refusal: Refusal) -> Result<ReserveOutcome, Error> {
    Err(Error::Refused(refusal))
}

#[tokio::test]
async fn a_sale_is_what_its_row_says() {
    let sale = Sale::of(3).await;
    let found = sale.look(None).await.unwrap();
    let starts = Timestamp::from_millis((sale.now() - Duration::from_mins(1)).as_secs() * 1000);
    assert_eq!(
        found,
        FlashSale {
            starts,
            ends: starts + HOUR,
            pieces: 3,
            left: 3,
            held: 0,
            price_cents: Some(900),
            list_cents: Some(1200),
            reservation: None,
            bought: false,
            overdue: false,
        }
    );
    for (now, state) in [
        (starts - MOMENT, SaleState::Upcoming),
        (starts, SaleState::Live),
        (starts + HOUR - MOMENT, SaleState::Live),
        (starts + HOUR, SaleState::Ended),
    ] {
        assert_eq!(found.state(now), state);
    }
    assert_eq!(FlashSale { left: 0, ..found }.state(starts), SaleState::SoldOut);
}

#[tokio::test]
async fn a_row_that_is_no_flash_sale_is_none() {
    let sale = Sale::of(3).await;
    let ada = sale.log_in("ada").await;
    let whole = sale.row(sale.now() - HOUR, sale.now() + HOUR, 3, 0);
    let with = |column: &str, value: Value| {
        let mut row = whole.clone();
        row[column] = value;
        row
    };
    for odd in [
        with("sale_pieces", Value::Null),
        with("sale_pieces", json!("many")),
        with("sale_pieces", json!(-1)),
        with("sale_pieces", json!(1e300)),
        with("sale_starts_at", Value::Null),
        with("sale_ends_at", json!({})),
        json!({"id": "pan", "stock": 7}),
        json!([1]),
        json!(7),
        json!("text"),
    ] {
        sale.put(&odd).await;
        assert_eq!(sale.look(None).await, Err(Error::NotFound("flash sale")), "{odd}");
        assert_eq!(sale.reserve(&ada).await, Err(Error::NotFound("flash sale")), "{odd}");
    }
    sale.store.raw(&["SET", "inv:pan", "{not json"]).await;
    assert_eq!(sale.look(None).await, Err(Error::NotFound("flash sale")));
    // What other columns hold is no reason to fail.
    let mut row = with("sale_sold", Value::Null);
    row["sale_price_cents"] = json!("free");
    row["price_cents"] = Value::Null;
    sale.put(&row).await;
    let found = sale.look(None).await.unwrap();
    assert_eq!((found.left, found.price_cents, found.list_cents), (3, None, None));
    // Scheduled without a copy and without a source that could be asked: not yet. Not scheduled: none.
    sale.store.raw(&["DEL", "inv:pan"]).await;
    assert_eq!(sale.look(None).await, Err(Error::NotYet("row")));
    assert_eq!(sale.reserve(&ada).await, Err(Error::NotYet("row")));
    sale.put(&row).await;
    sale.store.raw(&["ZREM", "schedule:", "pan"]).await;
    assert_eq!(sale.look(None).await, Err(Error::NotFound("flash sale")));
}

#[tokio::test]
async fn a_piece_is_held_for_its_user_on_every_device() {
    let sale = Sale::of(2).await;
    let (ada, phone, bob) = (sale.log_in("ada").await, sale.log_in("ada").await, sale.log_in("bob").await);

    let first = sale.reserve(&ada).await.unwrap();

    assert!(first.created);
    assert_eq!(first.reservation.until, sale.now() + HOLD);
    assert_eq!((first.sale.left, first.sale.held), (1, 1));
    sale.advance(Duration::from_secs(1));
    for token in [&ada, &phone] {
        let again = sale.reserve(token).await.unwrap();
        assert_eq!((again.created, &again.reservation), (false, &first.reservation));
        assert_eq!(sale.look(Some(token)).await.unwrap().reservation.as_ref(), Some(&first.reservation));
    }
    assert_eq!(sale.look(Some(&bob)).await.unwrap().reservation, None);
    assert_eq!(sale.counts().await, (1, 1));
}

#[tokio::test]
async fn nobody_gets_a_piece_without_a_users_session() {
    let sale = Sale::of(2).await;
    let guest = Token::new(sale.now()).unwrap();
    assert_eq!(sale.reserve(&guest).await, Err(Error::NotSignedIn));
    sale.store.raw(&["HSET", "login:", guest.as_str(), ""]).await;
    sale.store.raw(&["ZADD", "recent:", &sale.now().to_string(), guest.as_str()]).await;
    assert_eq!(sale.reserve(&guest).await, Err(Error::NotSignedIn));
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    sessions::log_out(&sale.app.redis, &ada, sale.now(), &sale.app.config.session).await.unwrap();
    assert_eq!(sale.reserve(&ada).await, Err(Error::NotSignedIn));
    assert_eq!(sale.cancel(&ada, &held.id).await, Err(Error::NotSignedIn));
    let bob = sale.log_in("bob").await;
    sale.store.raw(&["ZADD", "recent:", "1000", bob.as_str()]).await;
    assert_eq!(sale.reserve(&bob).await, Err(Error::NotSignedIn), "not seen for the idle time");
    assert_eq!(sale.look(Some(&ada)).await.unwrap().reservation, None);
    // The piece is the user's, not the session's.
    let ada = sale.log_in("ada").await;
    assert_eq!(sale.look(Some(&ada)).await.unwrap().reservation, Some(held));
}

#[tokio::test]
async fn a_piece_is_taken_only_while_the_sale_runs() {
    let sale = Sale::of(2).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let starts = Timestamp::from_millis((sale.now() + HOUR).as_secs() * 1000);
    sale.put(&sale.row(starts, starts + HOUR, 2, 0)).await;
    assert_eq!(sale.reserve(&ada).await, refused(Refusal::NotStarted));
    sale.advance(starts.since(sale.now() + MOMENT));
    assert_eq!(sale.reserve(&ada).await, refused(Refusal::NotStarted));
    sale.advance(MOMENT);
    sale.reserve(&ada).await.unwrap();
    assert_eq!(sale.store.raw(&["KEYS", "*pan"]).await.as_array().map(Vec::len), Some(3));

    sale.advance(HOUR.saturating_sub(MOMENT));
    let last = sale.reserve(&bob).await.unwrap().reservation;
    sale.advance(MOMENT);

    assert_eq!(sale.reserve(&ada).await, refused(Refusal::Ended));
    let again = sale.reserve(&bob).await.unwrap();
    assert_eq!((again.created, again.reservation), (false, last), "a hold outlives the end: its time was told");
}

#[tokio::test]
async fn what_is_sold_is_the_larger_of_two_numbers_that_may_lag() {
    let sale = Sale::of(5).await;
    let starts = sale.now() - Duration::from_mins(1);
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    sale.confirm(&held.id, "ada", "order-1").await;
    assert_eq!(sale.counts().await, (4, 0), "confirmed, and not in the row yet");
    sale.put(&sale.row(starts, starts + HOUR, 5, 1)).await;
    assert_eq!(sale.counts().await, (4, 0), "the same piece, in the row too");
    sale.put(&sale.row(starts, starts + HOUR, 5, 3)).await;
    assert_eq!(sale.counts().await, (2, 0), "two orders whose confirmation was lost");
    sale.put(&sale.row(starts, starts + HOUR, 5, 0)).await;
    assert_eq!(sale.counts().await, (4, 0), "an old copy");
    sale.put(&sale.row(starts, starts + HOUR, 5, 9)).await;
    assert_eq!(sale.counts().await, (0, 0), "never below none");
}

#[tokio::test]
async fn a_new_window_begins_with_nothing_held_and_nothing_sold() {
    let sale = Sale::of(2).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let adas = sale.reserve(&ada).await.unwrap().reservation;
    let bobs = sale.reserve(&bob).await.unwrap().reservation;
    sale.confirm(&adas.id, "ada", "order-1").await;
    assert_eq!(sale.counts().await, (0, 1));

    sale.put(&sale.row(sale.now(), sale.now() + HOUR, 2, 0)).await;

    assert_eq!(sale.counts().await, (2, 0));
    let found = sale.look(Some(&ada)).await.unwrap();
    assert!(!found.bought && found.reservation.is_none());
    assert_eq!(sale.look(Some(&bob)).await.unwrap().reservation, None);
    assert!(sale.reserve(&ada).await.unwrap().created);
    assert_eq!((sale.counts().await, sale.stored().await), ((1, 1), json!(1)));
    // A late order of the window before is none of this one.
    sale.confirm(&bobs.id, "bob", "order-2").await;
    assert_eq!(sale.cancel(&bob, &bobs.id).await, Err(Error::NotFound("reservation")));
    assert_eq!(sale.counts().await, (1, 1));
    assert!(sale.reserve(&bob).await.unwrap().created);
}

#[tokio::test]
async fn the_keys_of_a_sale_expire_some_time_after_it() {
    let sale = Sale::of(2).await;
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    let lives = async |key: &str| sale.store.raw(&["TTL", key]).await.as_i64().unwrap();
    let (rest, day) = (59 * 60, 86_400);
    for key in ["flash:pan", "held:pan"] {
        assert!((rest + day..rest + day + 300).contains(&lives(key).await), "{key}: {}", lives(key).await);
    }
    sale.confirm(&held.id, "ada", "order-1").await;
    assert!(lives("flash:pan").await > rest + day);
    // Where they were lost, an order that comes later does not leave one behind for ever.
    sale.store.raw(&["DEL", "flash:pan", "held:pan"]).await;
    sale.confirm(&held.id, "ada", "order-1").await;
    assert!((day - 60..=day).contains(&lives("flash:pan").await));
    assert_eq!(sale.counts().await, (1, 0));
}

#[tokio::test]
async fn no_more_holds_are_stored_than_there_are_pieces() {
    let sale = Sale::of(3).await;
    for round in 0..3 {
        for buyer in 0..3 {
            let token = sale.log_in(&format!("buyer-{round}-{buyer}")).await;
            assert!(sale.reserve(&token).await.unwrap().created);
        }
        assert_eq!(sale.stored().await, 3);
        assert_eq!(sale.store.raw(&["HLEN", "flash:pan"]).await, 4, "the window, and a hold for each");
        sale.advance(HOLD + GRACE);
    }
}

#[tokio::test]
async fn a_reservation_whose_reply_was_lost_is_found_by_the_retry() {
    let sale = Sale::of(2).await;
    let ada = sale.log_in("ada").await;
    sale.reserve(&sale.log_in("bob").await).await.unwrap();
    sale.store.gateway.set_fault(Some(Fault::LoseReply));
    let before = sale.store.counts().requests;
    let result = sale.reserve(&ada).await;
    sale.store.gateway.set_fault(None);
    assert!(matches!(result, Err(Error::Redis(_))), "{result:?}");
    assert_eq!(sale.store.counts().requests - before, 2, "it is harmless to repeat, so it was");
    // Where the session is asked for before, that was the reply that was lost.
    let is_executed = sale.store.apart() == 0;
    assert_eq!(sale.counts().await, if is_executed { (0, 2) } else { (1, 1) });
    let ReserveOutcome { reservation, created, .. } = sale.reserve(&ada).await.unwrap();
    assert_eq!(created, !is_executed);
    assert_eq!(sale.look(Some(&ada)).await.unwrap().reservation, Some::<Reservation>(reservation));
}
