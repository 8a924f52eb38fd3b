//! A page for holes that arrives after `HOLES_WAIT_MS`.

use std::time::Duration;

use super::{open, storefront, visit};
use crate::support::{Shop, scenarios};

scenarios! {
    &[("HOLES", "/products/* #mini <- /basket"), ("COOKIES_HOLES", "sid"), ("HOLES_WAIT_MS", "500")];
    a_late_page_leaves_the_shared_content,
}

async fn a_late_page_leaves_the_shared_content(shop: &Shop) {
    open(shop).await;
    shop.origin.answer_with(|asked| storefront(asked).after(Duration::from_secs(20)));
    let body = visit(shop, "sid=ada").await.text().await.unwrap();
    assert!(body.contains("<b>guest</b></div><script type=\"module\" src=\"/_edge/assets/holes.js"), "{body}");
    shop.logged("HOLES_WAIT_MS").await;
}
