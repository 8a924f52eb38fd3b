//! `HEADERS_NORMALIZED`: an origin that varies on headers with many spellings. Like Django with its `LocaleMiddleware`,
//! this origin selects the language, and it sends phones another page.

use super::{
    make_popular,
    rfc9111::{ask, fresh, status},
};
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[
        ("PAGE_MEMORY", "0"),
        ("HEADERS_VARIED", "x-country"),
        ("HEADERS_NORMALIZED", "accept-language=en|de, user-agent=Mobile, x-country=DE|AT, x-theme="),
    ];
    browsers_with_one_language_share_a_page,
    a_language_that_the_shop_lacks_has_the_page_without_the_header,
    devices_share_a_page,
    an_origin_that_names_its_headers_one_by_one_gets_all_of_them,
    a_header_without_values_selects_nothing,
    a_varied_header_is_normalized,
    a_personal_response_gets_the_clients_own_header,
}

const GERMANS: [&str; 4] =
    ["de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7", "de,en-US;q=0.7,en;q=0.3", "de-AT", "DE; q=1, fr;q=0.5"];

/// A page that shows the headers of its request, and varies on them.
fn varying(asked: &Asked) -> Reply {
    let [language, agent] = ["accept-language", "user-agent"].map(|name| asked.header(name));
    fresh(&format!("{language}, {agent}"), "s-maxage=60").header("vary", "Accept-Language, User-Agent, X-Theme, Cookie")
}

async fn browsers_with_one_language_share_a_page(shop: &Shop) {
    shop.origin.answer_with(varying);
    assert_eq!(status(shop, "/page", &[("accept-language", GERMANS[0])]).await, "fwd=uri-miss; stored");
    for language in GERMANS {
        let (status, body) = ask(shop, "/page", &[("accept-language", language)]).await;
        assert!(status.starts_with("hit") && body == "de, edgefront", "{language}: {status}, {body}");
    }
    let english = [("accept-language", "en-GB,en-US;q=0.9,en;q=0.8")];
    assert_eq!(ask(shop, "/page", &english).await.1, "en, edgefront");
    assert_eq!(shop.origin.count(), 2);
}

async fn a_language_that_the_shop_lacks_has_the_page_without_the_header(shop: &Shop) {
    shop.origin.answer_with(varying);
    assert_eq!(ask(shop, "/page", &[("accept-language", "fr-FR,fr")]).await.1, ", edgefront");
    for headers in [&[("accept-language", "ja")][..], &[]] {
        assert!(status(shop, "/page", headers).await.starts_with("hit"), "{headers:?}");
    }
}

async fn devices_share_a_page(shop: &Shop) {
    shop.origin.answer_with(varying);
    let iphone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) Version/26.0 Mobile/15E148 Safari/604.1";
    let android = "Mozilla/5.0 (Linux; Android 10; K) Chrome/142.0.0.0 Mobile Safari/537.36";
    assert_eq!(ask(shop, "/page", &[("user-agent", iphone)]).await.1, ", Mobile");
    assert!(status(shop, "/page", &[("user-agent", android)]).await.starts_with("hit"));
    assert_eq!(ask(shop, "/page", &[("user-agent", "Mozilla/5.0 (X11) Firefox/145.0")]).await.1, ", edgefront");
    assert!(status(shop, "/page", &[("user-agent", "curl/8.0")]).await.starts_with("hit"));
}

// RFC 9111 §4.1: only the German page has a form for phones, and only this form another type.
async fn an_origin_that_names_its_headers_one_by_one_gets_all_of_them(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(|asked| {
        let [language, agent, accept] = ["accept-language", "user-agent", "accept"].map(|name| asked.header(name));
        let vary = match (language, agent) {
            ("de", "Mobile") => "Accept-Language, User-Agent, Accept",
            ("de", _) => "Accept-Language, User-Agent",
            _ => "Accept-Language",
        };
        Reply::html(format!("{language}, {agent}, {accept}")).header("vary", vary)
    });
    let phone = [("accept-language", "de"), ("user-agent", "Mobile"), ("accept", "text/html")];
    let expected = "de, Mobile, text/html";
    assert_eq!(ask(shop, "/products/mug", &phone).await, ("fwd=uri-miss; stored".to_owned(), expected.to_owned()));
    assert_eq!(shop.origin.count(), 4);
    let (status, body) = ask(shop, "/products/mug", &phone).await;
    assert!(status.starts_with("hit") && body == expected, "{status}: {body}");
    let desktop = ask(shop, "/products/mug", &[phone[0], phone[2]]).await;
    assert_eq!(desktop.1, "de, edgefront, text/html");
}

async fn a_header_without_values_selects_nothing(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(asked.header("x-theme"), "s-maxage=60").header("vary", "x-theme"));
    assert_eq!(status(shop, "/page", &[("x-theme", "dark")]).await, "fwd=uri-miss; stored");
    for headers in [&[("x-theme", "light")][..], &[]] {
        let (status, body) = ask(shop, "/page", headers).await;
        assert!(status.starts_with("hit") && body.is_empty(), "{status}: {body}");
    }
}

async fn a_varied_header_is_normalized(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(asked.header("x-country"), "s-maxage=60"));
    for (country, seen, is_hit) in
        [("DE", "DE", false), ("de", "DE", true), ("FR", "", false), ("GB", "", true), ("AT", "AT", false)]
    {
        let (status, body) = ask(shop, "/page", &[("x-country", country)]).await;
        assert_eq!((status.starts_with("hit"), body.as_str()), (is_hit, seen), "{country}: {status}");
    }
}

async fn a_personal_response_gets_the_clients_own_header(shop: &Shop) {
    shop.origin.answer_with(varying);
    let own = [("accept-language", GERMANS[0]), ("user-agent", "Firefox"), ("authorization", "Basic eDp5")];
    assert_eq!(ask(shop, "/page", &own).await.1, format!("{}, Firefox", GERMANS[0]));
}
