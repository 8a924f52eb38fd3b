//! Writes to pages: each isolate of both tiers shows the page after the write.

use futures_util::future::{join, join_all};
use http::Method;

use super::{at, hops, open, tiers, visit};
use crate::support::{Reply, eventually};

#[tokio::test]
async fn a_write_to_a_page_is_seen_at_once_where_it_passes() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
    open(&tiers).await;
    shop.origin.answer(Reply::html("written"));
    assert_eq!(at(&tiers.edge[0], Method::POST, "/products/mug").send().await.unwrap().status(), 200);
    hops(&tiers).await;
    assert_eq!(visit(&tiers.edge[0], "/products/mug").await.text().await.unwrap(), "written");
}

#[tokio::test]
async fn a_slow_write_is_seen_although_another_write_began_later_and_ended_before() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
    open(&tiers).await;
    tiers.set_home_fault("elsewhere-later").await;
    let write = async |edge| at(edge, Method::POST, "/products/mug").send().await.unwrap().status();
    let others = async {
        eventually("the slow write has begun", async || tiers.hops().await.contains(&"POST /products/mug".to_owned()))
            .await;
        tiers.set_home_fault("").await;
        assert_eq!(write(&tiers.edge[1]).await, 200);
        tiers.home.settled().await;
        visit(&tiers.edge[1], "/products/mug").await;
        tiers.home.settled().await;
        shop.origin.answer(Reply::html("written"));
        tiers.set_home_fault("elsewhere").await;
    };
    let (slow, ()) = join(write(&tiers.edge[0]), others).await;
    tiers.set_home_fault("").await;
    assert_eq!(slow, 204);
    assert_eq!(visit(&tiers.edge[0], "/products/mug").await.text().await.unwrap(), "written");
}

#[tokio::test]
async fn a_write_costs_one_render_for_all_isolates() {
    let (tiers, shop) = tiers(&[("PAGE_MEMORY", "3600")]).await;
    open(&tiers).await;
    // Another home isolate passes the first write on.
    tiers.set_home_fault("elsewhere").await;
    assert_eq!(at(&tiers.edge[0], Method::POST, "/products/mug").send().await.unwrap().status(), 204);
    tiers.set_home_fault("").await;
    for writer in [&shop, &tiers.edge[0]] {
        assert_eq!(at(writer, Method::POST, "/products/mug").send().await.unwrap().status(), 200);
        shop.settled().await;
        tiers.home.settled().await;
        let written = shop.origin.count();
        for _ in 0..2 {
            let visits = [&tiers.edge[0], &tiers.edge[1], &tiers.home, &tiers.edge[0]];
            join_all(visits.map(|isolate| visit(isolate, "/products/mug"))).await;
            tiers.home.settled().await;
        }
        assert_eq!(shop.origin.count(), written + 1);
    }
}
