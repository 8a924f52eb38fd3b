//! Visitors of the demo shop. A shop without visitors has no popular items, no items bought together, and an empty
//! dashboard. Each sample visitor uses the public API: signs in, looks at pages and buys, and the shop's service
//! reports the order. Forty of them come at the first start; a few walk all the time (`--visitors`).
//! `tests/storefront/demo/sample_visitors.rs` lets them walk through a shop.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{
    failure::Failure,
    steps::{done, run_step},
    variables::Variables,
};
use futures_util::{
    StreamExt, TryStreamExt,
    future::{join_all, pending},
    stream,
};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

/// The items that one kind of visitor looks at. A visitor buys from the front of the list.
const TASTES: [&[&str]; 8] = [
    &[
        "pour-over-dripper-copper",
        "gooseneck-kettle-black",
        "single-origin-coffee-yirgacheffe",
        "hand-grinder-steel",
        "enamel-mug-sage",
    ],
    &[
        "moka-pot-6-cups",
        "house-blend-coffee-espresso-grind",
        "espresso-cups-ink",
        "enamel-mug-sage",
        "french-press-steel",
    ],
    &[
        "chefs-knife-20-cm",
        "end-grain-chopping-board-walnut-45-cm",
        "carbon-steel-frying-pan-28-cm",
        "pepper-mill-walnut",
        "linen-tea-towel-ink",
    ],
    &[
        "linen-napkins-rust",
        "stoneware-dinner-plate-clay",
        "wine-glass-set-of-4",
        "beeswax-dinner-candles-natural",
        "water-carafe-clear",
    ],
    &[
        "hori-hori-walnut",
        "secateurs-right-handed",
        "garden-gloves-m",
        "wildflower-seeds-butterfly",
        "watering-can-sage-5-l",
    ],
    &[
        "wool-picnic-blanket-moss",
        "camp-stove-wood",
        "enamel-mug-sage",
        "insulated-bottle-moss-500-ml",
        "two-person-tent-moss",
    ],
    &[
        "thread-bound-notebook-dotted-ink",
        "fountain-pen-sage-m",
        "bottled-ink-midnight",
        "brass-desk-lamp-brass",
        "canvas-tote-ink",
    ],
    &[
        "jigsaw-puzzle-night-train",
        "playing-cards-blue",
        "knitted-animal-fox",
        "paper-lantern-60-cm",
        "chess-set-walnut",
    ],
];
const VISITORS: usize = 40;
/// As many connections as a browser opens to one host.
const CONCURRENT_VISITORS: usize = 6;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// The wait of a walking visitor after an error: the Worker may be starting again after a change.
const ERROR_PAUSE: Duration = Duration::from_secs(5);

/// The Worker's API as the sample visitors and the shop's service use it.
pub struct SampleShop<'a> {
    http: Client,
    worker_url: &'a str,
    service_key: &'a str,
}

/// One visit to the shop.
struct Visit<'a> {
    user: &'a str,
    /// Chooses the visitor's taste.
    number: usize,
    /// The order's id; None for a visitor who buys nothing.
    order_id: Option<String>,
    /// The longest time between two pages.
    pause: Duration,
}

impl<'a> SampleShop<'a> {
    /// None if the demo shop is not the origin. `worker_url` has no slash at its end.
    #[must_use]
    pub fn of(worker_url: &'a str, variables: &'a Variables) -> Option<Self> {
        let variable = |name| variables.get(name).map_or("", String::as_str);
        let is_demo = variable("ORIGIN_URL").is_empty();
        is_demo.then(|| Self { http: Client::new(), worker_url, service_key: variable("SERVICE_KEY") })
    }

    /// Sends the first visitors if the shop has no popular items.
    ///
    /// # Errors
    /// When the Worker rejects a request.
    pub async fn send_first_visitors(&self) -> Result<(), Failure> {
        run_step("sample visitors", async |_| {
            let popular = self.call_service(Method::GET, "/popular?limit=1", None).await?;
            if popular["items"].as_array().is_some_and(|items| !items.is_empty()) {
                return Ok(done("not needed, the shop has popular items"));
            }
            stream::iter(0..VISITORS)
                .map(async |number| {
                    let (user, order_id) = (format!("visitor-{number}@example.org"), format!("demo-{number}"));
                    let visit = Visit { user: &user, number, order_id: Some(order_id), pause: Duration::ZERO };
                    self.visit(visit).await
                })
                .buffer_unordered(CONCURRENT_VISITORS)
                .try_collect::<()>()
                .await?;
            Ok(done(format!("{VISITORS} visitors have looked at pages and bought items")))
        })
        .await
    }

    /// Keeps `visitors` walking until the caller drops the future. They ignore errors. `pause` is the longest time
    /// between two pages. Never ends, not even without visitors.
    pub async fn keep_walking(&self, visitors: u8, pause: Duration) {
        join_all((0..usize::from(visitors)).map(|walker| self.walk(walker, pause))).await;
        pending::<()>().await;
    }

    /// Visits the shop again and again, each time with another taste. Every third visit ends with an order.
    async fn walk(&self, walker: usize, pause: Duration) {
        let user = format!("walker-{walker}@example.org");
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        for round in 0.. {
            let order_id = (round % 3 == 2).then(|| format!("walk-{started}-{walker}-{round}"));
            let number = walker * 3 + round;
            let visit = Visit { user: &user, number, order_id, pause };
            let result = match self.visit(visit).await {
                // The next visit is a new session, so that its views count.
                Ok(()) => self.call_service(Method::DELETE, &format!("/users/{user}/sessions"), None).await.map(drop),
                Err(error) => Err(error),
            };
            if result.is_err() {
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }

    /// One visit, from sign-in to the cart or to an order.
    async fn visit(&self, Visit { user, number, order_id, pause }: Visit<'_>) -> Result<(), Failure> {
        let session = self.call_service(Method::POST, "/sessions", Some(json!({"user": user}))).await?;
        let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
        let (token, cookie) = (text("token"), text("cookie"));
        let taste = TASTES.iter().cycle().nth(number).copied().unwrap_or_default();
        // Some visitors look at only a part of the list. All look at one item of another taste.
        let other = TASTES.iter().cycle().nth(number + 1 + number % 5).and_then(|taste| taste.first());
        for (place, item) in taste.iter().take(5 - number % 3).chain(other).enumerate() {
            self.view_item(item, &cookie).await?;
            // Between a quarter of the pause and all of it.
            tokio::time::sleep(pause * u32::try_from((number + place * 3) % 4 + 1).unwrap_or(1) / 4).await;
        }
        let items: Vec<_> = taste.iter().take(1 + number % 3).map(|item| json!({"id": item, "quantity": 1})).collect();
        for line in &items {
            self.add_to_cart(line, &cookie).await?;
        }
        let Some(order_id) = order_id else { return Ok(()) };
        let order = json!({"order_id": order_id, "token": token, "items": items});
        self.call_service(Method::POST, "/orders", Some(order)).await.map(drop)
    }

    async fn view_item(&self, item: &str, cookie: &str) -> Result<(), Failure> {
        let get = self.http.get(format!("{}/products/{item}", self.worker_url)).header("cookie", cookie);
        send_request(get, item).await.map(drop)
    }

    async fn add_to_cart(&self, line: &Value, cookie: &str) -> Result<(), Failure> {
        let path = "/_edge/v1/cart/items";
        let post = self
            .http
            .post(format!("{}{path}", self.worker_url))
            .header("cookie", cookie)
            .header("origin", self.worker_url)
            .header("content-type", "application/json")
            .body(line.to_string());
        send_request(post, path).await.map(drop)
    }

    async fn call_service(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Failure> {
        let url = format!("{}/_edge/v1{path}", self.worker_url);
        let mut request = self.http.request(method, url).bearer_auth(self.service_key);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let body = send_request(request, path).await?;
        Ok(serde_json::from_str(&body).unwrap_or_default())
    }
}

/// The body of a successful response. `subject` names the request in a failure.
async fn send_request(request: RequestBuilder, subject: &str) -> Result<String, Failure> {
    let failed = |cause: String| Failure::new(format!("{subject}: {cause}"), "see the Worker's log above");
    let response = request.timeout(REQUEST_TIMEOUT).send().await;
    let response = response.map_err(|cause| failed(cause.without_url().to_string()))?;
    let status = response.status();
    let body = response.text().await.map_err(|cause| failed(cause.without_url().to_string()))?;
    if status.is_success() { Ok(body) } else { Err(failed(status.to_string())) }
}
