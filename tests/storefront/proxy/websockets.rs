//! WebSockets (RFC 6455) between a browser and the origin.

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async, client_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

use crate::support::Shop;

/// An origin that sends each text back with the path, the cookies and the forwarded host of the handshake. It chooses the
/// protocol `chat`, sets a cookie, and refuses the path `/refused` with 403.
async fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    url
}

async fn echo(connection: TcpStream) {
    let mut seen = String::new();
    #[expect(clippy::result_large_err, reason = "the library's signature")]
    let answer = |request: &Request, mut response: Response| {
        if request.uri().path() == "/refused" {
            let mut refusal = ErrorResponse::new(Some("no".to_owned()));
            *refusal.status_mut() = http::StatusCode::FORBIDDEN;
            return Err(refusal);
        }
        let header = |name: &str| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
        seen = format!("{} {} {}", request.uri(), header("cookie"), header("x-forwarded-host"));
        response.headers_mut().insert("sec-websocket-protocol", "chat".parse().unwrap());
        response.headers_mut().insert("set-cookie", "live=1".parse().unwrap());
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(connection, answer).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() {
            let text = format!("{seen} {}", message.into_text().unwrap());
            socket.send(Message::text(text)).await.unwrap();
        }
    }
}

/// Opens a WebSocket at the shop.
async fn open(shop: &Shop, path: &str) -> Result<(WebSocketStream<TcpStream>, http::Response<()>), Error> {
    let host = shop.url.strip_prefix("http://").unwrap();
    let mut request = format!("ws://{host}{path}").into_client_request()?;
    request.headers_mut().insert("sec-websocket-protocol", "chat, other".parse().unwrap());
    request.headers_mut().insert("cookie", "basket=7; __Host-session=forged".parse().unwrap());
    let (socket, response) = client_async(request, TcpStream::connect(host).await.unwrap()).await?;
    Ok((socket, response.map(drop)))
}

/// Talks to the origin, and expects a refused handshake to be passed on.
async fn talk(shop: &Shop) {
    let (mut socket, response) = open(shop, "/live?room=1").await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
    assert_eq!(response.headers()["set-cookie"], "live=1");
    let host = shop.url.strip_prefix("http://").unwrap();
    for text in ["first", "second"] {
        socket.send(Message::text(text)).await.unwrap();
        let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
        assert_eq!(answer, format!("/live?room=1 basket=7 {host} {text}"));
    }
    socket.close(None).await.unwrap();
    assert!(matches!(socket.next().await, Some(Ok(Message::Close(_))) | None));
    let refused = open(shop, "/refused").await;
    assert!(matches!(&refused, Err(Error::Http(response)) if response.status() == 403), "{refused:?}");
}

#[tokio::test]
async fn a_websocket_reaches_the_origin() {
    let shop = Shop::workerd(&[("ORIGIN_URL", &origin().await), ("ORIGIN_TIMEOUT", "1")]).await;
    talk(&shop).await;
}

#[tokio::test]
async fn a_websocket_passes_both_tiers() {
    let shop = Shop::native(&[]).await;
    let tiers = shop.tiers::<1>(&[("ORIGIN_URL", &origin().await)], false).await;
    talk(&tiers.edge[0]).await;
}

/// It outlives `ORIGIN_TIMEOUT`, the limit for the response's head.
#[tokio::test]
async fn a_websocket_may_be_silent_for_long() {
    let shop = Shop::workerd(&[("ORIGIN_URL", &origin().await), ("ORIGIN_TIMEOUT", "1")]).await;
    let (mut socket, _) = open(&shop, "/live").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    socket.send(Message::text("late")).await.unwrap();
    assert!(socket.next().await.unwrap().unwrap().into_text().unwrap().ends_with("late"));
}
