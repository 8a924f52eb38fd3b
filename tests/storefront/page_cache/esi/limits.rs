//! Fragments that limit the lifetime of their page. Each visit asks Redis.

use edgefront::{
    page_cache::{Purge, PurgeMode, purge},
    schema::ids::Tag,
};

use super::{cache_status, template};
use crate::support::{Reply, Shop, scenarios};

scenarios! {
    &[("PAGE_MEMORY", "0")];
    a_page_lives_no_longer_than_its_fragments,
    a_page_lives_no_longer_than_a_fragment_without_stated_freshness,
}

async fn a_page_lives_no_longer_than_its_fragments(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/fragment" => Reply::html("a").header("cache-control", "max-age=100").header("edge-tags", "banner"),
        _ => template("1<esi:include src='/fragment'/>2").header("cache-control", "public, max-age=600"),
    });
    shop.visit("/about").await;
    shop.settled().await;
    let status = cache_status(&shop.visit("/about").await);
    let ttl: i64 = status.strip_prefix("edgefront; hit; ttl=").unwrap().parse().unwrap();
    assert!(ttl <= 100, "{status}");
    let purged = Purge::Tag(Tag::parse("banner").unwrap());
    purge(&shop.store.aside, &[purged], PurgeMode::Hard).await.unwrap();
    assert_eq!(cache_status(&shop.visit("/about").await), "edgefront; fwd=uri-miss; stored");
}

async fn a_page_lives_no_longer_than_a_fragment_without_stated_freshness(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/fragment" => Reply::html("a"),
        _ => template("1<esi:include src='/fragment'/>2").header("cache-control", "public, max-age=86400"),
    });
    shop.visit("/about").await;
    shop.settled().await;
    let status = cache_status(&shop.visit("/about").await);
    let ttl: i64 = status.strip_prefix("edgefront; hit; ttl=").unwrap().parse().unwrap();
    // The default of `PAGE_TTL`.
    assert!(ttl <= 300, "{status}");
}
