//! A fragment that arrives after `HOLES_WAIT_MS`.

use std::time::Duration;

use super::{open, page_of, storefront, visit};
use crate::support::{Shop, scenarios};

scenarios! {
    &[("HOLES_WAIT_MS", "500")];
    a_late_fragment_leaves_the_shared_content,
}

async fn a_late_fragment_leaves_the_shared_content(shop: &Shop) {
    open(shop, storefront).await;
    shop.origin.answer_with(|asked| storefront(asked).after(Duration::from_secs(20)));
    assert_eq!(visit(shop, "sid=ada").await.text().await.unwrap(), page_of("guest"));
    shop.logged("HOLES_WAIT_MS").await;
}
