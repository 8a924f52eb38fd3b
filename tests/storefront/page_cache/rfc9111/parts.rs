//! Range requests.

use super::{ask, fresh, status};
use crate::{
    page_cache::{header, is_hit, stored_pages},
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[];
    a_range_is_answered_from_the_stored_page,
    without_a_stored_page_a_range_request_reaches_the_origin,
    a_first_range_brings_the_page_into_the_store,
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
    shop.origin.answer(fresh("01", "private, max-age=60").with_status(206).header("content-range", "bytes 0-1/10"));
    let (_, body) = ask(shop, "/page", &[("range", "bytes=0-1")]).await;
    assert_eq!((body.as_str(), shop.origin.last().header("range")), ("01", "bytes=0-1"));
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
    shop.origin.answer(Reply::html("whole").header("cache-control", "max-age=60"));
    assert_eq!(status(shop, "/page", &[]).await, "fwd=uri-miss; stored");
}

// RFC 9110 §15.3.7: a 206 has the headers of the 200.
async fn a_first_range_brings_the_page_into_the_store(shop: &Shop) {
    let part =
        |length| fresh("01", "max-age=60").with_status(206).header("content-range", format!("bytes 0-1/{length}"));
    shop.origin.answer_with(move |asked| match (asked.path.as_str(), asked.header("range")) {
        (_, "") => fresh("0123456789", "max-age=60"),
        ("/film", _) => part("4194304"),
        ("/live", _) => part("*"),
        ("/parts", _) => fresh("01", "max-age=60").with_status(206),
        _ => part("10"),
    });
    for (path, script, expected, stored) in [
        ("/clip", "", "personal", true),
        ("/film", "", "too-large", false),
        ("/live", "", "status", false),
        ("/parts", "", "status", false),
        ("/call", "x-server-call", "status", false),
    ] {
        let mut headers = vec![("range", "bytes=0-1")];
        headers.extend((!script.is_empty()).then_some((script, "1")));
        let answer = ask(shop, path, &headers).await;
        assert_eq!(answer, (format!("fwd=uri-miss; detail={expected}"), "01".to_owned()), "{path}");
        assert_eq!(is_hit(&shop.visit(path).await), stored, "{path}");
        shop.settled().await;
    }
}
