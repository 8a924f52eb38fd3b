//! The first visitors of the demo shop. A shop without visitors has no popular items and no items bought together. Each
//! sample visitor uses the public API: signs in, looks at pages and buys, and the shop's service reports the order.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use xtask::{
    failure::Failure,
    steps::{done, run_step},
    variables::Variables,
};

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

/// Sends the visitors if the demo shop is the origin and has no popular items. `worker_url` has no slash at its end.
///
/// # Errors
/// When the Worker rejects a request.
pub async fn send(worker_url: &str, variables: &Variables) -> Result<(), Failure> {
    let variable = |name| variables.get(name).map_or("", String::as_str);
    if !variable("ORIGIN_URL").is_empty() {
        return Ok(());
    }
    let shop = ShopClient { http: Client::new(), worker_url, service_key: variable("SERVICE_KEY") };
    run_step("sample visitors", async |_| {
        let popular = shop.call_service(Method::GET, "/popular?limit=1", None).await?;
        if popular["items"].as_array().is_some_and(|items| !items.is_empty()) {
            return Ok(done("not needed, the shop has popular items"));
        }
        stream::iter(0..VISITORS)
            .map(|number| visit(&shop, number))
            .buffer_unordered(CONCURRENT_VISITORS)
            .try_collect::<()>()
            .await?;
        Ok(done(format!("{VISITORS} visitors have looked at pages and bought items")))
    })
    .await
}

/// One visitor, from sign-in to order.
async fn visit(shop: &ShopClient<'_>, number: usize) -> Result<(), Failure> {
    let user = json!({"user": format!("visitor-{number}@example.org")});
    let session = shop.call_service(Method::POST, "/sessions", Some(user)).await?;
    let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
    let (token, cookie) = (text("token"), text("cookie"));
    let taste = TASTES.iter().cycle().nth(number).copied().unwrap_or_default();
    // Some visitors look at only a part of the list. All look at one item of another taste.
    let other = TASTES.iter().cycle().nth(number + 1 + number % 5).and_then(|taste| taste.first());
    for item in taste.iter().take(5 - number % 3).chain(other) {
        shop.view_item(item, &cookie).await?;
    }
    let items: Vec<_> = taste.iter().take(1 + number % 3).map(|item| json!({"id": item, "quantity": 1})).collect();
    for line in &items {
        shop.add_to_cart(line, &cookie).await?;
    }
    let order = json!({"order_id": format!("demo-{number}"), "token": token, "items": items});
    shop.call_service(Method::POST, "/orders", Some(order)).await.map(drop)
}

/// The Worker's API as the sample visitors and the shop's service use it.
struct ShopClient<'a> {
    http: Client,
    worker_url: &'a str,
    service_key: &'a str,
}

impl ShopClient<'_> {
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
