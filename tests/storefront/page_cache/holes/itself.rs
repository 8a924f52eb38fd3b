//! Holes that the page of the same URL fills.

use super::{asked_later, is_hit, make_popular, name, visit};
use crate::support::{Reply, Shop, scenarios};

scenarios! {
    &[
        ("HOLES", "/products/* main <- ."),
        ("COOKIES_HOLES", "sid"),
        ("COOKIES_DROPPED", "seen@/products/*"),
    ];
    a_page_can_fill_its_own_holes,
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
