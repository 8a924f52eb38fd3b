//! Responses whose lengths or transfer codings do not delimit the body. hyper cannot send them.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{cache_status, is_hit};
use crate::support::Shop;

/// The path, the origin's response, and the visitor's status and body.
const RESPONSES: [(&str, &str, u16, &str); 4] = [
    (
        "/chunked",
        "200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n0\r\n\r\n",
        200,
        "page",
    ),
    ("/nothing", "204 No Content\r\nContent-Length: 5\r\n\r\n", 204, ""),
    ("/reset", "205 Reset Content\r\nContent-Length: 5\r\n\r\npage\n", 205, ""),
    CODED,
];
/// The body is not gzip. edgefront passes it on.
const CODED: (&str, &str, u16, &str) =
    ("/coded", "200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\npage\r\n0\r\n\r\n", 502, "");

/// Answers the requests of one connection with [`RESPONSES`].
async fn answer(mut connection: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = connection.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).expect("text");
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (_, response, ..) = RESPONSES.iter().find(|(of, ..)| *of == path).expect("a known path");
    let response = format!("HTTP/1.1 {}", response.replacen("\r\n", "\r\nCache-Control: public, max-age=60\r\n", 1));
    // The client may have closed the connection.
    let _ = connection.write_all(response.as_bytes()).await;
}

/// A shop in workerd, in front of an origin with [`RESPONSES`].
async fn shop() -> Shop {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    Shop::workerd(&[("ORIGIN_URL", &origin)]).await
}

// RFC 9112 §6.3
#[tokio::test]
async fn a_length_that_does_not_delimit_the_body_is_ignored() {
    let shop = shop().await;
    for (path, _, status, body) in RESPONSES.into_iter().filter(|response| *response != CODED) {
        let stored = shop.visit(path).await;
        assert_eq!(stored.status(), status, "{path} {}", cache_status(&stored));
        assert_eq!(stored.text().await.unwrap(), body, "{path}");
        shop.settled().await;
        let hit = shop.visit(path).await;
        assert!(is_hit(&hit) && hit.status() == status, "{path} {}", cache_status(&hit));
    }
}

// RFC 9112 §7.4
#[tokio::test]
async fn a_body_with_a_transfer_coding_is_refused() {
    let shop = shop().await;
    for _ in 0..2 {
        let answer = shop.visit(CODED.0).await;
        assert_eq!((answer.status().as_u16(), cache_status(&answer).contains("stored")), (CODED.2, false));
    }
}
