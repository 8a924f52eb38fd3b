//! The rules for cookies, paths and query parameters, with an origin that is silent about sharing.

use http::Method;
use serde_json::json;

use super::{cache_status, header, is_hit, make_popular, purge_all, store_page, stored_pages};
use crate::{
    routes::api::service,
    support::{Asked, Reply, Shop, scenarios},
};

scenarios! {
    &[
        ("COOKIES_IGNORED", "+ theme, history"),
        ("COOKIES_PERSONAL", "auth_*"),
        ("COOKIES_VARIED", "lang=de|en"),
        ("COOKIES_DROPPED", "history@/products/*"),
        ("CSRF_COOKIE", "csrftoken"),
        ("PATHS_PERSONAL", "/admin/*"),
        ("QUERY_IGNORED", "+ref"),
        ("QUERY_KEPT", "utm_term"),
    ];
    a_silent_page_is_shared_with_visitors_without_cookies_of_their_own,
    a_script_that_asks_for_a_part_of_a_silent_page_gets_its_own,
    a_visitor_with_a_personal_cookie_never_gets_a_shared_page,
    ignored_cookies_do_not_count_for_vary_cookie,
    a_varied_cookie_selects_the_page,
    a_page_that_gives_new_visitors_a_varied_cookie_is_stored_for_visitors_who_have_it,
    a_dropped_cookie_does_not_prevent_sharing_on_its_path,
    one_visitors_set_cookie_does_not_stop_sharing,
    a_purge_clears_the_note_of_an_unstorable_page,
    a_personal_path_is_never_shared,
    an_ignored_parameter_is_not_part_of_the_key,
    forms_of_shared_pages_work_for_the_same_site_only,
    an_explanation_names_rules_reason_and_cause,
}

/// Status and body of a visit with these cookies.
async fn visit(shop: &Shop, path: &str, cookies: &str) -> (String, String) {
    let answer = shop.get(path).header("cookie", cookies).send().await.unwrap();
    let status = cache_status(&answer);
    let body = answer.text().await.unwrap();
    shop.settled().await;
    (status.trim_start_matches("edgefront; ").to_owned(), body)
}

async fn a_silent_page_is_shared_with_visitors_without_cookies_of_their_own(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(|asked| Reply::html(asked.header("cookie").to_owned()));
    for cookies in ["", "_ga=1; theme=dark", "_ga_X1=2", "__Host-session=ours.mac"] {
        let (status, body) = visit(shop, "/products/mug", cookies).await;
        assert_eq!(body, "csrftoken=edgefrontverifiestheoriginheader", "{cookies}: {status}");
    }
    assert_eq!(shop.origin.count(), 1);
    let (status, body) = visit(shop, "/products/mug", "_ga=1; basket=7").await;
    assert_eq!(status, "fwd=bypass; detail=cookie");
    assert!(body.starts_with("_ga=1; basket=7"), "{body}");
}

async fn a_script_that_asks_for_a_part_of_a_silent_page_gets_its_own(shop: &Shop) {
    make_popular(shop, "mug").await;
    let of_script =
        |asked: &Asked| ["hx-request", "x-requested-with"].iter().any(|name| !asked.header(name).is_empty());
    shop.origin.answer_with(move |asked| match asked.header("accept") {
        "application/json" => Reply::html("{}"),
        _ => Reply::html(if of_script(asked) { "part" } else { "page" }),
    });
    store_page(shop, "mug").await;
    for (name, value, body) in [
        ("hx-request", "true", "part"),
        ("x-requested-with", "XMLHttpRequest", "part"),
        ("accept", "application/json", "{}"),
        ("x-requested-with", "com.example.browser", "page"),
        ("accept", "text/html,*/*;q=0.8", "page"),
    ] {
        let answer = shop.get("/products/mug").header(name, value).send().await.unwrap();
        assert_eq!((is_hit(&answer), answer.text().await.unwrap().as_str()), (body == "page", body), "{name}: {value}");
    }
    assert_eq!(visit(shop, "/products/mug", "").await.1, "page");
    // Data with a stated lifetime is shared with the scripts that request it.
    shop.origin
        .answer(Reply::zeros(4).header("content-type", "application/json").header("cache-control", "max-age=60"));
    for is_stored in [false, true] {
        let answer = shop.get("/stock.json").header("accept", "application/json").send().await.unwrap();
        assert_eq!(is_hit(&answer), is_stored, "{}", cache_status(&answer));
        shop.settled().await;
    }
}

async fn a_visitor_with_a_personal_cookie_never_gets_a_shared_page(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let name = if asked.header("cookie").contains("auth_1") { "hello, ada" } else { "hello" };
        Reply::html(name).header("cache-control", "public, max-age=60")
    });
    for round in 0..3 {
        assert_eq!(visit(shop, "/page", "").await.1, "hello", "{round}");
        assert_eq!(visit(shop, "/page", "basket=7").await.1, "hello", "{round}: the origin declared it shared");
        let (status, body) = visit(shop, "/page", "auth_1=ada").await;
        assert_eq!((status.as_str(), body.as_str()), ("fwd=bypass; detail=cookie", "hello, ada"), "{round}");
    }
    assert_eq!(shop.origin.count(), 4);
    let only = shop.get("/other").header("cookie", "auth_1=ada").header("cache-control", "only-if-cached");
    assert_eq!(only.send().await.unwrap().status(), 504);
}

async fn ignored_cookies_do_not_count_for_vary_cookie(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        Reply::html(asked.header("cookie").to_owned()).header("vary", "Cookie").header("cache-control", "max-age=60")
    });
    assert_eq!(visit(shop, "/page", "_ga=1").await.0, "fwd=uri-miss; stored");
    assert!(visit(shop, "/page", "").await.0.starts_with("hit"));
    assert!(visit(shop, "/page", "theme=dark; _gid=2; csrftoken=x").await.0.starts_with("hit"));
    let (status, body) = visit(shop, "/page", "basket=7").await;
    assert!(!status.starts_with("hit") && body.contains("basket=7"), "{status}");
}

async fn a_varied_cookie_selects_the_page(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(|asked| Reply::html(asked.header("cookie").to_owned()));
    for (cookies, expected) in [("lang=de; _ga=1", "lang=de; "), ("lang=en", "lang=en; "), ("", "")] {
        for round in ["fwd=", "hit"] {
            let (status, body) = visit(shop, "/products/mug", cookies).await;
            assert!(status.starts_with(round), "{cookies}: {status}");
            assert_eq!(body, format!("{expected}csrftoken=edgefrontverifiestheoriginheader"));
        }
    }
    // A value that the rule does not list may identify the visitor.
    let (status, body) = visit(shop, "/products/mug", "lang=fr").await;
    assert_eq!(status, "fwd=bypass; detail=cookie");
    assert!(body.starts_with("lang=fr"));
    service(shop, Method::POST, "/purge", Some(&json!({"urls": ["/products/mug"]}))).await;
    for cookies in ["lang=de", "lang=en", ""] {
        assert!(visit(shop, "/products/mug", cookies).await.0.starts_with("fwd="), "{cookies}");
    }
}

/// A shop with an A/B test: each new visitor gets a value by chance.
async fn a_page_that_gives_new_visitors_a_varied_cookie_is_stored_for_visitors_who_have_it(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let page = |text: &str| Reply::html(text.to_owned()).header("cache-control", "max-age=60");
        let own = ["lang=de", "lang=en"].into_iter().find(|own| asked.header("cookie").contains(own));
        own.map_or_else(|| page("new").header("set-cookie", "lang=de; Path=/"), page)
    });
    for _ in 0..2 {
        let (status, body) = visit(shop, "/page", "").await;
        assert!(!status.contains("stored") && body == "new", "{status}");
    }
    for value in ["lang=de", "lang=en"] {
        assert!(visit(shop, "/page", value).await.0.ends_with("; stored"), "{value}");
        let (status, body) = visit(shop, "/page", value).await;
        assert_eq!((status.starts_with("hit"), body.as_str()), (true, value), "{status}");
    }
    assert_eq!(visit(shop, "/page", "").await.1, "new");
}

async fn a_dropped_cookie_does_not_prevent_sharing_on_its_path(shop: &Shop) {
    make_popular(shop, "mug").await;
    let reply = || Reply::html("page").header("set-cookie", "history=mug; Path=/");
    shop.origin.answer_with(move |_| reply().header("set-cookie", "csrftoken=secret; Path=/"));
    for status in ["fwd=uri-miss; stored", "hit"] {
        let answer = shop.visit("/products/mug").await;
        assert!(cache_status(&answer).starts_with(&format!("edgefront; {status}")));
        assert_eq!(header(&answer, "set-cookie"), "", "{status}");
        shop.settled().await;
    }
    // Elsewhere, or beside other cookies, the cookie makes the response personal. The visitor gets all cookies.
    shop.origin.answer_with(move |_| reply().header("cache-control", "public, max-age=60"));
    let answer = shop.visit("/about").await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=set-cookie");
    assert_eq!(header(&answer, "set-cookie"), "history=mug; Path=/");
    make_popular(shop, "cup").await;
    shop.origin.answer_with(move |_| reply().header("set-cookie", "basket=7"));
    let answer = shop.visit("/products/cup").await;
    assert!(cache_status(&answer).ends_with("detail=set-cookie"));
    assert_eq!(answer.headers().get_all("set-cookie").iter().count(), 2);
}

async fn one_visitors_set_cookie_does_not_stop_sharing(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let reply = Reply::html("page").header("cache-control", "public, max-age=60");
        if asked.header("cookie").contains("basket") { reply.header("set-cookie", "basket=8") } else { reply }
    });
    let answer = shop.get("/page").header("cookie", "basket=7").send().await.unwrap();
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; detail=set-cookie");
    assert_eq!(header(&answer, "set-cookie"), "basket=8");
    shop.settled().await;
    // After the response, edgefront renders the page for all visitors.
    for cookies in ["", "basket=8", "other=1"] {
        assert!(visit(shop, "/page", cookies).await.0.starts_with("hit"), "{cookies}");
    }
    assert_eq!(shop.origin.count(), 2);
}

async fn a_purge_clears_the_note_of_an_unstorable_page(shop: &Shop) {
    for purge in [json!({"urls": ["/products/mug"]}), json!({"items": ["mug"]}), json!({"tags": ["mugs"]})] {
        make_popular(shop, "mug").await;
        let reply = || Reply::html("page").header("edge-tags", "mugs");
        shop.origin.answer_with(move |_| reply().header("set-cookie", "basket=7"));
        assert_eq!(visit(shop, "/products/mug", "").await.0, "fwd=uri-miss; detail=set-cookie");
        assert_eq!(visit(shop, "/products/mug", "").await.0, "fwd=bypass; detail=set-cookie");
        shop.origin.answer_with(move |_| reply());
        assert_eq!(visit(shop, "/products/mug", "").await.0, "fwd=bypass; detail=set-cookie");
        service(shop, Method::POST, "/purge", Some(&purge)).await;
        assert_eq!(visit(shop, "/products/mug", "").await.0, "fwd=uri-miss; stored", "{purge}");
        assert!(visit(shop, "/products/mug", "").await.0.starts_with("hit"), "{purge}");
        shop.store.raw(&["FLUSHDB"]).await;
        purge_all(shop).await;
    }
}

async fn a_personal_path_is_never_shared(shop: &Shop) {
    shop.origin.answer(Reply::html("admin").header("cache-control", "public, max-age=60"));
    for path in ["/admin/", "/admin/orders", "//admin/orders", "/%61dmin/orders"] {
        for _ in 0..2 {
            assert_eq!(visit(shop, path, "").await.0, "fwd=bypass; detail=path", "{path}");
        }
    }
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

async fn an_ignored_parameter_is_not_part_of_the_key(shop: &Shop) {
    store_page(shop, "mug").await;
    assert!(is_hit(&shop.visit("/products/mug?ref=mail&utm_source=x").await));
    assert!(!is_hit(&shop.visit("/products/mug?utm_term=x").await));
}

async fn forms_of_shared_pages_work_for_the_same_site_only(shop: &Shop) {
    shop.origin.answer(Reply::html("done").header("set-cookie", "csrftoken=of-one-visitor; Path=/"));
    let host = shop.url.clone();
    for (name, value, is_same_site) in [
        ("sec-fetch-site", "same-origin", true),
        ("sec-fetch-site", "cross-site", false),
        ("origin", host.as_str(), true),
        ("origin", "https://evil.example", false),
        ("x-other", "none of them", false),
    ] {
        let post = shop.request(Method::POST, "/basket").header(name, value).header("cookie", "csrftoken=mine; a=b");
        let answer = post.body("csrfmiddlewaretoken=x").send().await.unwrap();
        let expected = if is_same_site { "a=b; csrftoken=edgefrontverifiestheoriginheader" } else { "a=b" };
        assert_eq!(shop.origin.last().header("cookie"), expected, "{name}: {value}");
        assert_eq!(header(&answer, "set-cookie"), "csrftoken=edgefrontverifiestheoriginheader; Path=/");
    }
    // The visitor gets the cookies of a shared render that cannot be stored. So does a visitor whose own request
    // follows a refused render.
    shop.origin.answer_with(|asked| {
        let status = if asked.path == "/failed" { 503 } else { 200 };
        Reply::html("form").with_status(status).header("set-cookie", "csrftoken=of-one-visitor; Path=/")
    });
    for (path, is_shared) in [("/products/cup", "1"), ("/form", "1"), ("/failed", "")] {
        let answer = shop.visit(path).await;
        assert_eq!(shop.origin.last().header("edge-shared"), is_shared, "{path}");
        assert_eq!(header(&answer, "set-cookie"), "csrftoken=edgefrontverifiestheoriginheader; Path=/", "{path}");
    }
}

async fn an_explanation_names_rules_reason_and_cause(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html("page").header("set-cookie", "basket=secret").header("set-cookie", "history=mug"));
    visit(shop, "/products/mug", "").await;
    let explained = service(shop, Method::GET, "/cache?url=/products/mug", None).await.json;
    assert_eq!(
        (&explained["cacheable"], &explained["why"], &explained["cause"]),
        (&json!(false), &json!("set-cookie"), &json!("set-cookie: basket")),
        "{explained}"
    );
    assert_eq!(explained["rules"]["cookies_dropped"], json!(["history"]));
    assert_eq!(explained["rules"]["cookies_varied"], json!(["lang"]));
    let explained = service(shop, Method::GET, "/cache?url=/admin/", None).await.json;
    assert_eq!((&explained["cacheable"], &explained["why"]), (&json!(false), &json!("path")));
}
