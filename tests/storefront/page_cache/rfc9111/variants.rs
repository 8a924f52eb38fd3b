//! Variants: several pages for one URL.

use super::{ask, fresh, status};
use crate::{
    page_cache::{make_popular, stored_pages},
    support::{Reply, Shop, scenarios},
};

scenarios! {
    // The tests change Redis behind the isolate's back, so each visit must ask Redis.
    &[("PAGE_MEMORY", "0")];
    each_variant_is_served_to_requests_with_its_headers,
    a_popular_page_is_rendered_again_with_the_headers_that_it_varies_on,
    a_page_that_varies_on_a_withheld_header_serves_requests_without_it,
    a_page_that_cannot_be_stored_is_rendered_with_the_clients_headers,
    a_page_with_vary_star_is_not_stored,
    variants_are_bounded,
    a_purge_voids_all_variants,
    variants_that_another_program_has_damaged_are_replaced,
}

fn by_language(language: &str) -> Reply {
    fresh(&format!("in {language}"), "max-age=60").header("vary", "Accept-Encoding, Accept-Language")
}

// §4.1
async fn each_variant_is_served_to_requests_with_its_headers(shop: &Shop) {
    shop.origin.answer_with(|asked| by_language(asked.header("accept-language")));
    for (language, expected) in
        [("de", "fwd=uri-miss; stored"), ("en", "fwd=vary-miss; stored"), ("", "fwd=vary-miss; stored")]
    {
        let headers = [("accept-language", language)];
        let headers = if language.is_empty() { &[][..] } else { &headers };
        assert_eq!(ask(shop, "/page", headers).await, (expected.to_owned(), format!("in {language}")));
    }
    for (language, same) in [("de", "de"), ("EN", "en"), ("de , de", "de")] {
        let (status, body) =
            ask(shop, "/page", &[("accept-language", language), ("accept-encoding", "identity")]).await;
        assert!(status.starts_with("hit"), "{language}: {status}");
        assert_eq!(body, format!("in {same}"));
    }
    assert_eq!(shop.origin.count(), 3);
    // A page that no longer varies replaces all variants.
    shop.origin.answer(fresh("for all", "max-age=60"));
    ask(shop, "/page", &[("accept-language", "fr")]).await;
    assert_eq!(ask(shop, "/page", &[("accept-language", "de")]).await.1, "for all");
}

async fn a_popular_page_is_rendered_again_with_the_headers_that_it_varies_on(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin
        .answer_with(|asked| Reply::html(asked.header("accept-language").to_owned()).header("vary", "accept-language"));
    let french = [("accept-language", "fr"), ("accept", "text/html, text/x-own")];
    assert_eq!(ask(shop, "/products/mug", &french).await, ("fwd=uri-miss; stored".to_owned(), "fr".to_owned()));
    let asked = shop.origin.asked();
    assert_eq!((asked.len(), asked[0].header("accept-language"), asked[1].header("accept-language")), (2, "", "fr"));
    assert_ne!(asked[1].header("accept"), "text/html, text/x-own", "it does not vary by that");
    assert!(status(shop, "/products/mug", &french).await.starts_with("hit"));
    // The header is known now.
    assert_eq!(
        ask(shop, "/products/mug", &[("accept-language", "de")]).await,
        ("fwd=vary-miss; stored".to_owned(), "de".to_owned())
    );
    assert_eq!(shop.origin.count(), 3);
}

async fn a_page_that_varies_on_a_withheld_header_serves_requests_without_it(shop: &Shop) {
    shop.origin.answer_with(|asked| fresh(asked.header("cookie"), "max-age=60").header("vary", "cookie, x-group"));
    assert_eq!(status(shop, "/page", &[]).await, "fwd=uri-miss; stored");
    assert!(status(shop, "/page", &[]).await.starts_with("hit"));
    assert_eq!(ask(shop, "/page", &[("cookie", "own=1")]).await.1, "own=1");
    assert!(!status(shop, "/page", &[("x-group", "a")]).await.starts_with("hit"));
    assert!(
        status(shop, "/page", &[("cookie", "__Host-session=ours.mac")]).await.starts_with("hit"),
        "ours stays here"
    );
    assert_eq!(ask(shop, "/page", &[]).await.1, "");
}

async fn a_page_that_cannot_be_stored_is_rendered_with_the_clients_headers(shop: &Shop) {
    let replies = [
        ("private", "", 200),
        ("no-store", "", 200),
        ("max-age=60", "own=new", 200),
        ("", "", 404),
        ("private", "", 302),
    ];
    let headers =
        [("accept-language", "accept-language"), ("dnt", "dnt"), ("x-api-key", "x-api-key"), ("x-api-key", "host")];
    for (header, vary) in headers {
        for (number, (control, cookie, code)) in replies.into_iter().enumerate() {
            let item = format!("{header}-{vary}-{number}");
            make_popular(shop, &item).await;
            shop.origin.answer_with(move |asked| {
                let reply = fresh(asked.header(header), control).header("vary", vary).with_status(code);
                if cookie.is_empty() { reply } else { reply.header("set-cookie", cookie) }
            });
            let (status, body) = ask(shop, &format!("/products/{item}"), &[(header, "own")]).await;
            assert_eq!(body, "own", "{item}: {status}");
        }
    }
}

async fn a_page_with_vary_star_is_not_stored(shop: &Shop) {
    for (path, vary) in [("/a", "*"), ("/b", "accept, *"), ("/c", " , *")] {
        shop.origin.answer(fresh("page", "max-age=60").header("vary", vary));
        assert!(status(shop, path, &[]).await.ends_with("detail=vary-star"), "{vary}");
        assert!(!status(shop, path, &[]).await.starts_with("hit"), "{vary}");
    }
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

async fn variants_are_bounded(shop: &Shop) {
    shop.origin.answer_with(|asked| by_language(asked.header("accept-language")));
    for number in 0..40 {
        let language = format!("l{number}");
        assert_eq!(ask(shop, "/page", &[("accept-language", &language)]).await.1, format!("in {language}"));
    }
    let key = stored_pages(shop).await.remove(0).replace("cache:", "variants:");
    assert_eq!(shop.store.raw(&["HLEN", &key]).await, 16);
    assert!(shop.store.raw(&["PTTL", &key]).await.as_i64().unwrap() > 0);
}

async fn a_purge_voids_all_variants(shop: &Shop) {
    use edgefront::page_cache::{Purge, PurgeMode, purge};
    shop.origin.answer_with(|asked| by_language(asked.header("accept-language")));
    for _ in 0..2 {
        for language in ["de", "en"] {
            assert!(!status(shop, "/page", &[("accept-language", language)]).await.starts_with("hit"), "{language}");
            assert!(status(shop, "/page", &[("accept-language", language)]).await.starts_with("hit"), "{language}");
        }
        purge(&shop.store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
    }
}

async fn variants_that_another_program_has_damaged_are_replaced(shop: &Shop) {
    shop.origin.answer_with(|asked| by_language(asked.header("accept-language")));
    let german = [("accept-language", "de")];
    status(shop, "/page", &german).await;
    for damaged in ["variants:", "cache:"] {
        assert!(status(shop, "/page", &german).await.starts_with("hit"), "{damaged}");
        let key = stored_pages(shop).await.remove(0).replace("cache:", damaged);
        shop.store.raw(&["DEL", &key]).await;
        shop.store.raw(&["RPUSH", &key, "another program's"]).await;
        let (status, body) = ask(shop, "/page", &german).await;
        assert!(status.ends_with("stored") && body == "in de", "{damaged} {status} {body}");
    }
    assert!(status(shop, "/page", &german).await.starts_with("hit"));
}
