//! Pages whose ESI is refused: no visitor gets the markup.

use super::{
    super::{cache_status, make_popular, name, visit},
    page_of, template,
};
use crate::support::{Reply, Shop, scenarios};

scenarios! {
    &[("COOKIES_PERSONAL", "staff"), ("HOLES_WAIT_MS", "20000")];
    unsupported_esi_is_refused_with_its_reason,
    the_origin_fills_a_page_whose_esi_is_refused,
    the_origin_fills_a_page_that_is_not_stored,
}

async fn unsupported_esi_is_refused_with_its_reason(shop: &Shop) {
    for (item, markup, cause) in [
        ("vars", "<esi:vars>$(HTTP_HOST)</esi:vars>", "<esi:vars> is not supported"),
        ("host", "<esi:include src='https://evil.example/'/>", "not https://evil.example/"),
        ("broken", "<esi:include src='/a", "malformed: <esi:include src='/a"),
        ("gone", "<esi:include src='/gone'/>", "the include /gone: "),
        ("many", &"<esi:include src='/a'/>".repeat(11), "more than 10 includes"),
    ] {
        make_popular(shop, item).await;
        let markup = markup.to_owned();
        shop.origin.answer_with(move |asked| match asked.path.as_str() {
            "/gone" => Reply::status(404),
            "/a" => Reply::html("a"),
            _ => template(format!("secret{markup}")),
        });
        for (cookies, expected) in
            [("", "edgefront; fwd=uri-miss; detail=esi"), ("staff=1", "edgefront; fwd=bypass; detail=esi")]
        {
            let answer = shop.get(&format!("/products/{item}")).header("cookie", cookies).send().await.unwrap();
            assert_eq!((answer.status().as_u16(), cache_status(&answer).as_str()), (502, expected), "{item}");
            let body = answer.text().await.unwrap();
            assert!(!body.contains("secret") && !body.contains("esi:"), "{body}");
        }
        shop.logged(cause).await;
    }
}

async fn the_origin_fills_a_page_whose_esi_is_refused(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer_with(|asked| match asked.header("surrogate-capability") {
        "" => Reply::html(page_of(name(asked))),
        _ => template("<esi:vars>$(HTTP_HOST)</esi:vars>"),
    });
    let answer = visit(shop, "").await;
    assert_eq!(
        (answer.status().as_u16(), cache_status(&answer).as_str()),
        (200, "edgefront; fwd=uri-miss; detail=esi")
    );
    assert_eq!(answer.text().await.unwrap(), page_of("guest"));
    shop.logged("<esi:vars> is not supported").await;
    shop.settled().await;
    for name in ["guest", "ada"] {
        let before = shop.origin.count();
        let answer = visit(shop, &format!("sid={name}")).await;
        assert_eq!(answer.text().await.unwrap(), page_of(name));
        assert_eq!(shop.origin.count(), before + 1, "a note says that the page cannot be stored");
    }
}

async fn the_origin_fills_a_page_that_is_not_stored(shop: &Shop) {
    shop.origin.answer_with(|asked| match (asked.path.as_str(), asked.header("surrogate-capability")) {
        ("/gone", _) => Reply::status(404),
        (_, "") => Reply::html(page_of(name(asked))).header("cache-control", "private"),
        _ => template("<esi:include src='/gone'/>").header("cache-control", "private"),
    });
    let answer = visit(shop, "").await;
    assert_eq!(
        (answer.status().as_u16(), cache_status(&answer).as_str()),
        (200, "edgefront; fwd=uri-miss; detail=private")
    );
    assert_eq!(answer.text().await.unwrap(), page_of("guest"));
}
