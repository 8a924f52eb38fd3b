//! If a shared render follows a personal one and cannot be stored, it leaves a hit-for-miss note. Without the note, each visitor with an
//! unknown cookie would cost the origin two or more requests.

use super::rfc9111::fresh;
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[("PAGE_MEMORY", "0"), ("COOKIES_VARIED", "lang=de|en")];
    a_page_whose_esi_is_refused_leaves_a_note,
    a_page_that_varies_on_cookies_for_visitors_without_them_leaves_a_note,
    a_redirect_of_a_request_with_a_varied_cookie_leaves_a_note,
    a_refused_page_does_not_replace_the_stored_one,
}

/// Returns whether a shared render sent the request.
fn is_shared(asked: &Asked) -> bool {
    !asked.header("edge-shared").is_empty()
}

/// Visits the page twice with this cookie. The second visit costs the origin one request.
async fn visit_twice(shop: &Shop, cookie: &str) {
    for requests in [2, 1] {
        let before = shop.origin.count();
        let answer = shop.get("/page").header("cookie", cookie).send().await.unwrap();
        assert_eq!(answer.text().await.unwrap(), "personal");
        shop.settled().await;
        assert_eq!(shop.origin.count(), before + requests, "{cookie}");
    }
}

/// A page with ESI that edgefront does not support.
fn unsupported() -> Reply {
    fresh("<esi:vars>$(HTTP_HOST)</esi:vars>", "max-age=60").header("surrogate-control", r#"content="ESI/1.0""#)
}

async fn a_page_whose_esi_is_refused_leaves_a_note(shop: &Shop) {
    shop.origin.answer_with(|asked| if is_shared(asked) { unsupported() } else { fresh("personal", "max-age=60") });
    visit_twice(shop, "own=1").await;
    let before = shop.origin.count();
    assert_eq!(shop.visit("/page").await.text().await.unwrap(), "personal");
    assert_eq!(shop.origin.count(), before + 1, "a visitor without cookies");
}

async fn a_page_that_varies_on_cookies_for_visitors_without_them_leaves_a_note(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        if is_shared(asked) {
            fresh("shared", "max-age=60").header("vary", "cookie")
        } else {
            fresh("personal", "max-age=60")
        }
    });
    visit_twice(shop, "own=1").await;
    assert_eq!(shop.visit("/page").await.text().await.unwrap(), "shared", "the note is on visitors with cookies");
}

async fn a_redirect_of_a_request_with_a_varied_cookie_leaves_a_note(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        if is_shared(asked) { Reply::status(302).header("location", "/") } else { fresh("personal", "max-age=60") }
    });
    visit_twice(shop, "lang=de; own=1").await;
}

async fn a_refused_page_does_not_replace_the_stored_one(shop: &Shop) {
    let control = "max-age=0, stale-while-revalidate=60, stale-if-error=60";
    shop.origin.answer(fresh("stored", control).header("etag", "\"a\""));
    shop.visit("/page").await;
    shop.settled().await;
    shop.origin.answer(unsupported());
    for _ in 0..2 {
        assert_eq!(shop.visit("/page").await.text().await.unwrap(), "stored");
        shop.settled().await;
    }
}
