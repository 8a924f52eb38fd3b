//! Lengths that do not delimit the body, from origins that hyper cannot imitate.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{cache_status, is_hit};
use crate::support::Shop;

/// The path, the response, and the status and body for the visitor.
const RESPONSES: [(&str, &str, u16, &str); 3] = [
    (
        "/chunked",
        "200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n0\r\n\r\n",
        200,
        "page",
    ),
    ("/nothing", "204 No Content\r\nContent-Length: 5\r\n\r\n", 204, ""),
    ("/reset", "205 Reset Content\r\nContent-Length: 5\r\n\r\npage\n", 205, ""),
];

/// Answers the requests of a connection as in [`RESPONSES`].
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

// RFC 9112 §6.3
#[tokio::test]
async fn a_length_that_does_not_delimit_the_body_is_ignored() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    let shop = Shop::workerd(&[("ORIGIN_URL", &origin)]).await;
    for (path, _, status, body) in RESPONSES {
        let stored = shop.visit(path).await;
        assert_eq!(stored.status(), status, "{path} {}", cache_status(&stored));
        assert_eq!(stored.text().await.unwrap(), body, "{path}");
        shop.settled().await;
        let hit = shop.visit(path).await;
        assert!(is_hit(&hit) && hit.status() == status, "{path} {}", cache_status(&hit));
    }
}
