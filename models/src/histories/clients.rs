//! Clients of a running shop. Several share one cart, or compete for the pieces of one sale. Each gives up a request
//! after a short time, does not know its outcome then, and goes on.

use std::{
    collections::BTreeMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

use super::{
    Recorder, Verdict,
    cart::{self, Item},
    stock::{self, Reserved, Stock},
};

/// Clients of each cart and of each sale.
const CLIENTS: u8 = 4;
/// The items of a cart.
const ITEMS: u64 = 2;
/// Time that a client waits for a response: now and then shorter than the Worker waits for Redis.
const PATIENCE: [Duration; 3] = [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(2)];
const PAUSE: Duration = Duration::from_millis(25);
/// Time for which a round tries to begin while Redis is down.
const BEGIN: Duration = Duration::from_secs(30);
/// A new cart and a new sale after this time, so that few operations without a response are open.
pub const ROUND: Duration = Duration::from_secs(2);

/// A shop under test.
#[derive(Clone)]
pub struct Shop {
    pub http: Client,
    /// The address, which may change.
    pub url: Arc<dyn Fn() -> String + Send + Sync>,
    pub service_key: String,
}

/// The recorded histories of a run.
#[derive(Default)]
pub struct Histories {
    carts: Recorder<cart::Operation>,
    sales: Recorder<stock::Operation>,
}

/// The number of objects by verdict, and of operations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    pub linearizable: usize,
    pub undecided: usize,
    /// The objects whose histories are not linearizable.
    pub violated: Vec<String>,
    pub operations: usize,
    pub without_response: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.linearizable + self.undecided + self.violated.len();
        write!(
            f,
            "{} operations on {objects} shared cart items and flash sales, {} of them without a response: {} histories \
             are linearizable, {} are not, {} could not be decided",
            self.operations,
            self.without_response,
            self.linearizable,
            self.violated.len(),
            self.undecided
        )
    }
}

impl Histories {
    /// Checks all histories.
    #[must_use]
    pub fn check(&self) -> Summary {
        let verdicts = self.carts.check::<Item>().into_iter().chain(self.sales.check::<Stock>());
        let (carts, sales) = (self.carts.count(), self.sales.count());
        let mut summary =
            Summary { operations: carts.0 + sales.0, without_response: carts.1 + sales.1, ..Summary::default() };
        for (object, verdict) in verdicts {
            match verdict {
                Verdict::Linearizable => summary.linearizable += 1,
                Verdict::Undecided => summary.undecided += 1,
                Verdict::Violated => summary.violated.push(object),
            }
        }
        summary
    }

    /// Lets clients use carts and sales until `end`, round after round. The shop's origin must have a row with the
    /// columns of a running flash sale of [`stock::PIECES`] pieces under every id that begins with `sale`.
    pub async fn record_until(self: Arc<Self>, shop: Shop, end: Instant) {
        let mut round = 0;
        while Instant::now() + ROUND < end {
            round += 1;
            let until = Instant::now() + ROUND;
            let mut clients = JoinSet::new();
            if let Some(cookie) = shop.log_in(&format!("cart-{round}")).await {
                for number in 0..CLIENTS {
                    let client = self.client(&shop, round, number, cookie.clone());
                    clients.spawn(client.use_cart_until(until));
                }
            }
            let sale = format!("sale-{round}");
            if shop.schedule(&sale).await {
                for number in 0..CLIENTS {
                    if let Some(cookie) = shop.log_in(&format!("buyer-{round}-{number}")).await {
                        clients.spawn(self.client(&shop, round, number, cookie).use_sale_until(until, sale.clone()));
                    }
                }
            }
            clients.join_all().await;
        }
    }

    fn client(self: &Arc<Self>, shop: &Shop, round: u64, number: u8, cookie: String) -> SharedClient {
        let random = (round << 8 | u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        SharedClient { histories: self.clone(), shop: shop.clone(), round, number, cookie, random, names: 0 }
    }
}

impl Shop {
    /// A session's cookie. `None` if the shop does not answer for long.
    async fn log_in(&self, user: &str) -> Option<String> {
        let answer = self.call(Method::POST, "/sessions", &json!({"user": user})).await?;
        Some(answer["cookie"].as_str()?.to_owned())
    }

    async fn schedule(&self, row: &str) -> bool {
        self.call(Method::PUT, &format!("/rows/{row}/schedule"), &json!({"every": 3600})).await.is_some()
    }

    /// Calls the service part of the API until it answers.
    async fn call(&self, method: Method, path: &str, body: &Value) -> Option<Value> {
        let end = Instant::now() + BEGIN;
        while Instant::now() < end {
            let request = self.request(method.clone(), path).bearer_auth(&self.service_key).body(body.to_string());
            if let Ok(response) = request.timeout(BEGIN).send().await
                && response.status().is_success()
            {
                return serde_json::from_slice(&response.bytes().await.ok()?).ok();
            }
            time::sleep(PAUSE).await;
        }
        None
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = (self.url)();
        let request = self.http.request(method, format!("{url}/_edge/v1{path}"));
        request.header("origin", url).header("content-type", "application/json")
    }
}

/// A client with a session that it may share with others.
struct SharedClient {
    histories: Arc<Histories>,
    shop: Shop,
    round: u64,
    number: u8,
    cookie: String,
    random: u64,
    names: u32,
}

impl SharedClient {
    /// Marsaglia's xorshift (2003).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % limit
    }

    /// Sends a request once. `None`: the outcome is unknown.
    async fn send(&mut self, method: Method, path: &str, body: Value) -> Option<(StatusCode, Value)> {
        self.names += 1;
        let key = format!("{}-{}-{}", self.round, self.number, self.names);
        let patience = PATIENCE[usize::try_from(self.below(3)).unwrap_or(0)];
        let request = self.shop.request(method, path).header("cookie", &self.cookie).header("idempotency-key", key);
        let response = request.body(body.to_string()).timeout(patience).send().await.ok()?;
        let status = response.status();
        let body = response.bytes().await.ok()?;
        // A server error says nothing about the effect.
        (!status.is_server_error()).then(|| (status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn use_cart_until(mut self, end: Instant) {
        while Instant::now() < end {
            let (item, quantity) = (format!("item-{}", self.below(ITEMS)), 1 + self.below(3));
            let object = format!("cart {} {item}", self.round);
            let number = u32::try_from(quantity).unwrap_or(1);
            let (operation, method, path, body) = match self.below(4) {
                0 => {
                    let path = format!("/cart/items/{item}");
                    (cart::Operation::Set(number, None), Method::PUT, path, json!({"quantity": quantity}))
                }
                1 | 2 => {
                    let body = json!({"id": item, "quantity": quantity});
                    (cart::Operation::Add(number, None), Method::POST, "/cart/items".to_owned(), body)
                }
                _ => (cart::Operation::Read(None), Method::GET, "/cart".to_owned(), Value::Null),
            };
            let histories = self.histories.clone();
            let call = histories.carts.call(&object, operation.clone());
            if let Some((status, cart)) = self.send(method, &path, body).await
                && status.is_success()
            {
                let found = quantities(&cart).remove(&item).unwrap_or(0);
                let with_result = match operation {
                    cart::Operation::Set(quantity, _) => cart::Operation::Set(quantity, Some(found)),
                    cart::Operation::Add(quantity, _) => cart::Operation::Add(quantity, Some(found)),
                    cart::Operation::Read(_) => cart::Operation::Read(Some(found)),
                };
                histories.carts.response(call, with_result);
            }
            time::sleep(PAUSE).await;
        }
    }

    async fn use_sale_until(mut self, end: Instant, sale: String) {
        let mut reservation = None::<String>;
        let (user, histories) = (self.number, self.histories.clone());
        while Instant::now() < end {
            match (self.below(3), reservation.clone()) {
                (0, _) => {
                    let call = histories.sales.call(&sale, stock::Operation::Look { result: None });
                    if let Some((StatusCode::OK, found)) =
                        self.send(Method::GET, &format!("/flash/{sale}"), Value::Null).await
                    {
                        let left = found["left"].as_u64().and_then(|left| usize::try_from(left).ok());
                        histories.sales.response(call, stock::Operation::Look { result: left });
                    }
                }
                (1, Some(id)) => {
                    let operation = |result| stock::Operation::Cancel { user, reservation: hash(&id), result };
                    let call = histories.sales.call(&sale, operation(None));
                    let path = format!("/flash/{sale}/reservations/{id}");
                    match self.send(Method::DELETE, &path, Value::Null).await.map(|(status, _)| status) {
                        Some(StatusCode::NO_CONTENT) => histories.sales.response(call, operation(Some(true))),
                        Some(StatusCode::NOT_FOUND) => histories.sales.response(call, operation(Some(false))),
                        _ => {}
                    }
                }
                _ => {
                    let operation = |result| stock::Operation::Reserve { user, result };
                    let call = histories.sales.call(&sale, operation(None));
                    let path = format!("/flash/{sale}/reservations");
                    match self.send(Method::POST, &path, Value::Null).await {
                        Some((StatusCode::OK | StatusCode::CREATED, found)) => {
                            reservation = found["reservation"]["id"].as_str().map(str::to_owned);
                            let held = reservation.as_ref().map(|id| Reserved::Held(hash(id)));
                            histories.sales.response(call, operation(held));
                        }
                        Some((StatusCode::CONFLICT, _)) => {
                            histories.sales.response(call, operation(Some(Reserved::SoldOut)));
                        }
                        _ => {}
                    }
                }
            }
            time::sleep(PAUSE).await;
        }
    }
}

/// The lines of a cart.
fn quantities(cart: &Value) -> BTreeMap<String, u32> {
    let lines = cart["items"].as_array().into_iter().flatten();
    let quantity = |line: &Value| u32::try_from(line["quantity"].as_u64()?).ok();
    lines.filter_map(|line| Some((line["id"].as_str()?.to_owned(), quantity(line)?))).collect()
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
