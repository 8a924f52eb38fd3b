//! Flash sales on a real server: reserving a piece, its expiry, and its return to the sale.

use std::{rc::Rc, time::Duration};

use edgefront::{
    App,
    orders::flash_sale::{self, FlashSale, FlashSales, GRACE, Reservation, ReservationId, ReserveOutcome, SaleState},
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

/// 500 buyers and 100 pieces, over HTTP.
mod crowd;
/// Reservations that expire, are cancelled, or are confirmed by an order.
mod ends;
/// Random sequences of events, against a naive model.
mod model;
/// Concurrent calls.
mod races;

const HOLD: Duration = Duration::from_mins(2);
const HOUR: Duration = Duration::from_hours(1);
const MOMENT: Duration = Duration::from_millis(1);

/// A running sale of pans. Time stands still until a test advances it.
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

    /// Schedules the sale's row and makes `row` its copy.
    pub async fn put(&self, row: &Value) {
        put(&self.store, self.id.as_str(), row, self.now() + HOUR).await;
    }

    /// A new session of `user`.
    pub async fn log_in(&self, user: &str) -> Token {
        crate::support::log_in(&self.app.redis, None, &user_id(user), self.now(), &self.app.config.session)
            .await
            .unwrap()
    }

    fn sales(&self) -> FlashSales<'_> {
        FlashSales { redis: &self.app.redis, source: None, config: &self.app.config }
    }

    pub async fn read(&self, token: Option<&Token>) -> Result<FlashSale, Error> {
        self.sales().read(&self.id, token, self.now()).await
    }

    /// The pieces that are left, and the pieces that are held.
    pub async fn counts(&self) -> (u64, u64) {
        let sale = self.read(None).await.unwrap();
        (sale.left, sale.held)
    }

    pub async fn reserve(&self, token: &Token) -> Result<ReserveOutcome, Error> {
        self.sales().reserve(&self.id, token, self.now()).await
    }

    pub async fn cancel(&self, token: &Token, id: &ReservationId) -> Result<(), Error> {
        self.sales().cancel(&self.id, token, id, self.now()).await
    }

    pub async fn confirm(&self, reservation: &ReservationId, user: &str, order: &str) {
        let order = OrderId::parse(order).unwrap();
        let keys = self.store.redis.keys();
        let confirm = flash_sale::confirm_command(keys, &self.id, reservation, &user_id(user), &order);
        self.app.redis.run::<()>(confirm).await.unwrap();
    }

    pub fn advance(&self, duration: Duration) {
        self.store.clock.advance(duration);
    }

    /// The number of stored reservations, including expired ones.
    pub async fn stored_reservations(&self) -> Value {
        self.store.raw(&["ZCARD", "held:pan"]).await
    }
}

/// Schedules the row `id` to be due at `due`, and makes `row` its copy.
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
async fn a_sale_has_the_columns_of_its_row() {
    let sale = Sale::of(3).await;
    let found = sale.read(None).await.unwrap();
    let starts = Timestamp::from_millis((sale.now() - Duration::from_mins(1)).as_secs() * 1000);
    assert_eq!(
        found,
        FlashSale {
            starts,
            ends: starts + HOUR,
            pieces: 3,
            sold: 0,
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
async fn a_row_without_the_columns_of_a_sale_is_not_found() {
    let sale = Sale::of(3).await;
    let ada = sale.log_in("ada").await;
    let whole = sale.row(sale.now() - HOUR, sale.now() + HOUR, 3, 0);
    let with = |column: &str, value: Value| {
        let mut row = whole.clone();
        row[column] = value;
        row
    };
    for invalid in [
        with("sale_pieces", Value::Null),
        with("sale_pieces", json!("many")),
        with("sale_pieces", json!(-1)),
        with("sale_pieces", json!(1e300)),
        with("sale_starts_at", Value::Null),
        with("sale_ends_at", json!({})),
        json!({"id": "pan", "stock": 7}),
        json!({}),
    ] {
        sale.put(&invalid).await;
        assert_eq!(sale.read(None).await, Err(Error::NotFound("flash sale")), "{invalid}");
        assert_eq!(sale.reserve(&ada).await, Err(Error::NotFound("flash sale")), "{invalid}");
    }
    // A copy that is not a JSON object counts as missing.
    for invalid in ["", "{not json", "\"text\"", "[1]", "7"] {
        sale.store.raw(&["SET", "inv:pan", invalid]).await;
        assert_eq!(sale.read(None).await, Err(Error::NotYet), "{invalid}");
    }
    sale.store.raw(&["DEL", "inv:pan"]).await;
    sale.store.raw(&["RPUSH", "inv:pan", "another type"]).await;
    assert_eq!(sale.read(None).await, Err(Error::NotYet));
    // Invalid values in the other columns do not make the row invalid.
    let mut row = with("sale_sold", Value::Null);
    row["sale_price_cents"] = json!("free");
    row["price_cents"] = Value::Null;
    sale.put(&row).await;
    let found = sale.read(None).await.unwrap();
    assert_eq!((found.left, found.price_cents, found.list_cents), (3, None, None));
    // Scheduled, without a copy and without a source: not yet. Not scheduled: not found.
    sale.store.raw(&["DEL", "inv:pan"]).await;
    assert_eq!(sale.read(None).await, Err(Error::NotYet));
    assert_eq!(sale.reserve(&ada).await, Err(Error::NotYet));
    sale.put(&row).await;
    sale.store.raw(&["ZREM", "schedule:", "pan"]).await;
    assert_eq!(sale.read(None).await, Err(Error::NotFound("flash sale")));
}

#[tokio::test]
async fn a_reservation_belongs_to_the_user_on_every_device() {
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
        assert_eq!(sale.read(Some(token)).await.unwrap().reservation.as_ref(), Some(&first.reservation));
    }
    assert_eq!(sale.read(Some(&bob)).await.unwrap().reservation, None);
    assert_eq!(sale.counts().await, (1, 1));
}

#[tokio::test]
async fn a_reservation_requires_a_live_session_of_a_user() {
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
    // This session is not young, so its last activity decides.
    let idle = sale.app.config.session.idle;
    let bob = Token::new(sale.now() - idle).unwrap();
    sale.store.raw(&["HSET", "login:", bob.as_str(), "bob"]).await;
    for (seen, lives) in [(sale.now() - idle - MOMENT, false), (sale.now() - idle, true)] {
        sale.store.raw(&["ZADD", "recent:", &seen.to_string(), bob.as_str()]).await;
        assert_eq!(sale.reserve(&bob).await.is_ok(), lives, "{seen}");
    }
    assert_eq!(sale.read(Some(&ada)).await.unwrap().reservation, None);
    // The reservation belongs to the user, not to the session.
    let ada = sale.log_in("ada").await;
    assert_eq!(sale.read(Some(&ada)).await.unwrap().reservation, Some(held));
}

#[tokio::test]
async fn a_piece_can_be_reserved_only_while_the_sale_runs() {
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
    assert_eq!((again.created, again.reservation), (false, last), "a reservation outlives the end of the sale");
}

#[tokio::test]
async fn the_larger_of_two_outdated_numbers_counts_as_sold() {
    let sale = Sale::of(5).await;
    let starts = sale.now() - Duration::from_mins(1);
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    sale.confirm(&held.id, "ada", "order-1").await;
    assert_eq!(sale.counts().await, (4, 0), "confirmed, not in the row yet");
    sale.put(&sale.row(starts, starts + HOUR, 5, 1)).await;
    assert_eq!(sale.counts().await, (4, 0), "the same piece, now also in the row");
    sale.put(&sale.row(starts, starts + HOUR, 5, 3)).await;
    assert_eq!(sale.counts().await, (2, 0), "two more orders, whose confirmations were lost");
    sale.put(&sale.row(starts, starts + HOUR, 5, 0)).await;
    assert_eq!(sale.counts().await, (4, 0), "an outdated copy");
    sale.put(&sale.row(starts, starts + HOUR, 5, 9)).await;
    assert_eq!(sale.counts().await, (0, 0), "never below zero");
}

#[tokio::test]
async fn a_new_window_begins_without_reservations_and_sold_pieces() {
    let sale = Sale::of(2).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let adas = sale.reserve(&ada).await.unwrap().reservation;
    let bobs = sale.reserve(&bob).await.unwrap().reservation;
    sale.confirm(&adas.id, "ada", "order-1").await;
    assert_eq!(sale.counts().await, (0, 1));

    sale.put(&sale.row(sale.now(), sale.now() + HOUR, 2, 0)).await;

    assert_eq!(sale.counts().await, (2, 0));
    let found = sale.read(Some(&ada)).await.unwrap();
    assert!(!found.bought && found.reservation.is_none());
    assert_eq!(sale.read(Some(&bob)).await.unwrap().reservation, None);
    assert!(sale.reserve(&ada).await.unwrap().created);
    assert_eq!((sale.counts().await, sale.stored_reservations().await), ((1, 1), json!(1)));
    // A late order of the previous window does not count in this one.
    sale.confirm(&bobs.id, "bob", "order-2").await;
    assert_eq!(sale.cancel(&bob, &bobs.id).await, Err(Error::NotFound("reservation")));
    assert_eq!(sale.counts().await, (1, 1));
    assert!(sale.reserve(&bob).await.unwrap().created);
}

#[tokio::test]
async fn the_keys_of_a_sale_expire_a_day_after_it() {
    let sale = Sale::of(2).await;
    let ada = sale.log_in("ada").await;
    let held = sale.reserve(&ada).await.unwrap().reservation;
    let ttl = async |key: &str| sale.store.raw(&["TTL", key]).await.as_i64().unwrap();
    let (remaining, day) = (59 * 60, 86_400);
    for key in ["flash:pan", "held:pan"] {
        assert!((remaining + day..remaining + day + 300).contains(&ttl(key).await), "{key}: {}", ttl(key).await);
    }
    sale.confirm(&held.id, "ada", "order-1").await;
    assert!(ttl("flash:pan").await > remaining + day);
    // If the keys are lost, a later order creates one that expires too.
    sale.store.raw(&["DEL", "flash:pan", "held:pan"]).await;
    sale.confirm(&held.id, "ada", "order-1").await;
    assert!((day - 60..=day).contains(&ttl("flash:pan").await));
    assert_eq!(sale.counts().await, (1, 0));
}

#[tokio::test]
async fn the_purchases_of_a_sale_are_known_until_its_later_end() {
    let sale = Sale::of(1).await;
    let (ada, bob) = (sale.log_in("ada").await, sale.log_in("bob").await);
    let held = sale.reserve(&ada).await.unwrap().reservation;
    sale.confirm(&held.id, "ada", "order-1").await;
    let starts = sale.now() - Duration::from_mins(1);
    sale.put(&sale.row(starts, starts + 24 * HOUR, 1, 1)).await;
    assert!(sale.reserve(&bob).await.is_err(), "sold out");
    let ttl = sale.store.raw(&["TTL", "flash:pan"]).await.as_i64().unwrap();
    assert!(ttl > 2 * 86_400 - 120, "{ttl}");
}

#[tokio::test]
async fn at_most_one_reservation_is_stored_per_piece() {
    let sale = Sale::of(3).await;
    for round in 0..3 {
        for buyer in 0..3 {
            let token = sale.log_in(&format!("buyer-{round}-{buyer}")).await;
            assert!(sale.reserve(&token).await.unwrap().created);
        }
        assert_eq!(sale.stored_reservations().await, 3);
        assert_eq!(sale.store.raw(&["HLEN", "flash:pan"]).await, 5, "the window, its upkeep, and three reservations");
        sale.advance(HOLD + GRACE);
    }
}

#[tokio::test]
async fn a_retry_after_a_lost_reply_finds_the_reservation() {
    let sale = Sale::of(2).await;
    let ada = sale.log_in("ada").await;
    sale.reserve(&sale.log_in("bob").await).await.unwrap();
    sale.store.gateway.set_fault(Some(Fault::LoseReply));
    let before = sale.store.counts().requests;
    let result = sale.reserve(&ada).await;
    sale.store.gateway.set_fault(None);
    assert!(matches!(result, Err(Error::Redis(_))), "{result:?}");
    assert_eq!(sale.store.counts().requests - before, 2, "the idempotent call was repeated");
    // In the sharded layout the lost reply was that of the session check.
    let is_executed = sale.store.apart() == 0;
    assert_eq!(sale.counts().await, if is_executed { (0, 2) } else { (1, 1) });
    let ReserveOutcome { reservation, created, .. } = sale.reserve(&ada).await.unwrap();
    assert_eq!(created, !is_executed);
    assert_eq!(sale.read(Some(&ada)).await.unwrap().reservation, Some::<Reservation>(reservation));
}
