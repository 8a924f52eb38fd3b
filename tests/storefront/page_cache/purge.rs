//! A purge takes effect at once, on stored pages and on pages that are being rendered.

use edgefront::{
    config::rules::UrlRules,
    page_cache::{PageKey, Purge, PurgeMode, purge},
    schema::ids::{ItemId, Tag},
};
use futures_util::future::join;

use super::{cache_status, is_hit, store_page, stored_pages};
use crate::support::{Reply, Shop, eventually, scenarios};

scenarios! {
    // The tests change Redis behind the isolate's back, so each visit must ask Redis.
    &[("PAGE_MEMORY", "0")];
    each_purge_voids_what_it_names,
    a_soft_purge_makes_stale_what_it_names,
    a_slow_render_does_not_store_the_page_of_before_the_purge,
    a_lease_that_is_not_ours_stores_nothing,
    a_purge_repairs_marks_that_another_program_has_damaged,
    a_purge_holds_without_the_time_of_the_latest_one,
}

async fn each_purge_voids_what_it_names(shop: &Shop) {
    shop.origin.answer_with(|asked| {
        let tags = if asked.path.ends_with("mug") { "mugs, sale" } else { "sale" };
        Reply::html(asked.path.clone()).header("edge-tags", tags)
    });
    let mug = PageKey::of_url(&format!("{}/products/mug", shop.url), &UrlRules::default()).unwrap();
    let tag = |name| Purge::Tag(Tag::parse(name).unwrap());
    for (purged, mug_is_void, cup_is_void) in [
        (Purge::Item(ItemId::parse("mug").unwrap()), true, false),
        (Purge::Url(mug), true, false),
        (tag("mugs"), true, false),
        (tag("sale"), true, true),
        (tag("other"), false, false),
        (Purge::Item(ItemId::parse("mu").unwrap()), false, false),
        (Purge::All, true, true),
    ] {
        shop.store.raw(&["FLUSHDB"]).await;
        store_page(shop, "mug").await;
        store_page(shop, "cup").await;
        purge(&shop.store.aside, std::slice::from_ref(&purged), PurgeMode::Hard).await.unwrap();
        let voided = async |path| !is_hit(&shop.visit(path).await);
        assert_eq!(voided("/products/mug").await, mug_is_void, "{purged:?}");
        assert_eq!(voided("/products/cup").await, cup_is_void, "{purged:?}");
        shop.settled().await;
        assert!(is_hit(&shop.visit("/products/mug").await), "rendered anew after {purged:?}");
    }
}

async fn a_soft_purge_makes_stale_what_it_names(shop: &Shop) {
    // `PAGE_STALE` permits to serve the page while it is rendered again.
    shop.origin.answer(Reply::html("old").header("edge-tags", "sale"));
    store_page(shop, "mug").await;
    let soft = async |purge: Purge| {
        edgefront::page_cache::purge(&shop.store.aside, &[purge], PurgeMode::Soft).await.unwrap();
    };
    soft(Purge::Tag(Tag::parse("other").unwrap())).await;
    assert!(!cache_status(&shop.visit("/products/mug").await).contains("ttl=-"));
    for (round, named) in
        [Purge::Tag(Tag::parse("sale").unwrap()), Purge::Item(ItemId::parse("mug").unwrap()), Purge::All]
            .into_iter()
            .enumerate()
    {
        shop.settled().await;
        let before = shop.origin.count();
        soft(named).await;
        shop.origin.answer(Reply::html(format!("new {round}")).header("edge-tags", "sale"));
        let stale = shop.visit("/products/mug").await;
        assert!(is_hit(&stale), "{}", cache_status(&stale));
        assert!(!stale.text().await.unwrap().ends_with(&round.to_string()));
        shop.settled().await;
        assert_eq!(shop.origin.count(), before + 1, "rendered anew behind the answer");
        assert_eq!(shop.visit("/products/mug").await.text().await.unwrap(), format!("new {round}"));
    }
}

// The book's slow render would store the old page after the purge.
async fn a_slow_render_does_not_store_the_page_of_before_the_purge(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-1000", "mug"]).await;
    shop.origin.answer(Reply::html("old price"));
    shop.origin.hold();
    let change = async {
        eventually("the origin is asked", async || shop.origin.count() == 1).await;
        purge(&shop.store.aside, &[Purge::Item(ItemId::parse("mug").unwrap())], PurgeMode::Hard).await.unwrap();
        shop.origin.release();
    };
    let (visit, ()) = join(shop.visit("/products/mug"), change).await;
    assert_eq!(visit.text().await.unwrap(), "old price");
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());

    shop.origin.answer(Reply::html("new price"));
    let answer = shop.visit("/products/mug").await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; stored");
    assert_eq!(answer.text().await.unwrap(), "new price");
}

async fn a_lease_that_is_not_ours_stores_nothing(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-1000", "mug"]).await;
    shop.origin.hold();
    let lose_it = async {
        eventually("the origin is asked", async || shop.origin.count() == 1).await;
        let leases = shop.store.raw(&["KEYS", "render:*"]).await;
        shop.store.raw(&["SET", leases[0].as_str().unwrap(), "somebody else's"]).await;
        shop.origin.release();
    };
    let (visit, ()) = join(shop.visit("/products/mug"), lose_it).await;
    assert_eq!(visit.status(), 200);
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

async fn a_purge_repairs_marks_that_another_program_has_damaged(shop: &Shop) {
    let item = |name| [Purge::Item(ItemId::parse(name).unwrap())];
    for damage in [
        ["RPUSH", "purged:", "another program's"],
        ["RPUSH", "purged:latest", "another program's"],
        ["SET", "purged:latest", "another program's"],
    ] {
        shop.store.raw(&["FLUSHDB"]).await;
        store_page(shop, "mug").await;
        purge(&shop.store.aside, &item("cup"), PurgeMode::Hard).await.unwrap();
        shop.store.raw(&["DEL", damage[1]]).await;
        shop.store.raw(&damage).await;
        let first = cache_status(&shop.visit("/products/mug").await);
        assert!(first.ends_with("stored") || first.contains("; hit"), "{damage:?}: {first}");
        shop.settled().await;
        assert!(is_hit(&shop.visit("/products/mug").await), "{damage:?}");

        purge(&shop.store.aside, &item("mug"), PurgeMode::Hard).await.unwrap();
        assert!(!is_hit(&shop.visit("/products/mug").await), "{damage:?}");
        shop.settled().await;
        assert!(is_hit(&shop.visit("/products/mug").await), "{damage:?}");
    }
}

async fn a_purge_holds_without_the_time_of_the_latest_one(shop: &Shop) {
    purge(&shop.store.aside, &[Purge::All], PurgeMode::Hard).await.unwrap();
    store_page(shop, "mug").await;
    shop.store.raw(&["DEL", "purged:latest"]).await;
    assert!(is_hit(&shop.visit("/products/mug").await));
    purge(&shop.store.aside, &[Purge::Item(ItemId::parse("mug").unwrap())], PurgeMode::Hard).await.unwrap();
    shop.store.raw(&["DEL", "purged:latest"]).await;
    assert!(!is_hit(&shop.visit("/products/mug").await));
}
