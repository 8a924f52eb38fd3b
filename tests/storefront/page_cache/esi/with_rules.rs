//! ESI in a page that also has holes by rules (`HOLES`).

use http::Method;

use super::{header, is_hit, name, open, template, visit};
use crate::support::{Reply, Shop, scenarios};

scenarios! {
    &[
        ("HOLES", "/products/* #mini <- /basket"),
        ("COOKIES_HOLES", "sid"),
        ("PATHS_PERSONAL", "/account/*"),
        ("HOLES_WAIT_MS", "20000"),
    ];
    an_element_and_a_fragment_fill_the_same_page,
    an_element_within_a_fragment_arrives_with_the_fragment,
    a_fragment_at_a_personal_path_is_not_stored,
    no_transform_reaches_the_browser,
}

async fn an_element_and_a_fragment_fill_the_same_page(shop: &Shop) {
    open(shop, |asked| match asked.path.as_str() {
        "/basket" => Reply::html(format!("<div id=mini>basket of {}</div>", name(asked))),
        "/user" => Reply::html(format!("<b>{}</b>", name(asked))),
        _ => template("<esi:include src='/user'/><div id=mini><esi:include src='/user'/></div>rest"),
    })
    .await;
    assert_eq!(visit(shop, "").await.text().await.unwrap(), "<b>guest</b><div id=mini><b>guest</b></div>rest");
    let answer = visit(shop, "sid=ada").await;
    assert!(is_hit(&answer) && header(&answer, "etag").is_empty());
    assert_eq!(answer.text().await.unwrap(), "<b>ada</b><div id=mini>basket of ada</div>rest");
}

async fn an_element_within_a_fragment_arrives_with_the_fragment(shop: &Shop) {
    open(shop, |asked| match asked.path.as_str() {
        "/basket" => Reply::html(format!("<div id=mini>basket of {}</div>", name(asked))),
        "/user" => Reply::html(format!("<b>{0}</b><div id=mini>basket of {0}</div>", name(asked))),
        _ => template("<esi:include src='/user'/>rest"),
    })
    .await;
    for name in ["guest", "ada"] {
        let answer = visit(shop, &if name == "guest" { String::new() } else { format!("sid={name}") }).await;
        assert!(is_hit(&answer));
        assert_eq!(answer.text().await.unwrap(), format!("<b>{name}</b><div id=mini>basket of {name}</div>rest"));
    }
}

async fn a_fragment_at_a_personal_path_is_not_stored(shop: &Shop) {
    open(shop, |asked| match asked.path.as_str() {
        "/account/user" => Reply::html(format!("<b>{}</b>{}", name(asked), asked.header("edge-shared"))),
        _ => template("<esi:include src='/account/user'/>rest"),
    })
    .await;
    for (cookies, expected) in [("", "<b>guest</b>rest"), ("sid=ada", "<b>ada</b>rest")] {
        let answer = visit(shop, cookies).await;
        assert!(is_hit(&answer));
        assert_eq!(answer.text().await.unwrap(), expected);
    }
    assert!(
        shop.origin.asked().iter().all(|asked| asked.path != "/account/user" || asked.header("edge-shared").is_empty())
    );
}

// RFC 9111 §5.2.2.6: for caches between edgefront and the browser.
async fn no_transform_reaches_the_browser(shop: &Shop) {
    let page = |control: &'static str| {
        template("<esi:include src='/user'/>rest").header("cache-control", control).header("edge-tags", "a")
    };
    open(shop, move |asked| match asked.path.as_str() {
        "/user" => Reply::html(name(asked).to_owned()),
        "/login" => page("No-Transform").header("edge-login", "ada"),
        "/secret" => page("no-store, no-transform"),
        _ => page("max-age=60, no-transform"),
    })
    .await;
    for (method, path, cookie, expected) in [
        (Method::GET, "/products/mug", "", "private, no-cache, no-transform"),
        (Method::GET, "/products/mug", "sid=ada", "private, no-cache, no-transform"),
        (Method::POST, "/account/orders", "", "private, no-cache, no-transform"),
        (Method::POST, "/secret", "", "private, no-store, no-transform"),
        (Method::POST, "/login", "", "private, no-store, no-transform"),
    ] {
        let answer = shop.request(method, path).header("cookie", cookie).send().await.unwrap();
        assert_eq!(header(&answer, "cache-control"), expected, "{path} {cookie}");
    }
}
