//! The shop under test: one isolate, a Redis behind a gateway with injected faults, and an origin with injected faults.
//! The clock moves only between requests.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, UNIX_EPOCH},
};

use edgefront::{
    App, jobs,
    ports::{
        answer::Answer,
        fetch::{Body, Collected, Request},
        time::Clock,
    },
    routes,
};
use futures_util::future::join_all;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::support::{Reply, SERVICE_KEY, Stock, Store, TestOrigin, header, token_of};

pub const SHOP: &str = "https://shop.example";

pub struct World {
    pub store: Store,
    pub origin: TestOrigin,
    pub app: Rc<App>,
    /// The cookies of the visitor.
    pub cookie: RefCell<String>,
    /// The quantity in each row's copy when it is loaded.
    pub quantity: Rc<RefCell<u32>>,
}

/// The response to a visitor or a service.
#[derive(Debug)]
pub struct Seen {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl World {
    pub fn new(store: Store) -> Self {
        let Stock { store, origin, app, .. } =
            Stock::on(store, &[("ORIGIN_URL", "{origin}"), ("REDIS_TIMEOUT_MS", "20000")]);
        let world = Self { store, origin, app: Rc::new(app), cookie: RefCell::default(), quantity: Rc::default() };
        world.origin_works();
        world
    }

    /// Sets the time limits of a visitor's wait for Redis and for the origin. Tests in which neither is slow on purpose
    /// set long ones, because the machine may be busy.
    pub fn set_deadlines(&mut self, redis: Duration, origin: Duration) {
        let app = Rc::get_mut(&mut self.app).expect("no work is under way");
        app.redis = app.redis.with_deadline(redis).into();
        app.config.origin.timeout = origin;
    }

    /// The origin renders pages, knows rows, logs `ada` in and takes the order `order-1` of two mugs.
    pub fn origin_works(&self) {
        let (now, clock) = (self.app.clock.now().as_secs(), self.store.clock.clone());
        let quantity = *self.quantity.borrow();
        self.origin.answer_with(move |asked| match asked.path.split(['?', '/']).nth(1) {
            Some("rows") => {
                let sale = json!({
                    "id": "pan", "sale_starts_at": now - 60, "sale_ends_at": now + 7200, "sale_pieces": 3, "sale_sold": 0,
                });
                Reply::html(json!([{"id": "mug", "quantity": quantity}, sale]).to_string())
            }
            Some("login") => Reply::status(303).header("location", "/").header("edge-login", "ada"),
            Some("checkout") => {
                let order = json!({"order_id": "order-1", "items": [{"id": "mug", "quantity": 2}]});
                Reply::status(303).header("location", "/thanks").header("edge-order", order.to_string())
            }
            _ => {
                let date = UNIX_EPOCH + Duration::from_secs(clock.now().as_secs());
                Reply::html(format!("<h1>{}</h1>", asked.path)).header("date", httpdate::fmt_http_date(date))
            }
        });
    }

    /// Sends a request of the visitor's browser, and completes the work after its response.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> Seen {
        let mut request = http::Request::builder().method(method).uri(format!("{SHOP}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let cookie = self.cookie.borrow().clone();
        if !cookie.is_empty() {
            request = request.header("cookie", cookie);
        }
        let body = if body.is_null() { Body::Empty } else { body.to_string().into() };
        let request = request.header("sec-fetch-site", "same-origin").header("content-type", "application/json");
        let seen = self.answer(request.body(body).expect("a request")).await;
        if let Some((cookie, _)) = seen.header("set-cookie").split_once(';') {
            *self.cookie.borrow_mut() = if cookie.ends_with('=') { String::new() } else { cookie.to_owned() };
        }
        seen
    }

    async fn answer(&self, request: Request) -> Seen {
        let Answer { response, background } = routes::handle(&self.app, request).await;
        let (head, body) = response.into_parts();
        let mut headers = head.headers;
        if let Body::Prepared(kept) = &body {
            headers.extend(kept.headers.clone());
        }
        let body = match body.collect(1 << 20).await {
            Ok(Collected::Whole(body)) => body.to_vec(),
            _ => b"broken off".to_vec(),
        };
        join_all(background).await;
        Seen { status: head.status.as_u16(), headers, body }
    }

    pub async fn get(&self, path: &str) -> Seen {
        self.send(Method::GET, path, &[], Value::Null).await
    }

    /// A call of the shop's own service.
    pub async fn service(&self, method: Method, path: &str, key: &str, body: Value) -> Seen {
        let bearer = format!("Bearer {SERVICE_KEY}");
        self.send(method, path, &[("authorization", &bearer), ("idempotency-key", key)], body).await
    }

    pub async fn cron(&self, cron: &str) {
        jobs::run_cron(&self.app, cron, self.app.clock.now()).await;
    }

    /// Moves on to the next time that leaves `rest` seconds when divided by `every`.
    pub fn next(&self, every: u64, rest: u64) {
        let into = self.app.clock.now().as_millis() % (every * 1000);
        self.store.clock.advance(Duration::from_millis((every + rest) * 1000 - into));
    }

    /// The number that a command returns; 0 without one.
    pub async fn number(&self, command: &[&str]) -> f64 {
        let reply = self.store.raw(command).await;
        reply.as_f64().or_else(|| reply.as_str()?.parse().ok()).unwrap_or_default()
    }

    /// The token of the visitor's cookie.
    pub fn token(&self) -> String {
        token_of(&self.cookie.borrow()).to_owned()
    }
}
