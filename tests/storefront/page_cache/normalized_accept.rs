//! `HEADERS_NORMALIZED = "accept=text/html"`: an origin that varies on `Accept`, as Rails does.

use super::rfc9111::{ask, fresh};
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[("PAGE_MEMORY", "0"), ("PATHS_SHARED", "/list/*"), ("HEADERS_NORMALIZED", "accept=text/html")];
    browsers_share_a_page_that_varies_by_accept,
    a_request_that_accepts_no_html_gets_its_own_json,
}

const HTML: [&str; 3] = [
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html, application/xhtml+xml",
];

fn rails(asked: &Asked) -> Reply {
    let body = if asked.header("accept").starts_with("application/json") { "{}" } else { "page" };
    let kind = if body == "page" { "text/html" } else { "application/json" };
    let is_public = asked.path.ends_with("/public");
    let control = if is_public { "public, s-maxage=60" } else { "max-age=0, private, must-revalidate" };
    fresh(body, control).header("vary", "Accept").header("content-type", kind)
}

async fn browsers_share_a_page_that_varies_by_accept(shop: &Shop) {
    shop.origin.answer_with(rails);
    for (number, accept) in HTML.into_iter().enumerate() {
        let (status, body) = ask(shop, "/list/a", &[("accept", accept)]).await;
        assert_eq!((status.starts_with("hit"), body.as_str()), (number > 0, "page"), "{accept}: {status}");
    }
}

async fn a_request_that_accepts_no_html_gets_its_own_json(shop: &Shop) {
    shop.origin.answer_with(rails);
    for path in ["/list/private", "/list/public"] {
        for accept in ["application/json", HTML[0], "*/*", "application/json", HTML[1], "application/json"] {
            let (status, body) = ask(shop, path, &[("accept", accept)]).await;
            let expected = if accept == "application/json" { "{}" } else { "page" };
            assert_eq!(body, expected, "{path}, {accept}: {status}");
            shop.settled().await;
        }
    }
}

#[tokio::test]
async fn the_page_that_fills_holes_is_requested_as_html() {
    let shop = Shop::native(&[
        ("PATHS_SHARED", "/list/*"),
        ("HEADERS_NORMALIZED", "accept=text/html"),
        ("HOLES", "/list/* main <- ."),
        ("COOKIES_HOLES", "sid"),
    ])
    .await;
    shop.origin.answer_with(|asked| {
        fresh(&format!("<main>{}</main>", asked.header("accept")), "max-age=60").header("vary", "Accept")
    });
    ask(&shop, "/list/a", &[("accept", HTML[1])]).await;
    let (status, body) = ask(&shop, "/list/a", &[("accept", HTML[0]), ("cookie", "sid=ada")]).await;
    assert_eq!((status.starts_with("hit"), body.as_str()), (true, "<main>text/html,*/*;q=0.8</main>"), "{status}");
}
