//! Clients that reset their connections, in workerd. A client may leave while its request does work for others: it
//! sends the batch of calls to Redis, renders a page, or changes something at the origin.

use std::time::Duration;

use edgefront_gateway::Fault;
use futures_util::future::join_all;
use http::Method;
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    page_cache::{is_hit, store_page},
    routes::api::{Visitor, log_in, with_json},
    support::{Reply, Shop, Tiers, eventually},
};

const ROUNDS: usize = 12;
/// Clients of each kind. All of them and the first call fit into two batches.
const CLIENTS: usize = 4;

/// Clients that stay, and clients that leave. Each adds one mug in each round.
#[tokio::test]
async fn a_client_that_resets_its_connection_takes_no_shared_batch_along() {
    let shop = Shop::workerd(&[]).await;
    let sign_in =
        async |kind| join_all((0..CLIENTS).map(async |number| log_in(&shop, &format!("{kind}-{number}")).await)).await;
    let (mut staying, mut leaving) = (sign_in("stays").await, sign_in("leaves").await);
    let mut first = log_in(&shop, "first").await;
    let before = shop.store.counts().requests;
    for round in 0..ROUNDS {
        // The first call is under way while the others come, so they share the next request.
        shop.store.gateway.set_fault(Some(Fault::Slow(Duration::from_millis(200))));
        let sent = shop.store.gateway.received();
        let arrived = async |requests: u64| {
            eventually("Redis is asked", async || shop.store.gateway.received() >= sent + requests).await;
        };
        let others = async {
            arrived(1).await;
            let leave = async {
                let connections = join_all(leaving.iter().map(|visitor| begin_add(&shop, visitor))).await;
                // In even rounds, the clients leave while their batch is in flight, otherwise before it is sent.
                if round % 2 == 0 {
                    arrived(2).await;
                }
                connections.into_iter().for_each(reset);
            };
            tokio::join!(leave, join_all(staying.iter_mut().map(add))).1
        };
        let (answer, answers) = tokio::join!(add(&mut first), others);
        assert_eq!((answer, answers), (200, vec![200; CLIENTS]), "round {round}");
    }
    shop.store.gateway.set_fault(None);
    let requests = shop.store.counts().requests - before;
    assert!(requests < (ROUNDS * (CLIENTS + 1)) as u64, "{requests} requests: the calls shared them");
    for visitor in &mut staying {
        assert_eq!(mugs(visitor).await, Some(ROUNDS), "each accepted add counts once");
    }
    for visitor in &mut leaving {
        assert!(mugs(visitor).await <= Some(ROUNDS), "no add counts twice");
    }
}

async fn add(visitor: &mut Visitor<'_>) -> u16 {
    visitor.post("/cart/items", &json!({"id": "mug", "quantity": 1})).await.status
}

/// Sends the same add on a connection of its own.
async fn begin_add(shop: &Shop, visitor: &Visitor<'_>) -> TcpStream {
    let request = visitor.request(Method::POST, "/cart/items");
    let request = with_json(request, &json!({"id": "mug", "quantity": 1})).build().expect("a request");
    let body = request.body().and_then(reqwest::Body::as_bytes).expect("bytes");
    let mut head =
        format!("POST {} HTTP/1.1\r\nhost: shop\r\ncontent-length: {}\r\n", request.url().path(), body.len());
    for (name, value) in request.headers() {
        head.extend([name.as_str(), ": ", value.to_str().expect("ASCII"), "\r\n"]);
    }
    begin(shop, &[head.as_bytes(), b"\r\n", body].concat()).await
}

/// Sends a request on a connection of its own.
async fn begin(shop: &Shop, request: &[u8]) -> TcpStream {
    let address = shop.url.strip_prefix("http://").expect("HTTP");
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    connection.write_all(request).await.expect("the request is sent");
    connection
}

fn reset(connection: TcpStream) {
    connection.set_zero_linger().expect("a socket");
    drop(connection);
}

async fn mugs(visitor: &mut Visitor<'_>) -> Option<usize> {
    let cart = visitor.get("/cart").await.json;
    let quantity = cart["items"][0]["quantity"].as_u64()?;
    usize::try_from(quantity).ok()
}

/// A client sends a request without a body for the page of a mug, and leaves before the origin answers.
async fn leave(shop: &Shop, method: &str) {
    let asked = shop.origin.count();
    shop.origin.hold();
    let host = shop.url.strip_prefix("http://").expect("HTTP");
    let length = if method == "POST" { "content-length: 0\r\n" } else { "" };
    let head = format!("{method} /products/mug HTTP/1.1\r\nhost: {host}\r\n{length}\r\n");
    let connection = begin(shop, head.as_bytes()).await;
    eventually("the origin is asked", async || shop.origin.count() > asked).await;
    reset(connection);
    // The Worker notices the reset before it answers the next requests.
    for _ in 0..3 {
        shop.visit("/_edge/v1/healthz").await;
    }
    shop.origin.release();
}

/// A shop of one tier, and the edge tier of another one.
async fn shops() -> (Shop, Shop, Tiers<1>) {
    let variables = [("PAGE_MEMORY", "1")];
    let (one, other) = (Shop::workerd(&variables).await, Shop::native(&variables).await);
    let tiers = other.tiers(&variables, false).await;
    (one, other, tiers)
}

#[tokio::test]
async fn a_page_is_rendered_for_the_others_although_its_first_client_leaves() {
    let (one, _other, tiers) = shops().await;
    for shop in [&one, &tiers.edge[0]] {
        shop.origin.answer(Reply::html("page").header("cache-control", "max-age=60"));
        leave(shop, "GET").await;
        eventually("the page is stored", async || is_hit(&shop.visit("/products/mug").await)).await;
        assert_eq!(shop.origin.count(), 1);
    }
}

#[tokio::test]
async fn a_change_voids_its_page_although_its_client_leaves() {
    let (one, _other, tiers) = shops().await;
    for shop in [&one, &tiers.edge[0]] {
        shop.origin.answer(Reply::html("old").header("cache-control", "max-age=60"));
        store_page(shop, "mug").await;
        shop.origin.answer(Reply::html("new").header("cache-control", "max-age=60"));
        leave(shop, "POST").await;
        eventually("the page is new", async || shop.visit("/products/mug").await.text().await.unwrap() == "new").await;
    }
}
