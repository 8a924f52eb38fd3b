//! Range requests.

use super::{ask, fresh, status};
use crate::{
    page_cache::{header, stored_pages},
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[];
    a_range_is_answered_from_the_stored_page,
    without_a_stored_page_a_range_request_reaches_the_origin,
}

// RFC 9110 §14.2, §15.3.7, §15.5.17
async fn a_range_is_answered_from_the_stored_page(shop: &Shop) {
    let digests = ["content-digest", "content-md5", "repr-digest"];
    let page = fresh("0123456789", "max-age=60").header("etag", "\"a\"");
    shop.origin.answer(digests.into_iter().fold(page, |page, name| page.header(name, "of all")));
    ask(shop, "/page", &[]).await;
    for (range, condition, code, body, content_range) in [
        ("bytes=0-1", "\"a\"", 206, "01", "bytes 0-1/10"),
        ("bytes=8-", "\"a\"", 206, "89", "bytes 8-9/10"),
        ("bytes=-3", "\"a\"", 206, "789", "bytes 7-9/10"),
        ("bytes=10-", "\"a\"", 416, "", "bytes */10"),
        ("bytes=0-1", "\"b\"", 200, "0123456789", ""),
        ("bytes=0-1,4-5", "\"a\"", 200, "0123456789", ""),
        ("lines=0-1", "\"a\"", 200, "0123456789", ""),
    ] {
        let answer = shop.get("/page").header("range", range).header("if-range", condition).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), header(&answer, "content-range").as_str()),
            (code, content_range),
            "{range}"
        );
        // RFC 9530: `Content-Digest` describes the part, `Repr-Digest` the page.
        let is_whole = if code == 200 { "of all" } else { "" };
        assert_eq!(digests.map(|name| header(&answer, name)), [is_whole, is_whole, "of all"], "{range}");
        if code != 416 {
            assert_eq!(
                (header(&answer, "etag"), header(&answer, "content-length")),
                ("\"a\"".to_owned(), body.len().to_string())
            );
        }
        assert_eq!(answer.text().await.unwrap(), body, "{range}");
    }
    assert_eq!(shop.origin.count(), 1);
}

// RFC 9111 §3.3
async fn without_a_stored_page_a_range_request_reaches_the_origin(shop: &Shop) {
    shop.origin.answer(fresh("01", "max-age=60").with_status(206).header("content-range", "bytes 0-1/10"));
    let (_, body) = ask(shop, "/page", &[("range", "bytes=0-1")]).await;
    assert_eq!((body.as_str(), shop.origin.last().header("range")), ("01", "bytes=0-1"));
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    shop.origin.answer(Reply::html("whole").header("cache-control", "max-age=60"));
    assert_eq!(status(shop, "/page", &[]).await, "fwd=uri-miss; stored");
}
