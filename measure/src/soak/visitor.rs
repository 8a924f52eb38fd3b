//! A visitor who shops and knows what the cart must contain. The visitor does one thing at a time, so there is always
//! one correct state. A write that gets 503 or no response is sent again unchanged until it is accepted. Then it must
//! have happened exactly once.

use std::{collections::BTreeMap, time::Duration};

use http::StatusCode;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::time::{self, Instant};

use super::{random::Xorshift, shop::ShopHandle, tally::Violation};
use crate::{origin::PAGE_BYTES, worker_variables::SERVICE_KEY};

/// The number of items. A cart has room for all of them, and some pages stay cold.
const ITEMS: u64 = 60;
/// The pause between two actions.
const PAUSE: Duration = Duration::from_millis(60);
/// A request without a response in this time is lost. For a page, that is a violation.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for retries of a write: longer than Redis and the Worker are down together.
const RETRY_TIME: Duration = Duration::from_mins(1);
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// A visitor and the state that the shop must have for them.
pub struct Visitor {
    shop: ShopHandle,
    number: u16,
    random: Xorshift,
    /// The number of unique names so far: order ids, idempotency keys, users.
    names: u32,
    user: String,
    token: String,
    cookie: String,
    /// The accepted cart: quantities by item.
    cart: BTreeMap<String, u64>,
}

/// Status and body; `None` if the connection failed or the response did not arrive in time.
type Response = Option<(StatusCode, String)>;

impl Visitor {
    pub fn new(number: u16, shop: ShopHandle) -> Self {
        let (user, token, cookie) = Default::default();
        let random = Xorshift::new(u64::from(number));
        Self { shop, number, random, names: 0, user, token, cookie, cart: BTreeMap::new() }
    }

    /// Shops until `end`. Then compares the cart once more, when Redis and the Worker run again.
    pub async fn shop_until(mut self, end: Instant) {
        self.log_in().await;
        while Instant::now() < end {
            match self.random.below(100) {
                0..55 => self.view_page().await,
                55..65 => self.set_quantity().await,
                65..75 => self.add_to_cart().await,
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
        let end = Instant::now() + RETRY_TIME;
        while !self.compare_cart().await {
            if Instant::now() >= end {
                self.shop.tally().violation(Violation::Cart, "no response to the last comparison for a minute");
                return;
            }
            time::sleep(PAUSE).await;
        }
    }

    /// Views a page, with or without the session.
    async fn view_page(&mut self) {
        let item = self.random_item();
        let mut get = self.shop.http.get(format!("{}/products/{item}", self.shop.url())).timeout(REQUEST_TIMEOUT);
        if self.random.below(2) == 0 {
            get = get.header("cookie", &self.cookie);
        }
        let started = Instant::now();
        let response = send_request(get).await;
        let status = response.as_ref().map(|(status, _)| *status);
        let is_complete = response.is_some_and(|(_, body)| body.len() > PAGE_BYTES);
        self.shop.tally().page(status, is_complete, started.elapsed());
    }

    async fn set_quantity(&mut self) {
        let (item, quantity) = (self.random_item(), self.random.below(6));
        let body = json!({"quantity": quantity}).to_string();
        let path = format!("/cart/items/{item}");
        self.write(|visitor| visitor.visitor_request(Method::PUT, &path).body(body.clone())).await;
        if quantity == 0 {
            self.cart.remove(&item);
        } else {
            self.cart.insert(item, quantity);
        }
    }

    async fn add_to_cart(&mut self) {
        let (item, quantity, key) = (self.random_item(), 1 + self.random.below(3), self.unique_name());
        let body = json!({"id": item, "quantity": quantity}).to_string();
        let post = |visitor: &Self| {
            visitor.visitor_request(Method::POST, "/cart/items").header("idempotency-key", &key).body(body.clone())
        };
        self.write(post).await;
        *self.cart.entry(item).or_default() += quantity;
    }

    /// Buys the first line of the cart. The service reports the order, which removes the line.
    async fn order(&mut self) {
        let Some((item, quantity)) = self.cart.pop_first() else { return };
        let items = json!([{"id": item, "quantity": quantity}]);
        let body = json!({"order_id": self.unique_name(), "token": self.token, "items": items}).to_string();
        self.write(|visitor| visitor.service_request("/orders").body(body.clone())).await;
    }

    async fn log_in(&mut self) {
        self.user = self.unique_name();
        let body = json!({"user": self.user}).to_string();
        let key = self.unique_name();
        let post =
            |visitor: &Self| visitor.service_request("/sessions").header("idempotency-key", &key).body(body.clone());
        let session: Value = serde_json::from_str(&self.write(post).await).unwrap_or_default();
        let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
        (self.token, self.cookie) = (text("token"), text("cookie"));
        self.cart.clear();
    }

    async fn log_out(&mut self) {
        self.write(|visitor| visitor.visitor_request(Method::DELETE, "/session")).await;
        self.user.clear();
        self.compare_user().await;
    }

    /// Returns whether there was a response to compare with.
    async fn compare_cart(&mut self) -> bool {
        let Some((StatusCode::OK, body)) = self.read("/cart").await else { return false };
        let found: Value = serde_json::from_str(&body).unwrap_or_default();
        let lines = found["items"].as_array().into_iter().flatten();
        let quantity = |line: &Value| Some((line["id"].as_str()?.to_owned(), line["quantity"].as_u64()?));
        let found: BTreeMap<_, _> = lines.filter_map(quantity).collect();
        if found != self.cart {
            self.shop.tally().violation(Violation::Cart, &format!("{found:?} instead of {:?}", self.cart));
            self.cart = found;
        }
        true
    }

    async fn compare_user(&mut self) {
        let Some((StatusCode::OK, body)) = self.read("/session").await else { return };
        let found: Value = serde_json::from_str(&body).unwrap_or_default();
        let found = found["user"].as_str().unwrap_or_default();
        if found != self.user {
            self.shop.tally().violation(Violation::Session, &format!("{found:?} instead of {:?}", self.user));
        }
    }

    async fn read_row(&mut self) {
        let row = self.random_item();
        self.read(&format!("/rows/{row}")).await;
    }

    /// Sends a read once. It may fail while Redis is down.
    async fn read(&mut self, path: &str) -> Response {
        let response = send_request(self.visitor_request(Method::GET, path)).await;
        let status = response.as_ref().map(|(status, _)| *status);
        self.shop.tally().read(path, status);
        response
    }

    /// Sends a write until it is accepted. Returns the body of the response.
    async fn write(&self, request: impl Fn(&Self) -> RequestBuilder) -> String {
        let end = Instant::now() + RETRY_TIME;
        loop {
            match send_request(request(self)).await {
                Some((status, body)) if status.is_success() => {
                    self.shop.tally().write_accepted();
                    return body;
                }
                None | Some((StatusCode::SERVICE_UNAVAILABLE, _)) if Instant::now() < end => {
                    self.shop.tally().write_retried();
                    time::sleep(RETRY_PAUSE).await;
                }
                response => {
                    self.shop.tally().violation(Violation::Write, &format!("{response:?}"));
                    return String::new();
                }
            }
        }
    }

    /// A request of the visitor's browser to the API.
    fn visitor_request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = self.shop.url();
        let request = self.shop.http.request(method, format!("{url}/_edge/v1{path}")).timeout(REQUEST_TIMEOUT);
        request.header("cookie", &self.cookie).header("origin", url).header("content-type", "application/json")
    }

    /// A request of the shop's service to the API.
    fn service_request(&self, path: &str) -> RequestBuilder {
        let request = self.shop.http.post(format!("{}/_edge/v1{path}", self.shop.url())).timeout(REQUEST_TIMEOUT);
        request.bearer_auth(SERVICE_KEY).header("content-type", "application/json")
    }

    /// The smaller of two random numbers makes some items more popular than others.
    fn random_item(&mut self) -> String {
        format!("item-{}", self.random.below(ITEMS).min(self.random.below(ITEMS)))
    }

    fn unique_name(&mut self) -> String {
        self.names += 1;
        format!("visitor-{}-{}", self.number, self.names)
    }
}

async fn send_request(request: RequestBuilder) -> Response {
    let response = request.send().await.ok()?;
    Some((response.status(), response.text().await.ok()?))
}
