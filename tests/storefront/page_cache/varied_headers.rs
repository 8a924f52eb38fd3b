//! `HEADERS_VARIED`: an origin that selects pages by request headers and does not name all of them in `Vary`. The
//! origin of this test is like Next.js.

use super::rfc9111::{ask, fresh, status};
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[("PAGE_MEMORY", "0"), ("HEADERS_VARIED", "rsc, next-url")];
    a_varied_header_selects_the_page_although_vary_omits_it,
    a_known_page_is_rendered_with_its_varied_headers,
    a_visitor_with_unknown_cookies_gets_the_page_of_the_header,
    a_redirect_of_a_request_with_a_varied_header_does_not_stop_sharing,
}

const DATA: [(&str, &str); 2] = [("rsc", "1"), ("next-url", "/home")];
const DOCUMENT: [(&str, &str); 0] = [];

fn body(asked: &Asked) -> String {
    format!("rsc={} next-url={}", asked.header("rsc"), asked.header("next-url"))
}

async fn a_varied_header_selects_the_page_although_vary_omits_it(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(&body(asked), "s-maxage=60"));
    for first in [&DATA[..], &DOCUMENT] {
        let path = format!("/page/{}", first.len());
        assert_eq!(status(shop, &path, first).await, "fwd=uri-miss; stored");
        for (headers, expected) in [(&DATA[..], "rsc=1 next-url=/home"), (&DOCUMENT, "rsc= next-url=")] {
            ask(shop, &path, headers).await;
            let (status, body) = ask(shop, &path, headers).await;
            assert!(status.starts_with("hit") && body == expected, "{status}: {body}");
        }
    }
}

async fn a_known_page_is_rendered_with_its_varied_headers(shop: &Shop) {
    // Next.js redirects if the hash in the URL does not match the headers.
    shop.origin.answer_with(|asked| match asked.header("next-url") {
        "" => Reply::status(307).header("location", "/page?_rsc=other"),
        _ => fresh("data", "s-maxage=60, stale-while-revalidate=600").header("vary", "rsc"),
    });
    assert_eq!(status(shop, "/page?_rsc=hash", &DATA).await, "fwd=uri-miss; stored");
    let reload = [DATA[0], DATA[1], ("cache-control", "no-cache")];
    assert_eq!(status(shop, "/page?_rsc=hash", &reload).await, "fwd=request; stored");
    assert!(status(shop, "/page?_rsc=hash", &DATA).await.starts_with("hit"));
}

async fn a_visitor_with_unknown_cookies_gets_the_page_of_the_header(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(&body(asked), "s-maxage=60").header("vary", "rsc"));
    ask(shop, "/page", &DATA).await;
    ask(shop, "/page", &DOCUMENT).await;
    let (status, body) = ask(shop, "/page", &[DATA[0], DATA[1], ("cookie", "cart=7")]).await;
    assert!(status.starts_with("hit") && body == "rsc=1 next-url=/home", "{status}: {body}");
    let (status, body) = ask(shop, "/page", &[("cookie", "cart=7")]).await;
    assert!(status.starts_with("hit") && body == "rsc= next-url=", "{status}: {body}");
}

async fn a_redirect_of_a_request_with_a_varied_header_does_not_stop_sharing(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.header("rsc") {
        "" => fresh("document", "s-maxage=60"),
        _ => Reply::status(307).header("location", "/page?_rsc=hash"),
    });
    assert_eq!(status(shop, "/page", &DATA).await, "fwd=bypass; detail=no-item");
    assert_eq!(status(shop, "/page", &DOCUMENT).await, "fwd=uri-miss; stored");
    assert_eq!(status(shop, "/other", &[DATA[0], DATA[1], ("cookie", "cart=7")]).await, "fwd=bypass; detail=no-item");
    assert_eq!(status(shop, "/other", &DOCUMENT).await, "fwd=uri-miss; stored");
}
