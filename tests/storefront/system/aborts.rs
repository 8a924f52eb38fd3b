//! Clients that reset their connections, in workerd. The calls of an isolate share requests to Redis, so the call that
//! sends a batch may belong to a client that has gone.

use std::time::Duration;

use edgefront_gateway::Fault;
use futures_util::future::join_all;
use http::Method;
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    routes::api::{Visitor, log_in, with_json},
    support::{Shop, eventually},
};

const ROUNDS: usize = 12;
/// Clients of each kind. All of them and the first call fit into two batches.
const CLIENTS: usize = 4;

/// Those who stay and those who leave each add one mug in each round.
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
                // In turn, they leave with their batch in flight, or before it is sent.
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
    let address = shop.url.strip_prefix("http://").expect("HTTP");
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    connection.write_all(&[head.as_bytes(), b"\r\n", body].concat()).await.expect("the request is sent");
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
