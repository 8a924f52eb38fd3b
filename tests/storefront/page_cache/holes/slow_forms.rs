//! A form whose body arrives slowly.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Shop, scenarios};

scenarios! {
    &[
        ("HOLES", "/products/* [name=token] <- token"),
        ("COOKIES_HOLES", "sid"),
        ("HOLES_WAIT_MS", "20"),
    ];
    a_slow_form_keeps_its_length,
}

/// Some origins refuse a chunked request.
async fn a_slow_form_keeps_its_length(shop: &Shop) {
    let address = shop.url.strip_prefix("http://").unwrap();
    let head = format!(
        "POST /cart HTTP/1.1\r\nhost: {address}\r\nsec-fetch-site: same-origin\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: 8\r\n\r\nitem"
    );
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(head.as_bytes()).await.unwrap();
    // Longer than `HOLES_WAIT_MS`.
    tokio::time::sleep(Duration::from_millis(500)).await;
    connection.write_all(b"=mug").await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let asked = shop.origin.last();
    assert_eq!((asked.body.as_ref(), asked.header("content-length")), (&b"item=mug"[..], "8"));
}
