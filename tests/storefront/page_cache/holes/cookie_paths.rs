//! The path of a cookie that a page sets, and that the response to another request carries to the browser.

use http::Method;

use crate::{
    page_cache::header,
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[
        ("HOLES", "/products/* [name=token] <- token"),
        ("COOKIES_HOLES", "sid"),
        ("COOKIES_DROPPED", "sid@/products/*"),
        ("HOLES_WAIT_MS", "20000"),
    ];
    a_cookie_of_a_page_for_holes_keeps_the_path_of_its_page,
    a_cookie_of_a_fragment_keeps_the_path_of_its_fragment,
}

/// `0 [name=token]`, `/products/mug` in base64url.
const PLACEHOLDER: &str = "edgefront-token-MCBbbmFtZT10b2tlbl0KL3Byb2R1Y3RzL211Zw";

// RFC 6265 §5.1.4
async fn a_cookie_of_a_page_for_holes_keeps_the_path_of_its_page(shop: &Shop) {
    for (line, expected) in [
        ("sid=new", "sid=new; Path=/products"),
        ("sid=new; HttpOnly; Path=", "sid=new; HttpOnly; Path=; Path=/products"),
        ("sid=new; path=/", "sid=new; path=/"),
    ] {
        shop.origin.answer_with(move |asked| match asked.method {
            Method::GET => Reply::html("<form><input name=token value=new></form>").header("set-cookie", line),
            _ => Reply::html("added"),
        });
        let answer = shop.visit("/_edge/v1/holes?page=/products/mug").await;
        assert_eq!(header(&answer, "set-cookie"), expected);
        let form = shop.request(Method::POST, "/cart").header("sec-fetch-site", "same-origin");
        let form = form.header("content-type", "application/x-www-form-urlencoded");
        let answer = form.body(format!("token={PLACEHOLDER}")).send().await.unwrap();
        assert_eq!(shop.origin.last().body, "token=new");
        assert_eq!(header(&answer, "set-cookie"), expected);
    }
}

async fn a_cookie_of_a_fragment_keeps_the_path_of_its_fragment(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/parts/user?a=/b" => Reply::html("user").header("set-cookie", "seen=1"),
        _ => Reply::html("<esi:include src='/parts/user?a=/b'/>").header("surrogate-control", r#"content="ESI/1.0""#),
    });
    let answer = shop.request(Method::POST, "/account").send().await.unwrap();
    assert_eq!(header(&answer, "set-cookie"), "seen=1; Path=/parts");
}
