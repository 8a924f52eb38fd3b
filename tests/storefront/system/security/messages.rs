//! V4 API and web service: messages that edgefront and the origin could read differently.

use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{ORIGIN_KEY, Reply, Shop, scenarios, set_cookie};

scenarios! {
    &[];
    no_client_sends_an_edge_header_in_any_spelling,
    the_connection_header_removes_no_header_of_edgefront,
    no_body_hides_a_second_request,
    chunks_determine_the_end_of_a_body,
    a_line_break_in_a_path_stays_in_the_path,
}

/// V4.1.3: no client can send a header that only a proxy may set.
async fn no_client_sends_an_edge_header_in_any_spelling(shop: &Shop) {
    // CGI and similar interfaces read every character other than a letter as `_` (RFC 3875 §4.1.18).
    let spellings =
        ["edge-user", "Edge-User", "EDGE-USER", "edge_user", "Edge_User", "edge.user", "edge~user", "edge+user"];
    for method in [Method::GET, Method::POST] {
        for name in spellings {
            let request = shop.request(method.clone(), "/about").header(name, "ada").header(name, "root");
            assert_eq!(request.send().await.unwrap().status(), 200);
            let asked = shop.origin.last();
            let mut names: Vec<_> = asked.headers.keys().filter(|name| name.as_str().starts_with("edge")).collect();
            names.sort_unstable_by_key(|name| name.as_str());
            assert_eq!(names, ["edge-key", "edge-session"], "{name}");
            assert_eq!(asked.header("edge-session"), "none");
            assert_eq!(asked.headers.get_all("edge-key").iter().collect::<Vec<_>>(), [ORIGIN_KEY]);
        }
    }
    let request = shop.get("/about").header("x-forwarded-host", "evil.example").header("x-forwarded-proto", "gopher");
    request.send().await.unwrap();
    let asked = shop.origin.last();
    assert_eq!(asked.header("x-forwarded-host"), shop.url.strip_prefix("http://").unwrap());
    assert_eq!(asked.header("x-forwarded-proto"), "http");
}

/// V4.1.3: a client cannot remove edgefront's headers by naming them in `Connection`.
async fn the_connection_header_removes_no_header_of_edgefront(shop: &Shop) {
    shop.origin.answer(Reply::html("hello").header("edge-login", "ada"));
    let login = shop.visit("/login").await;
    let cookie = set_cookie(&login);
    shop.origin.answer(Reply::html("page"));
    let nominated = "close, edge-user, Edge-Key, edge-cart, x-forwarded-host, x-forwarded-proto, cookie, host";
    let request = shop.request(Method::POST, "/cart").header("connection", nominated);
    request.header("cookie", format!("a=b; {cookie}")).send().await.unwrap();
    let asked = shop.origin.last();
    assert_eq!(
        (asked.header("edge-user"), asked.header("edge-key"), asked.header("edge-cart")),
        ("ada", ORIGIN_KEY, "{}")
    );
    assert_eq!(asked.header("x-forwarded-host"), shop.url.strip_prefix("http://").unwrap());
    assert!(!asked.headers.keys().any(|name| name == "connection" || name == "te" || name == "upgrade"));
}

/// V4.2.1, V4.2.2: the end of a body is never ambiguous, so no body can hide a second request.
async fn no_body_hides_a_second_request(shop: &Shop) {
    let host = shop.url.strip_prefix("http://").unwrap();
    let smuggled = format!("GET /smuggled HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let length = smuggled.len();
    for head in [
        format!("Content-Length: 0\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nContent-Length: 0"),
        format!("Content-Length: {length}, 0"),
        format!("Content-Length: +{length}"),
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked, identity"),
        format!("Content-Length: {length}\r\nTransfer-Encoding:\x0bchunked"),
        format!("Content-Length : {length}"),
    ] {
        let mut stream = TcpStream::connect(host).await.unwrap();
        let request = format!("POST /first HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{head}\r\n\r\n{smuggled}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The server may close the connection before it has read the whole request.
        let _ = stream.read_to_end(&mut answer).await;
        let answers = String::from_utf8_lossy(&answer).matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "{head:?}: {}", String::from_utf8_lossy(&answer));
    }
    assert!(shop.origin.asked().iter().all(|asked| asked.path != "/smuggled"));
}

/// V4.2.1: `Transfer-Encoding` overrides a length beside it (RFC 9112 §6.3).
async fn chunks_determine_the_end_of_a_body(shop: &Shop) {
    let host = shop.url.strip_prefix("http://").unwrap();
    for length in [0, 2, 100] {
        let mut stream = TcpStream::connect(host).await.unwrap();
        let head = format!(
            "PUT /_edge/v1/cart/items/mug HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nConnection: close\r\n"
        );
        let body = "E\r\n{\"quantity\":3}\r\n0\r\n\r\n";
        let request = format!("{head}Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""quantity":3"#), "{length}: {answer}");
    }
}

/// V4.2.4
async fn a_line_break_in_a_path_stays_in_the_path(shop: &Shop) {
    for path in ["/a%0d%0aEdge-User:%20ada", "/a?b=%0d%0aEdge-User:%20ada%0d%0a%0d%0aGET%20/x", "/a%00%0a"] {
        let answer = shop.visit(path).await;
        assert_eq!(answer.status(), 200);
        assert!(!answer.headers().contains_key("edge-user"));
        let asked = shop.origin.last();
        assert_eq!((asked.path.as_str(), asked.header("edge-user")), (path, ""));
    }
}
