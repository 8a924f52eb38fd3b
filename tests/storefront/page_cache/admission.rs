//! Admission: the pages that are stored.

use super::{cache_status, header, is_hit, make_popular, store_page, stored_pages};
use crate::support::{Reply, Shop, scenarios, set_cookie};

scenarios! {
    // The tests change Redis behind the isolate's back, so each visit must ask Redis.
    &[("PAGE_MEMORY", "0")];
    a_page_is_cached_as_in_the_book,
    a_page_is_cached_if_its_item_is_among_the_most_viewed,
    pages_whose_32_bit_hashes_are_equal_stay_apart,
    a_page_under_anothers_key_is_not_served,
    parameters_do_not_multiply_pages,
    only_a_plain_200_is_stored,
    a_shared_render_has_no_data_of_the_visitor,
    a_page_that_cannot_be_shared_gets_a_personal_render,
    an_item_counts_only_after_the_origin_answered_200,
}

/// The book: a page is cached if it names an item, is not dynamic, and the item is among the most viewed. It is served
/// until it expires, also if the origin changes it. Every other page is rendered for each request.
async fn a_page_is_cached_as_in_the_book(shop: &Shop) {
    shop.origin.answer(Reply::html("content 1"));
    let first = shop.visit("/?item=itemX").await;
    assert_eq!(cache_status(&first), "edgefront; fwd=bypass; detail=unpopular");
    shop.settled().await;
    assert_eq!(shop.store.raw(&["ZRANK", "viewed:", "itemX"]).await, 0);

    let second = shop.visit("/?item=itemX").await;
    assert_eq!(cache_status(&second), "edgefront; fwd=uri-miss; stored");
    shop.settled().await;
    shop.origin.answer(Reply::html("content 2"));
    let third = shop.visit("/?item=itemX").await;
    assert!(is_hit(&third), "{}", cache_status(&third));
    assert_eq!(third.text().await.unwrap(), "content 1");

    for generated in ["/", "/?item=itemX&_=1234536", "/cart", "/?other=itemX"] {
        assert_eq!(shop.visit(generated).await.text().await.unwrap(), "content 2", "{generated}");
    }
    assert_eq!(stored_pages(shop).await.len(), 1);
    let life = shop.store.raw(&["PTTL", &stored_pages(shop).await[0]]).await.as_u64().unwrap();
    assert!((300_000..=360_000).contains(&life), "270 to 300 s fresh and 60 s stale: {life}");
}

// The first rank and the last rank count, and an item without a rank does not.
async fn a_page_is_cached_if_its_item_is_among_the_most_viewed(shop: &Shop) {
    // The scores are ten apart, so the views of this test change no rank.
    let scores = (0..=10_000).flat_map(|rank| [(rank * 10 - 1_000_000).to_string(), format!("item-{rank}")]);
    let command: Vec<_> = ["ZADD".to_owned(), "viewed:".to_owned()].into_iter().chain(scores).collect();
    shop.store.raw(&command.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for (item, cached) in [("item-0", true), ("item-9999", true), ("item-10000", false), ("never-viewed", false)] {
        let path = format!("/products/{item}");
        shop.visit(&path).await;
        shop.settled().await;
        assert_eq!(is_hit(&shop.visit(&path).await), cached, "{item}");
    }
}

// The book's ports hash URLs to 32 bits.
async fn pages_whose_32_bit_hashes_are_equal_stay_apart(shop: &Shop) {
    shop.origin.answer_with(|asked| Reply::html(asked.path.clone()));
    for item in ["Aa", "BB"] {
        make_popular(shop, item).await;
        shop.visit(&format!("/?item={item}")).await;
    }
    shop.settled().await;
    for item in ["Aa", "BB"] {
        let answer = shop.visit(&format!("/?item={item}")).await;
        assert!(is_hit(&answer));
        assert_eq!(answer.text().await.unwrap(), format!("/?item={item}"));
    }
}

async fn a_page_under_anothers_key_is_not_served(shop: &Shop) {
    store_page(shop, "one").await;
    let one = stored_pages(shop).await.remove(0);
    store_page(shop, "two").await;
    let two = stored_pages(shop).await.into_iter().find(|key| *key != one).unwrap();
    shop.store.raw(&["COPY", &one, &two, "REPLACE"]).await;
    assert_eq!(shop.visit("/products/two").await.text().await.unwrap(), "<h1>/products/two</h1>");

    // Code that was written against the book stores a bare body.
    shop.store.raw(&["SET", &one, "<h1>the book's</h1>"]).await;
    // The stored page has ended its lease, so the lease names that page.
    shop.store.raw(&["DEL", &one.replacen("cache:", "render:", 1)]).await;
    let answer = shop.visit("/products/one").await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; stored");
    assert_eq!(answer.text().await.unwrap(), "<h1>/products/one</h1>");
    shop.settled().await;
    assert!(is_hit(&shop.visit("/products/one").await));
}

// The book stores one page for each URL that names a popular item.
async fn parameters_do_not_multiply_pages(shop: &Shop) {
    store_page(shop, "hot").await;
    for query in ["x=1", "x=2", "item=hot", "item=a&item=b"] {
        let answer = shop.visit(&format!("/products/hot?{query}")).await;
        assert_eq!(cache_status(&answer), "edgefront; fwd=bypass; detail=parameters", "{query}");
        assert_eq!(answer.text().await.unwrap(), format!("<h1>/products/hot?{query}</h1>"));
    }
    assert!(is_hit(&shop.visit("/products/hot?utm_source=mail&gclid=1").await));
    assert!(is_hit(&shop.visit("/products/h%6ft").await));
    shop.settled().await;
    assert_eq!(stored_pages(shop).await.len(), 1);
}

// The book stores the body of every response as a page for all.
async fn only_a_plain_200_is_stored(shop: &Shop) {
    make_popular(shop, "mug").await;
    for reply in [
        Reply::html("broken").with_status(500),
        Reply::html("gone").with_status(404),
        Reply::status(302).header("location", "/elsewhere"),
        Reply::html("yours").header("set-cookie", "cart=1"),
        Reply::html("yours").header("cache-control", "private, max-age=60"),
        Reply::html("secret").header("cache-control", "no-store"),
        Reply::html("one of many").header("vary", "cookie"),
        Reply::html("hello").header("edge-login", "ada"),
        Reply::html("hello").header("edge-login", "\""),
        Reply::html("your cart").header("edge-cart", "invalid"),
    ] {
        shop.origin.answer(reply.clone());
        let answer = shop.visit("/products/mug").await;
        assert!(!is_hit(&answer) && !cache_status(&answer).ends_with("stored"), "{reply:?}");
        assert!(!header(&answer, "cache-control").is_empty());
        shop.settled().await;
        assert_eq!(stored_pages(shop).await, Vec::<String>::new(), "{reply:?}");
        // A page that cannot be stored leaves a hit-for-miss note.
        shop.store.raw(&["FLUSHDB"]).await;
        make_popular(shop, "mug").await;
    }
}

async fn a_shared_render_has_no_data_of_the_visitor(shop: &Shop) {
    shop.origin.answer(Reply::html("hello").header("edge-login", "ada"));
    let login = shop.visit("/login").await;
    let cookie = set_cookie(&login);
    shop.origin.answer(Reply::html("page"));
    let ask = async || {
        let request = shop.get("/products/mug").header("cookie", format!("_ga=1; {cookie}"));
        let request = request.header("x-original-url", "/admin").header("x-forwarded-host", "evil.example");
        let answer = request.header("accept-language", "fr").send().await.unwrap();
        shop.settled().await;
        (cache_status(&answer), shop.origin.last())
    };

    let (status, asked) = ask().await;
    assert_eq!(status, "edgefront; fwd=bypass; detail=unpopular");
    assert_eq!((asked.header("cookie"), asked.header("edge-user")), ("_ga=1", "ada"));
    assert_eq!((asked.header("accept-language"), asked.header("x-original-url")), ("fr", ""));

    let (status, asked) = ask().await;
    assert_eq!(status, "edgefront; fwd=uri-miss; stored");
    for name in ["cookie", "edge-user", "accept-language", "x-original-url", "authorization"] {
        assert_eq!(asked.header(name), "", "{name}");
    }
    assert_eq!(asked.header("x-forwarded-host"), shop.url.strip_prefix("http://").unwrap());
    assert_eq!(asked.header("accept-encoding"), "identity");
    assert_ne!(asked.header("edge-key"), "");
}

async fn a_page_that_cannot_be_shared_gets_a_personal_render(shop: &Shop) {
    make_popular(shop, "mug").await;
    // Many storefronts start a session for each visitor without one.
    shop.origin.answer_with(|asked| match asked.header("cookie") {
        "" => Reply::html("hello").header("set-cookie", "own=new"),
        _ => Reply::html("hello again").header("cache-control", "private"),
    });
    let ask = async |name, value| {
        let answer = shop.get("/products/mug").header(name, value).send().await.unwrap();
        assert!(!is_hit(&answer) && !header(&answer, "cache-status").ends_with("stored"));
        (header(&answer, "set-cookie"), answer.text().await.unwrap())
    };
    assert_eq!(ask("cookie", "own=mine").await, (String::new(), "hello again".to_owned()));
    assert_eq!(ask("cookie", "__Host-session=forged").await, ("own=new".to_owned(), "hello".to_owned()));

    shop.origin.answer_with(|asked| {
        let greeting = if asked.header("accept-language") == "fr" { "bonjour" } else { "hello" };
        Reply::html(greeting).header("vary", "accept-language")
    });
    assert_eq!(ask("accept-language", "fr").await.1, "bonjour");

    shop.origin.answer(Reply::html("broken").with_status(500));
    let before = shop.origin.count();
    assert_eq!(ask("cookie", "own=mine").await.1, "broken");
    assert_eq!(shop.origin.count(), before + 1, "an origin that fails is not asked twice");
}

// The book counts every string in the URL as an item.
async fn an_item_counts_only_after_the_origin_answered_200(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/products/mug" => Reply::html("mug"),
        "/products/broken" => Reply::html("").with_status(500),
        _ => Reply::html("nothing here").with_status(404),
    });
    for item in ["broken", "made-up", "a%3Ab", "%00", &"x".repeat(65)] {
        shop.visit(&format!("/products/{item}")).await;
    }
    shop.request(http::Method::HEAD, "/products/mug").send().await.unwrap();
    shop.request(http::Method::POST, "/products/mug").send().await.unwrap();
    shop.settled().await;
    assert_eq!(shop.store.raw(&["ZCARD", "viewed:"]).await, 0);

    // From the origin, from a shared render, and from the cache.
    for network in ["203.0.113.1", "203.0.113.2", "203.0.113.3"] {
        shop.get("/products/mug").header("cf-connecting-ip", network).send().await.unwrap();
        shop.settled().await;
    }
    assert_eq!(shop.store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-3");
}
