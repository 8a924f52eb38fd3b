//! A visitor who shops, and knows what must be in their cart. They do one thing after the other, so there is one right answer at any time.
//! A write that is refused (503) or gets no answer is sent again, the same as before, until it is accepted: then it must have happened once.

use std::{collections::BTreeMap, time::Duration};

use http::StatusCode;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::{shop::Door, tally::Wrong};
use crate::bench::candidate::SERVICE_KEY;

/// Different items, few enough that carts have room for all and many enough that some pages are cold.
const ITEMS: u64 = 60;
/// What a thought takes.
const PAUSE: Duration = Duration::from_millis(60);
/// How long one request may take before it counts as lost. Visitors of pages wait no longer either: it is a failure.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a write is tried again: longer than Redis and the Worker are away together.
const PERSISTENCE: Duration = Duration::from_mins(1);

/// A visitor.
pub struct Visitor {
    door: Door,
    number: u16,
    dice: Dice,
    /// How many requests had a name of their own: orders, idempotency keys, users.
    named: u32,
    user: String,
    token: String,
    cookie: String,
    /// What was accepted: item → quantity.
    cart: BTreeMap<String, u64>,
}

/// What a read came to.
type Answer = Option<(StatusCode, String)>;

impl Visitor {
    pub fn new(number: u16, door: Door) -> Self {
        let (user, token, cookie) = Default::default();
        Self { door, number, dice: Dice(u64::from(number)), named: 0, user, token, cookie, cart: BTreeMap::new() }
    }

    /// Shops until `end`, then compares once more, when everything runs again.
    pub async fn shop_until(mut self, end: Instant) {
        self.log_in().await;
        while Instant::now() < end {
            match self.dice.roll(100) {
                0..55 => self.look().await,
                55..65 => self.set().await,
                65..75 => self.add().await,
                75..82 => drop(self.compare_cart().await),
                82..89 => self.compare_user().await,
                89..94 => self.read_row().await,
                94..98 => self.order().await,
                98.. => {
                    self.log_out().await;
                    self.log_in().await;
                }
            }
            time::sleep(PAUSE).await;
        }
        let end = Instant::now() + PERSISTENCE;
        while Instant::now() < end && !self.compare_cart().await {
            time::sleep(PAUSE).await;
        }
    }

    /// A page, with a session or without.
    async fn look(&mut self) {
        let item = self.item();
        let mut get = self.door.client.get(format!("{}/products/{item}", self.door.url())).timeout(PATIENCE);
        if self.dice.roll(2) == 0 {
            get = get.header("cookie", &self.cookie);
        }
        let asked = Instant::now();
        let answer = self.answer(get).await;
        let status = answer.as_ref().map(|(status, _)| *status);
        let is_whole = answer.is_some_and(|(_, body)| body.len() > 20_000);
        self.door.tally().page(status, is_whole, asked.elapsed());
    }

    async fn set(&mut self) {
        let (item, quantity) = (self.item(), self.dice.roll(6));
        let body = json!({"quantity": quantity});
        self.accepted(&|visitor| visitor.own(Method::PUT, &format!("/cart/items/{item}")).body(body.to_string())).await;
        if quantity == 0 {
            self.cart.remove(&item);
        } else {
            self.cart.insert(item, quantity);
        }
    }

    async fn add(&mut self) {
        let (item, quantity, key) = (self.item(), 1 + self.dice.roll(3), self.name());
        let body = json!({"id": item, "quantity": quantity});
        let post = |visitor: &Self| visitor.own(Method::POST, "/cart/items").header("idempotency-key", &key);
        self.accepted(&|visitor| post(visitor).body(body.to_string())).await;
        *self.cart.entry(item).or_default() += quantity;
    }

    /// Buys the first line of the cart: the order is reported by the service, and takes it out.
    async fn order(&mut self) {
        let Some((item, quantity)) = self.cart.pop_first() else { return };
        let body = json!({"order_id": self.name(), "token": self.token, "items": [{"id": item, "quantity": quantity}]});
        self.accepted(&|visitor| visitor.service("/orders").body(body.to_string())).await;
    }

    async fn log_in(&mut self) {
        self.user = self.name();
        let body = json!({"user": self.user}).to_string();
        let key = self.name();
        let post = |visitor: &Self| visitor.service("/sessions").header("idempotency-key", &key).body(body.clone());
        let session: Value = serde_json::from_str(&self.accepted(&post).await).unwrap_or_default();
        let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
        (self.token, self.cookie) = (text("token"), text("cookie"));
        self.cart.clear();
    }

    async fn log_out(&mut self) {
        self.accepted(&|visitor| visitor.own(Method::DELETE, "/session")).await;
        self.user.clear();
        self.compare_user().await;
    }

    /// Whether there was an answer to compare with.
    async fn compare_cart(&mut self) -> bool {
        let Some((StatusCode::OK, body)) = self.read("/cart").await else { return false };
        let found: Value = serde_json::from_str(&body).unwrap_or_default();
        let lines = found["items"].as_array().into_iter().flatten();
        let quantity = |line: &Value| Some((line["id"].as_str()?.to_owned(), line["quantity"].as_u64()?));
        let found: BTreeMap<_, _> = lines.filter_map(quantity).collect();
        if found != self.cart {
            self.door.tally().wrong(Wrong::Cart, &format!("{found:?} instead of {:?}", self.cart));
            self.cart = found;
        }
        true
    }

    async fn compare_user(&mut self) {
        let Some((StatusCode::OK, body)) = self.read("/session").await else { return };
        let found: Value = serde_json::from_str(&body).unwrap_or_default();
        let found = found["user"].as_str().unwrap_or_default();
        if found != self.user {
            self.door.tally().wrong(Wrong::Session, &format!("{found:?} instead of {:?}", self.user));
        }
    }

    async fn read_row(&mut self) {
        let row = self.item();
        self.read(&format!("/rows/{row}")).await;
    }

    /// A read that may fail while Redis is away, and is then not tried again.
    async fn read(&mut self, path: &str) -> Answer {
        let answer = self.answer(self.own(Method::GET, path)).await;
        let status = answer.as_ref().map(|(status, _)| *status);
        self.door.tally().read(status);
        answer
    }

    /// Sends a write until it is accepted: the body of that answer.
    async fn accepted(&self, write: &(dyn Fn(&Self) -> RequestBuilder + Sync)) -> String {
        let end = Instant::now() + PERSISTENCE;
        loop {
            let answer = self.answer(write(self)).await;
            match answer {
                Some((status, body)) if status.is_success() => {
                    self.door.tally().accepted();
                    return body;
                }
                None | Some((StatusCode::SERVICE_UNAVAILABLE, _)) if Instant::now() < end => {
                    self.door.tally().tried_again();
                    time::sleep(Duration::from_millis(300)).await;
                }
                answer => {
                    self.door.tally().wrong(Wrong::Write, &format!("{answer:?}"));
                    return String::new();
                }
            }
        }
    }

    /// None without one: a connection that was refused or broken, or no answer in time.
    async fn answer(&self, request: RequestBuilder) -> Answer {
        let answer = request.send().await.ok()?;
        Some((answer.status(), answer.text().await.ok()?))
    }

    /// A call of this visitor.
    fn own(&self, method: Method, path: &str) -> RequestBuilder {
        let origin = self.door.url();
        let call = self.door.client.request(method, format!("{origin}/_edge/v1{path}")).timeout(PATIENCE);
        call.header("cookie", &self.cookie).header("origin", origin).header("content-type", "application/json")
    }

    /// A call of the shop's service.
    fn service(&self, path: &str) -> RequestBuilder {
        let call = self.door.client.post(format!("{}/_edge/v1{path}", self.door.url())).timeout(PATIENCE);
        call.bearer_auth(SERVICE_KEY).header("content-type", "application/json")
    }

    fn item(&mut self) -> String {
        // Two rolls: some are more popular than others.
        format!("item-{}", self.dice.roll(ITEMS).min(self.dice.roll(ITEMS)))
    }

    /// A name that nobody else has.
    fn name(&mut self) -> String {
        self.named += 1;
        format!("visitor-{}-{}", self.number, self.named)
    }
}

/// Marsaglia's xorshift (2003): what each visitor does is the same in every run.
struct Dice(u64);

impl Dice {
    /// Less than `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        // Never 0, where it would stay.
        let mut state = self.0 | 1 << 63;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0 = state;
        (state >> 20) % sides
    }
}
