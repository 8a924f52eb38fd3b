//! Holes that the page of the same URL fills.

use std::sync::atomic::{AtomicBool, Ordering};

use edgefront::{
    page_cache::{Purge, PurgeMode, purge},
    ports::fetch::Body,
    routes,
};
use http::Method;

use super::{asked_later, cache_status, is_hit, make_popular, name, visit};
use crate::support::{Reply, Shop, Store, TestOrigin, scenarios};

scenarios! {
    &[
        ("HOLES", "/products/* main <- ."),
        ("COOKIES_HOLES", "sid"),
        ("COOKIES_DROPPED", "seen@/products/*"),
        ("WRITES_PERSONAL", "/cart/*"),
        ("CHOICES", "/language, ?lang"),
    ];
    a_page_can_fill_its_own_holes,
    a_file_that_is_declared_shared_is_the_same_for_all_visitors,
    the_page_after_a_change_shows_a_flash_message_outside_of_the_holes,
    the_page_after_a_redirect_shows_a_flash_message_outside_of_the_holes,
    a_language_in_the_session_shows_on_all_pages_after_its_choice,
}

async fn a_page_can_fill_its_own_holes(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(|asked| {
        let page = format!("<h1>{}</h1><main>a price for {}</main>", asked.path, name(asked));
        Reply::html(page).header("set-cookie", "seen=mug; Path=/")
    });
    shop.visit("/products/mug").await;
    shop.settled().await;
    for name in ["ada", "bob"] {
        let answer = visit(shop, &format!("sid={name}")).await;
        assert!(is_hit(&answer));
        assert_eq!(answer.text().await.unwrap(), format!("<h1>/products/mug</h1><main>a price for {name}</main>"));
    }
    assert_eq!(asked_later(shop), ["/products/mug"; 2]);
}

async fn a_file_that_is_declared_shared_is_the_same_for_all_visitors(shop: &Shop) {
    for (path, kind, freshness, vary, is_shared) in [
        ("/app.css", "text/css; charset=utf-8", "public, max-age=60", "accept-encoding", true),
        ("/logo", "image/png", "public, max-age=60", "accept-encoding", true),
        ("/theme.css", "text/css", "public, max-age=60", "Cookie", false),
        ("/own.css", "text/css", "max-age=60", "accept-encoding", false),
        ("/api/offers", "application/json", "public, max-age=60", "accept-encoding", false),
    ] {
        let reply = Reply::status(200).header("content-type", kind).header("cache-control", freshness);
        shop.origin.answer(reply.header("vary", vary));
        shop.visit(path).await;
        shop.settled().await;
        let answer = shop.get(path).header("cookie", "sid=ada").send().await.unwrap();
        assert_eq!(is_hit(&answer), is_shared, "{path}: {}", cache_status(&answer));
    }
}

/// The origin keeps the message in the session until it renders the next page, as Rails, Laravel and Django do.
async fn the_page_after_a_change_shows_a_flash_message_outside_of_the_holes(shop: &Shop) {
    make_popular(shop, "mug").await;
    let has_message = AtomicBool::new(false);
    shop.origin.answer_with(move |asked| {
        if asked.method == Method::POST {
            has_message.store(true, Ordering::SeqCst);
            return Reply::status(303).header("location", "/products/mug");
        }
        let is_ada = name(asked) == "ada";
        let flash = if is_ada && has_message.swap(false, Ordering::SeqCst) { "<p>Added</p>" } else { "" };
        Reply::html(format!("{flash}<main>a price for {}</main>", name(asked)))
    });
    shop.visit("/products/mug").await;
    shop.settled().await;
    shop.request(Method::POST, "/cart/add").header("cookie", "sid=ada").send().await.unwrap();
    for (cookies, status, body) in [
        (
            "sid=ada; __Host-session-changed=1",
            "edgefront; fwd=bypass; detail=cookie",
            "<p>Added</p><main>a price for ada</main>",
        ),
        ("sid=bob", "edgefront; hit", "<main>a price for bob</main>"),
        ("__Host-session-changed=1", "edgefront; hit", "<main>a price for guest</main>"),
        ("sid=ada", "edgefront; hit", "<main>a price for ada</main>"),
    ] {
        let answer = visit(shop, cookies).await;
        assert!(cache_status(&answer).starts_with(status), "{cookies}: {}", cache_status(&answer));
        assert_eq!(answer.text().await.unwrap(), body, "{cookies}");
    }
}

/// Shops redirect a GET with a message, too: "Your cart is empty".
async fn the_page_after_a_redirect_shows_a_flash_message_outside_of_the_holes(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let (status, control) = match asked.path.as_str() {
            "/moved" => (301, "private"),
            "/shared" => (302, "public, max-age=60"),
            _ => (302, "private"),
        };
        let redirect = Reply::status(status).header("location", "/products/mug").header("cache-control", control);
        if asked.path == "/new" { redirect.header("set-cookie", "sid=new") } else { redirect }
    });
    for (path, cookies, has_message) in [
        ("/checkout", "sid=ada", true),
        ("/new", "", true),
        ("/checkout", "", false),
        ("/moved", "sid=ada", false),
        ("/shared", "sid=ada", false),
        ("/shared", "sid=ada", false),
    ] {
        let mut request = shop.get(path);
        if !cookies.is_empty() {
            request = request.header("cookie", cookies);
        }
        let answer = request.send().await.unwrap();
        let mut lines = answer.headers().get_all("set-cookie").iter();
        let is_changed = lines.any(|line| line.to_str().unwrap().starts_with("__Host-session-changed=1; "));
        assert_eq!(is_changed, has_message, "{path} {cookies}: {:?}", answer.headers());
    }
}

async fn a_language_in_the_session_shows_on_all_pages_after_its_choice(shop: &Shop) {
    make_popular(shop, "mug").await;
    let is_german = AtomicBool::new(false);
    shop.origin.answer_with(move |asked| {
        if asked.path == "/language" {
            is_german.store(true, Ordering::SeqCst);
            return Reply::status(303).header("location", "/products/mug");
        }
        let language = if name(asked) == "ada" && is_german.load(Ordering::SeqCst) { "German" } else { "English" };
        Reply::html(format!("<h1>{language}</h1><main>for {}</main>", name(asked)))
    });
    shop.visit("/products/mug").await;
    shop.settled().await;
    let choose = async |method: Method, path: &str| {
        let answer = shop.request(method, path).header("cookie", "sid=ada").send().await.unwrap();
        let cookies = answer.headers().get_all("set-cookie").iter();
        cookies.filter(|line| line.to_str().unwrap().starts_with("__Host-session-choice=1; Max-Age=31536000; ")).count()
    };
    assert_eq!(choose(Method::POST, "/other").await, 0, "not a choice");
    assert_eq!(choose(Method::POST, "/language").await, 1);
    assert_eq!(choose(Method::GET, "/language?code=de").await, 1);
    assert_eq!(choose(Method::GET, "/products/mug?lang=de").await, 1);
    for (cookies, status, body) in [
        (
            "sid=ada; __Host-session-choice=1",
            "edgefront; fwd=bypass; detail=cookie",
            "<h1>German</h1><main>for ada</main>",
        ),
        ("sid=bob", "edgefront; hit", "<h1>English</h1><main>for bob</main>"),
        ("__Host-session-choice=1", "edgefront; hit", "<h1>English</h1><main>for guest</main>"),
    ] {
        let answer = visit(shop, cookies).await;
        assert!(cache_status(&answer).starts_with(status), "{cookies}: {}", cache_status(&answer));
        assert_eq!(answer.text().await.unwrap(), body, "{cookies}");
    }
}

/// The origin confirms the page with its own `ETag`, whatever the rules are.
#[tokio::test]
async fn a_browser_gets_the_page_again_after_a_new_rule() {
    let (store, origin) = (Store::new().await, TestOrigin::start());
    let form = "<form><input name=a value=1><input name=b value=2></form>";
    origin.answer(Reply::html(form).header("etag", "\"1\"").header("cache-control", "max-age=60"));
    let visit = async |rules: &str, held: Option<&str>| {
        let app = store.app(&[("ORIGIN_URL", &origin.url()), ("HOLES", rules)]);
        let request = http::Request::get("https://shop.example/page");
        let request = held.into_iter().fold(request, |request, held| request.header("if-none-match", held));
        let answer = routes::handle(&app, request.body(Body::Empty).unwrap()).await;
        for work in answer.background {
            work.await;
        }
        (answer.response.status().as_u16(), answer.response.headers()["etag"].to_str().unwrap().to_owned())
    };
    let (old, new) = ("/page [name=a] <- token", "/page [name=a] <- token; /page [name=b] <- token");
    let (_, held) = visit(old, None).await;
    assert_eq!(visit(old, Some(&held)).await.0, 304);
    purge(&store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
    let (_, renewed) = visit(new, None).await;
    for (etag, expected) in [(&held, 200), (&renewed, 304)] {
        assert_eq!(visit(new, Some(etag)).await.0, expected, "{etag}");
    }
}
