//! Spellings of a path that the platform resolves between the tiers.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::tiers;
use crate::{
    routes::api::{Answer, Visitor},
    support::Shop,
};

/// Sends a POST to a path that the client of the other tests would resolve, and returns the status.
async fn post(shop: &Shop, path: &str, body: &str) -> String {
    let host = shop.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn no_spelling_of_a_path_passes_as_a_batch_or_past_the_checks_of_the_api() {
    let (tiers, shop) = tiers(&[]).await;
    // Miniflare passes the requests for the first isolate on, and resolves their paths.
    let [_, edge] = &tiers.edge;
    for begin in ["", "/x/..", "/x/%2e%2e", "/x/.%2E", "/%2e", "/x\\..", "/x/%2e%2e/y\\%2E%2e"] {
        assert_eq!(post(edge, &format!("{begin}/_edge/tier"), "views\tmug\t\t1000\n").await, "404", "{begin}");
        // Without a proof that a page of the shop sent it.
        assert_eq!(post(edge, &format!("{begin}/_edge/v1/cart/items"), "{}").await, "403", "{begin}");
    }
    assert_eq!(tiers.hops().await, Vec::<String>::new());
    assert_eq!(shop.origin.count(), 0);
    let popular = Answer::to(Visitor::new(edge).request(http::Method::GET, "/popular")).await;
    assert_eq!(popular.json, json!({"items": []}));
}
