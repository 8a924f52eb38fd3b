//! A shop that refuses shared renders, for example because it needs the visitor's address, still works.

use futures_util::future::join_all;

use super::{cache_status, make_popular, purge_all, visit};
use crate::support::{Asked, Reply, Shop, scenarios};

scenarios! {
    &[("PAGE_MEMORY", "0")];
    a_visitor_gets_the_page_that_shared_renders_do_not_get,
    a_crowd_gets_the_page_that_shared_renders_do_not_get,
    a_refusal_for_everybody_is_passed_on,
    in_an_outage_a_page_costs_one_request,
    one_failure_does_not_keep_a_page_from_being_shared,
    a_visitor_with_a_cookie_causes_no_renders_that_the_shop_refuses,
}

/// The shop answers shared renders with `status`, and visitors with a page.
fn refuse_shared_renders(shop: &Shop, status: u16) {
    shop.origin.answer_with(move |asked| if is_shared(asked) { Reply::status(status) } else { Reply::html("page") });
}

fn is_shared(asked: &Asked) -> bool {
    asked.header("edge-shared") == "1"
}

/// The visit's status, its `Cache-Status`, and the number of requests to the shop.
async fn visit_counted(shop: &Shop, cookies: &str) -> (u16, String, usize) {
    let before = shop.origin.count();
    let answer = visit(shop, cookies).await;
    shop.settled().await;
    (answer.status().as_u16(), cache_status(&answer), shop.origin.count() - before)
}

async fn a_visitor_gets_the_page_that_shared_renders_do_not_get(shop: &Shop) {
    make_popular(shop, "mug").await;
    for (status, has_note_after) in [(500, 2), (503, 2), (429, 2), (401, 1), (403, 1)] {
        refuse_shared_renders(shop, status);
        for _ in 0..has_note_after {
            let expected = (200, "edgefront; fwd=uri-miss; detail=refused".to_owned(), 2);
            assert_eq!(visit_counted(shop, "").await, expected, "{status}");
        }
        for _ in 0..3 {
            let expected = (200, "edgefront; fwd=bypass; detail=refused".to_owned(), 1);
            assert_eq!(visit_counted(shop, "").await, expected, "{status}");
        }
        purge_all(shop).await;
        shop.origin.answer(Reply::html("page"));
        assert_eq!(visit_counted(shop, "").await.1, "edgefront; fwd=uri-miss; stored", "{status}");
        purge_all(shop).await;
    }
}

async fn a_crowd_gets_the_page_that_shared_renders_do_not_get(shop: &Shop) {
    make_popular(shop, "mug").await;
    refuse_shared_renders(shop, 500);
    let crowd = join_all((0..20).map(|_| visit(shop, ""))).await;
    assert!(crowd.iter().all(|answer| answer.status() == 200));
    assert!(shop.origin.count() <= crowd.len() + 2, "only a holder of the lease causes a shared render");
    visit_counted(shop, "").await;
    assert_eq!(visit_counted(shop, "").await, (200, "edgefront; fwd=bypass; detail=refused".to_owned(), 1));
}

async fn a_refusal_for_everybody_is_passed_on(shop: &Shop) {
    make_popular(shop, "mug").await;
    shop.origin.answer(Reply::html("members only").with_status(403));
    assert_eq!(visit_counted(shop, "").await, (403, "edgefront; fwd=uri-miss; detail=status".to_owned(), 2));
    assert_eq!(visit_counted(shop, "").await, (403, "edgefront; fwd=bypass; detail=status".to_owned(), 1));
}

async fn in_an_outage_a_page_costs_one_request(shop: &Shop) {
    shop.origin.answer(Reply::html("broken").with_status(500));
    make_popular(shop, "mug").await;
    let failed = |requests| (500, "edgefront; fwd=uri-miss; detail=status".to_owned(), requests);
    assert_eq!(visit_counted(shop, "").await, failed(2));
    for _ in 0..3 {
        assert_eq!(visit_counted(shop, "").await, failed(1));
    }
}

async fn one_failure_does_not_keep_a_page_from_being_shared(shop: &Shop) {
    make_popular(shop, "mug").await;
    refuse_shared_renders(shop, 500);
    assert_eq!(visit_counted(shop, "").await.0, 200);
    shop.origin.answer(Reply::html("page"));
    assert_eq!(visit_counted(shop, "").await, (200, "edgefront; fwd=uri-miss; stored".to_owned(), 1));
}

async fn a_visitor_with_a_cookie_causes_no_renders_that_the_shop_refuses(shop: &Shop) {
    make_popular(shop, "mug").await;
    for (status, requests) in [(500, [2, 2, 1, 1]), (403, [2, 1, 1, 1])] {
        refuse_shared_renders(shop, status);
        for requests in requests {
            let (own, detail, asked) = visit_counted(shop, "sid=ada").await;
            assert_eq!((own, asked), (200, requests), "{status}");
            assert!(asked == 2 || detail == "edgefront; fwd=bypass; detail=refused", "{status}: {detail}");
        }
        purge_all(shop).await;
    }
}
