//! The actions of the fault matrix: preparation, execution, and the number of effects.

use std::time::Duration;

use edgefront::jobs::{EVERY_FIVE_MINUTES, EVERY_MINUTE};
use http::Method;
use serde_json::{Value, json};

use super::world::{Seen, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    PageInMemory,
    PageHit,
    PageStale,
    PageMiss,
    Session,
    Row,
    Login,
    FormLogin,
    Logout,
    CartAdd,
    CartSet,
    Reserve,
    Order,
    FormOrder,
    Clean,
    Refresh,
    Rescale,
}

/// The number of times that an action took effect, according to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Done {
    Not,
    Half,
    Once,
    MoreThanOnce,
}

impl From<f64> for Done {
    fn from(times: f64) -> Self {
        match times {
            ..0.25 => Self::Not,
            0.25..0.75 => Self::Half,
            0.75..1.25 => Self::Once,
            _ => Self::MoreThanOnce,
        }
    }
}

use Action::*;

/// The actions, each with its name in the table.
pub const ACTIONS: [(Action, &str); 17] = [
    (PageInMemory, "page that the isolate holds"),
    (PageHit, "page hit"),
    (PageStale, "page hit, stale"),
    (PageMiss, "page miss"),
    (Session, "`GET /session`"),
    (Row, "`GET /rows/{id}`"),
    (Login, "login, `POST /sessions`"),
    (FormLogin, "login, `Edge-Login`"),
    (Logout, "logout, `DELETE /session`"),
    (CartAdd, "cart, `POST /cart/items`"),
    (CartSet, "cart, a guest's first `PUT`"),
    (Reserve, "flash sale, reservation"),
    (Order, "order, `POST /orders`"),
    (FormOrder, "order, `Edge-Order`"),
    (Clean, "cron, clean sessions"),
    (Refresh, "cron, refresh rows"),
    (Rescale, "cron, rescale"),
];

const PAGE: &str = "/products/mug";

impl Action {
    pub fn is_page(self) -> bool {
        matches!(self, PageInMemory | PageHit | PageStale | PageMiss)
    }

    pub fn is_read(self) -> bool {
        self.is_page() || matches!(self, Session | Row)
    }

    pub fn is_cron(self) -> bool {
        matches!(self, Clean | Refresh | Rescale)
    }

    pub async fn prepare(self, world: &World) {
        // An unknown script takes two requests, and the fault could hit either of them.
        world.store.load_scripts().await;
        match self {
            PageInMemory | PageHit | PageStale | PageMiss => {
                world.store.raw(&["ZADD", "viewed:", "-1000", "mug"]).await;
                if self != PageMiss {
                    assert!(world.get(PAGE).await.header("cache-status").ends_with("stored"));
                }
                match self {
                    PageHit => world.store.clock.advance(Duration::from_secs(10)),
                    // Freshness ends after 270 to 300 s, by chance; the page is served stale for 60 s more.
                    PageStale => world.store.clock.advance(Duration::from_secs(315)),
                    _ => {}
                }
            }
            Row | Refresh => {
                world.schedule("mug").await;
                if self == Refresh {
                    *world.quantity.borrow_mut() = 2;
                    world.origin_works();
                    world.store.clock.advance(Duration::from_hours(1));
                    // A minute in which the cron's other job sends nothing: the fault meets the refresh.
                    world.next(540, 60);
                }
            }
            Session | Logout => world.log_in().await,
            Login | FormLogin => world.fill_cart().await,
            CartAdd => drop(world.send(Method::PUT, "/_edge/v1/cart/items/pan", &[], json!({"quantity": 1})).await),
            CartSet => {}
            Reserve => {
                world.schedule("pan").await;
                world.log_in().await;
            }
            Order | FormOrder => {
                world.log_in().await;
                world.fill_cart().await;
            }
            Clean => {
                world.fill_cart().await;
                // SESSION_IDLE is 30 days.
                world.store.clock.advance(Duration::from_hours(24 * 31));
                // The minute in which the cron looks for idle sessions.
                world.next(540, 180);
            }
            Rescale => {
                // The first run halves nothing, and the second one writes the first `ranked:`. While slots move, a script needs
                // all of its keys.
                for _ in 0..2 {
                    world.next(300, 0);
                    // After a run that finds no view, the next one is skipped.
                    world.store.raw(&["ZADD", "viewed:", "-1", "mug"]).await;
                    world.cron(EVERY_FIVE_MINUTES).await;
                }
                world.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
                world.next(300, 0);
            }
        }
    }

    /// Executes the action. A second call is a retry with the same idempotency key.
    pub async fn act(self, world: &World) -> Seen {
        match self {
            PageInMemory | PageHit | PageStale | PageMiss => world.get(PAGE).await,
            Session => world.get("/_edge/v1/session").await,
            Row => world.get("/_edge/v1/rows/mug").await,
            Login => world.service(Method::POST, "/_edge/v1/sessions", "login", json!({"user": "ada"})).await,
            FormLogin => world.send(Method::POST, "/login", &[], Value::Null).await,
            Logout => world.send(Method::DELETE, "/_edge/v1/session", &[], Value::Null).await,
            CartAdd => {
                let body = json!({"id": "mug", "quantity": 2});
                world.send(Method::POST, "/_edge/v1/cart/items", &[("idempotency-key", "add")], body).await
            }
            CartSet => world.send(Method::PUT, "/_edge/v1/cart/items/mug", &[], json!({"quantity": 2})).await,
            Reserve => world.send(Method::POST, "/_edge/v1/flash/pan/reservations", &[], Value::Null).await,
            Order => world.report_order().await,
            FormOrder => world.send(Method::POST, "/checkout", &[], Value::Null).await,
            Clean | Refresh => world.run(EVERY_MINUTE).await,
            Rescale => world.run(EVERY_FIVE_MINUTES).await,
        }
    }

    /// The number of times that the action took effect. Reads have no effect.
    pub async fn done(self, world: &World) -> Done {
        let times = match self {
            PageInMemory | PageHit | PageStale | PageMiss | Session | Row => 0.0,
            Login | FormLogin => {
                let users = world.store.raw(&["HVALS", "login:"]).await;
                let carts = world.store.raw(&["KEYS", "cart:*"]).await;
                assert_eq!(carts.as_array().map(Vec::len), Some(1), "there is one cart, in either session");
                let adas = users.as_array().into_iter().flatten().filter(|user| *user == "ada");
                adas.fold(0.0, |count, _| count + 1.0)
            }
            Logout => 1.0 - world.number(&["EXISTS", "login:"]).await,
            CartAdd => world.number(&["HGET", &format!("cart:{}", world.token()), "mug"]).await / 2.0,
            CartSet => world.number(&["HLEN", "login:"]).await,
            Reserve => world.number(&["ZCARD", "held:pan"]).await,
            Order | FormOrder => {
                let bought = world.number(&["ZSCORE", "bought:", "mug"]).await;
                let left = world.number(&["HGET", &format!("cart:{}", world.token()), "mug"]).await;
                // A half-done order is half an effect.
                f64::midpoint(bought, 1.0 - left / 2.0)
            }
            Clean => {
                let ended = 1.0 - world.number(&["EXISTS", "login:"]).await;
                let recorded = world.number(&["XLEN", "abandoned:"]).await;
                assert_eq!(Done::from(recorded), Done::from(ended), "the cart is recorded with its session's end");
                ended
            }
            Refresh => f64::from(u8::from(world.copied().await == 2)),
            Rescale => (8.0 / -world.number(&["ZSCORE", "viewed:", "mug"]).await).log2(),
        };
        times.into()
    }

    /// Repeats the action after the fault, or does the work that it left.
    pub async fn repair(self, world: &World) -> Seen {
        match self {
            // Within the same half-life. A run that read no view, because the read was stale, lets the next one be skipped.
            Rescale => {
                world.store.clock.advance(Duration::from_mins(1));
                self.act(world).await;
                world.store.clock.advance(Duration::from_mins(1));
                self.act(world).await
            }
            Clean | Refresh => {
                // The cron looks for one kind of session at a time, every third minute.
                for turn in 0..3 {
                    world.next(540, turn * 180);
                    self.act(world).await;
                }
                self.act(world).await
            }
            // The shop has the order, and reports it later.
            FormOrder => world.report_order().await,
            _ => self.act(world).await,
        }
    }

    /// Asserts that the visitor has the effect of the action, and the same identity.
    pub async fn check(self, world: &World) {
        if self == Session {
            assert_eq!(world.get("/_edge/v1/session").await.json()["user"], "ada");
        }
        if matches!(self, Login | FormLogin) {
            let session = world.get("/_edge/v1/session").await.json();
            assert_eq!(session, json!({"user": "ada", "guest": false, "cart": {"lines": 1, "quantity": 2}}));
        }
        if matches!(self, CartAdd | CartSet) {
            let cart = world.get("/_edge/v1/cart").await.json();
            let mugs = cart["items"].as_array().into_iter().flatten().find(|line| line["id"] == "mug");
            assert_eq!(mugs, Some(&json!({"id": "mug", "quantity": 2})), "{cart}");
        }
    }
}

impl World {
    async fn log_in(&self) {
        let answer = self.service(Method::POST, "/_edge/v1/sessions", "first", json!({"user": "ada"})).await;
        assert_eq!(answer.status, 201);
    }

    /// Two mugs.
    async fn fill_cart(&self) {
        let answer = self.send(Method::PUT, "/_edge/v1/cart/items/mug", &[], json!({"quantity": 2})).await;
        assert_eq!(answer.status, 200);
    }

    async fn schedule(&self, row: &str) {
        *self.quantity.borrow_mut() = 1;
        self.origin_works();
        let path = format!("/_edge/v1/rows/{row}/schedule");
        assert_eq!(self.service(Method::PUT, &path, "row", json!({"every": 3600})).await.status, 200);
    }

    async fn report_order(&self) -> Seen {
        let order = json!({"order_id": "order-1", "items": [{"id": "mug", "quantity": 2}], "token": self.token()});
        self.service(Method::POST, "/_edge/v1/orders", "order", order).await
    }

    async fn copied(&self) -> Value {
        let copy = self.store.raw(&["GET", "inv:mug"]).await;
        copy.as_str().map_or(Value::Null, |copy| serde_json::from_str::<Value>(copy).expect("JSON")["quantity"].take())
    }

    /// Runs a cron. It has no response.
    async fn run(&self, cron: &str) -> Seen {
        self.cron(cron).await;
        Seen { status: 200, headers: http::HeaderMap::new(), body: Vec::new() }
    }
}
