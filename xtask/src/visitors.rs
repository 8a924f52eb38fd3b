//! The demo shop's first visitors: a shop that nobody has been to has nothing popular, and nothing that was bought together. They come
//! the way that visitors do: each has a session, looks at pages and buys; the shop's service tells the edge of the order.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use xtask::{
    failure::Failure,
    steps::{done, step},
};

/// What one kind of visitor looks at; they buy from the front of it.
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
/// As many as a browser opens to one host.
const AT_ONCE: usize = 6;

/// Sends the visitors, if the demo shop is the origin and nothing is popular there. `origin` is the Worker's address, without a slash
/// at the end.
///
/// # Errors
/// When the Worker refuses one of them.
pub async fn send(origin: &str, vars: &BTreeMap<String, String>) -> Result<(), Failure> {
    let var = |name| vars.get(name).map_or("", String::as_str);
    if !var("ORIGIN_URL").is_empty() {
        return Ok(());
    }
    let shop = Shop { client: Client::new(), origin, service_key: var("SERVICE_KEY") };
    step("visitors", async |_| {
        let popular = shop.call(Method::GET, "/popular?limit=1", None).await?;
        if popular["items"].as_array().is_some_and(|items| !items.is_empty()) {
            return Ok(done("the shop has some"));
        }
        stream::iter(0..VISITORS)
            .map(|number| shop.visitor(number))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        Ok(done(format!("{VISITORS} have looked around and bought, so that something is popular")))
    })
    .await
}

struct Shop<'a> {
    client: Client,
    origin: &'a str,
    service_key: &'a str,
}

impl Shop<'_> {
    async fn visitor(&self, number: usize) -> Result<(), Failure> {
        let session = self
            .call(Method::POST, "/sessions", Some(json!({"user": format!("visitor-{number}@example.org")})))
            .await?;
        let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
        let (token, cookie) = (text("token"), text("cookie"));
        let taste = TASTES.iter().cycle().nth(number).copied().unwrap_or_default();
        // Some look at only a part, and everybody at a thing of another taste.
        let other = TASTES.iter().cycle().nth(number + 1 + number % 5).and_then(|taste| taste.first());
        let looked_at = taste.iter().take(5 - number % 3).chain(other);
        for item in looked_at {
            self.look(item, &cookie).await?;
        }
        let items: Vec<_> = taste.iter().take(1 + number % 3).map(|item| json!({"id": item, "quantity": 1})).collect();
        for line in &items {
            self.put_into_cart(line, &cookie).await?;
        }
        let order = json!({"order_id": format!("demo-{number}"), "token": token, "items": items});
        self.call(Method::POST, "/orders", Some(order)).await.map(drop)
    }

    async fn look(&self, item: &str, cookie: &str) -> Result<(), Failure> {
        let page = self.client.get(format!("{}/products/{item}", self.origin)).header("cookie", cookie);
        self.answer(page, item).await.map(drop)
    }

    async fn put_into_cart(&self, line: &Value, cookie: &str) -> Result<(), Failure> {
        let path = "/_edge/v1/cart/items";
        let post =
            self.client.post(format!("{}{path}", self.origin)).header("cookie", cookie).header("origin", self.origin);
        let post = post.header("content-type", "application/json").body(line.to_string());
        self.answer(post, path).await.map(drop)
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Failure> {
        let mut request =
            self.client.request(method, format!("{}/_edge/v1{path}", self.origin)).bearer_auth(self.service_key);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let body = self.answer(request, path).await?;
        Ok(serde_json::from_str(&body).unwrap_or_default())
    }

    async fn answer(&self, request: reqwest::RequestBuilder, what: &str) -> Result<String, Failure> {
        let refused = |cause: String| Failure::new(format!("{what}: {cause}"), "the Worker's own words are above");
        let answer = request.timeout(Duration::from_secs(20)).send().await;
        let answer = answer.map_err(|cause| refused(cause.without_url().to_string()))?;
        let status = answer.status();
        let body = answer.text().await.map_err(|cause| refused(cause.without_url().to_string()))?;
        if status.is_success() { Ok(body) } else { Err(refused(status.to_string())) }
    }
}
