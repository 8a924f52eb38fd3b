//! Changes of one visitor that overlap, as those of two tabs or of a double click.

use std::time::Duration;

use edgefront_gateway::{Fault, FaultScope};
use futures_util::future::join_all;
use http::Method;
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::TestRunner,
};
use serde_json::json;

use super::{
    CART, IMPATIENT, LONG,
    browser::{Answer, Browser, put},
    header_of,
};
use crate::{
    routes::api::with_json,
    support::{Regions, Reply, SERVICE_KEY, Shop, eventually},
};

/// A visitor with a cart of one mug, which all replicas have.
async fn visitor(regions: &Regions) -> Browser {
    let mut visitor = Browser::default();
    visitor.put(&regions.home, "mug", 1).await;
    catch_up(regions, &visitor, 1).await;
    visitor.without_token()
}

/// Lets the replicas execute all writes until now, and stops them there. The cart has `quantity` then.
async fn catch_up(regions: &Regions, visitor: &Browser, quantity: u32) {
    regions.replicate();
    for far in &regions.far {
        let has_it = async || visitor.without_token().quantity(far).await == json!(quantity);
        eventually("the replica has the quantity", has_it).await;
    }
    regions.stop_replication();
}

/// Two requests that the visitor sends at the same moment. The first one sets the quantity 2, and the replicas execute it
/// before the primary gets the second one.
async fn overlap(visitor: &Browser, regions: &Regions, second: reqwest::RequestBuilder) -> [Answer; 2] {
    let (first, second) = (visitor.ask(put(&regions.far[0], "mug", 2)), visitor.ask(second));
    let first = first.await;
    let mut elsewhere = visitor.clone();
    elsewhere.store(&first.cookies);
    catch_up(regions, &elsewhere, 2).await;
    [first, second.await]
}

/// The orders in which the answers to two requests may arrive.
const ORDERS: [[usize; 2]; 2] = [[0, 1], [1, 0]];

/// The answers arrive in this order.
fn receive(visitor: &mut Browser, answers: &[Answer; 2], order: [usize; 2]) {
    for index in order {
        visitor.store(&answers[index].cookies);
    }
}

/// A visitor with the cookies of two cart writes that overlapped. The replicas have executed the first one.
async fn visitor_with_two_cookies(regions: &Regions) -> Browser {
    let mut visitor = visitor(regions).await;
    for answer in overlap(&visitor, regions, put(&regions.far[1], "mug", 3)).await {
        visitor.store(&answer.cookies);
    }
    assert_eq!(visitor.sync_names().len(), 2);
    visitor
}

#[tokio::test]
async fn after_overlapping_changes_the_last_one_is_seen_everywhere_in_either_order_of_arrival() {
    let regions = Regions::start(&[], IMPATIENT).await;
    for order in ORDERS {
        let mut visitor = visitor(&regions).await;
        let answers = overlap(&visitor, &regions, put(&regions.far[1], "mug", 3)).await;
        receive(&mut visitor, &answers, order);
        for far in &regions.far {
            assert_eq!(visitor.without_token().quantity(far).await, json!(2), "the replica has the first change");
        }
        // Each location may be the one that merges the tokens.
        for first in regions.all() {
            let mut visitor = visitor.clone();
            for reader in [[first].as_slice(), &regions.all()].concat() {
                assert_eq!(visitor.quantity(reader).await, json!(3), "order of arrival {order:?}");
                assert_eq!(visitor.sync_names().len(), 1);
            }
        }
    }
}

#[tokio::test]
async fn a_login_and_a_logout_that_overlap_with_a_cart_write_are_seen_everywhere() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [_, other] = &regions.far;
    for order in ORDERS {
        let mut visitor = visitor(&regions).await;
        let login = with_json(other.request(Method::POST, "/_edge/v1/sessions"), &json!({"user": "ada"}));
        let answers = overlap(&visitor, &regions, login.bearer_auth(SERVICE_KEY)).await;
        receive(&mut visitor, &answers, order);
        for reader in regions.all() {
            let seen = (visitor.user(reader).await, visitor.quantity(reader).await);
            assert_eq!(seen, (json!("ada"), json!(2)), "order of arrival {order:?}");
        }
    }
    for order in ORDERS {
        let mut visitor = visitor(&regions).await;
        let session = visitor.cookies["__Host-session"].clone();
        let answers = overlap(&visitor, &regions, other.request(Method::DELETE, "/_edge/v1/session")).await;
        receive(&mut visitor, &answers, order);
        // A copy of the cookie, as another tab has it.
        visitor.cookies.insert("__Host-session".to_owned(), session);
        for reader in regions.all() {
            assert_ne!(visitor.quantity(reader).await, json!(2), "order of arrival {order:?}");
        }
    }
}

#[tokio::test]
async fn requests_that_merge_at_the_same_time_leave_one_cookie() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let mut visitor = visitor_with_two_cookies(&regions).await;
    let readers = [regions.all(), regions.all(), regions.all()].concat();
    // All of them carry both cookies.
    let reads: Vec<_> = readers.iter().map(|shop| visitor.ask(shop.get("/_edge/v1/session"))).collect();
    for read in reads {
        // Each merge gets a token of its own, because other visitors write.
        Browser::default().put(&regions.home, "cup", 1).await;
        let answer = read.await;
        assert!(answer.text.contains("\"quantity\":3"), "{}", answer.text);
        visitor.store(&answer.cookies);
        assert_eq!(visitor.sync_names().len(), 1);
    }
    let merged = visitor.cookies.clone();
    for shop in regions.all() {
        assert_eq!(visitor.quantity(shop).await, json!(3));
    }
    assert_eq!(visitor.cookies, merged, "one cookie needs no merge");
}

#[tokio::test]
async fn a_merge_that_overlaps_with_a_change_does_not_hide_it() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, other] = &regions.far;
    for order in ORDERS {
        let mut visitor = visitor_with_two_cookies(&regions).await;
        let (merge, change) = (visitor.ask(far.get("/_edge/v1/session")), visitor.ask(put(other, "mug", 4)));
        let merge = merge.await;
        catch_up(&regions, &visitor, 3).await;
        let answers = [merge, change.await];
        receive(&mut visitor, &answers, order);
        for reader in regions.all() {
            assert_eq!(visitor.quantity(reader).await, json!(4), "order of arrival {order:?}");
        }
        assert_eq!(visitor.sync_names().len(), 1);
    }
}

#[tokio::test]
async fn a_merge_costs_one_write_and_one_cookie_costs_none() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    let mut visitor = visitor_with_two_cookies(&regions).await;
    for expected in [(2, 1), (1, 0)] {
        catch_up(&regions, &visitor, 3).await;
        far.blocking_and_forwarded().await;
        visitor.quantity(far).await;
        assert_eq!(far.blocking_and_forwarded().await, expected);
    }
}

#[tokio::test]
async fn without_redis_the_cookies_stay_and_pages_are_answered() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    far.origin.answer(Reply::html("page").header("cache-control", LONG));
    let mut visitor = visitor_with_two_cookies(&regions).await;
    far.store.gateway.set_fault(Some(Fault::Refuse));
    let (before, (status, page)) = (visitor.cookies.clone(), visitor.send(far.get("/products/mug")).await);
    assert_eq!((status, page.as_str()), (200, "page"));
    assert_eq!(visitor.cookies, before);
    far.store.gateway.set_fault(None);
}

#[tokio::test]
async fn a_request_that_could_not_merge_shows_no_earlier_state() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    let mut visitor = visitor_with_two_cookies(&regions).await;
    // Both attempts of the merge. The reads after them would be answered.
    far.store.gateway.set_fault_for(Fault::Refuse, FaultScope::Next(2));
    let before = visitor.cookies.clone();
    assert_eq!(visitor.send(far.get("/_edge/v1/cart")).await.0, 503);
    assert_eq!(visitor.cookies, before);
    assert_eq!(visitor.quantity(far).await, json!(3));
}

#[tokio::test]
async fn a_page_that_the_home_tier_hands_over_carries_the_merged_cookie() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    let tiers = far.tiers::<1>(&[("READ_REGIONS", "1")], false).await;
    let [edge] = &tiers.edge;
    let mug = |shop: &Shop| shop.get("/products/mug").header("host", "shop.example");
    far.origin.answer(Reply::html("page").header("cache-control", LONG));
    mug(&tiers.home).send().await.unwrap();
    tiers.home.settled().await;
    let mut visitor = visitor_with_two_cookies(&regions).await;
    // The edge tier has no copy, so it asks for the stored page.
    for expected in [1, 0] {
        let answer = visitor.ask(mug(edge)).await;
        visitor.store(&answer.cookies);
        let set = answer.cookies.sync_count();
        assert_eq!((answer.text.as_str(), set, visitor.sync_names().len()), ("page", expected, 1));
    }
    assert!(far.origin.asked().iter().all(|asked| !asked.header("cookie").contains("__Host-session")));
    assert_eq!(visitor.quantity(edge).await, json!(3));
}

/// A visitor with several tabs: random changes and reads through random locations, one after the other or at once, whose
/// answers arrive in random order. The replicas lag, and the primary is far away.
#[tokio::test]
async fn no_interleaving_shows_an_earlier_state() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let plan = proptest::collection::vec((0..3_usize, 0..4_u8, 0..100_u8), 4);
    let mut runner = TestRunner::deterministic();
    let mut visitor = visitor(&regions).await;
    let mut quantity = 0;
    for round in 0..40 {
        for far in &regions.far {
            far.store.gateway.set_lag(Duration::from_millis([0, 5, 60, 1000][round % 4]));
            far.store.gateway.set_latency(Duration::from_millis([0, 3][round / 2 % 2]));
        }
        let plan = plan.new_tree(&mut runner).expect("a plan").current();
        // All with the cookies of the round's begin.
        let mut requests = Vec::new();
        for &(place, kind, _) in &plan {
            let shop = regions.all()[place];
            quantity += 1;
            let request = if kind < 3 { put(shop, "mug", quantity) } else { shop.get("/_edge/v1/session") };
            requests.push(visitor.ask(request));
        }
        let mut answers = Vec::new();
        if round % 3 == 0 {
            answers = join_all(requests).await;
        } else {
            for request in requests {
                answers.push(request.await);
            }
        }
        let mut arrivals: Vec<_> = plan.iter().zip(&answers).map(|((.., at), answer)| (at, answer)).collect();
        arrivals.sort_by_key(|(at, _)| **at);
        for (_, answer) in arrivals {
            visitor.store(&answer.cookies);
        }
        // The primary has the last state, whatever the token.
        let last = visitor.clone().quantity(&regions.home).await;
        for shop in regions.all() {
            assert_eq!(visitor.quantity(shop).await, last, "round {round}: {plan:?}");
        }
        assert!(visitor.sync_names().len() <= 1, "{visitor:?}");
    }
}

/// The response has a cookie of one visitor, so no CDN may store it (RFC 9213 §2.2).
#[tokio::test]
async fn no_cache_header_stays_beside_the_cookie() {
    let regions = Regions::start(&[], IMPATIENT).await;
    let [far, _] = &regions.far;
    let mut visitor = Browser::default();
    visitor.log_in(far, "ada").await;
    let reply = Reply::html("added").header("edge-cart", CART).header("cdn-cache-control", "public, max-age=60");
    far.origin.answer(reply.header("expires", "Sat, 21 Nov 2036 15:00:00 GMT"));
    let session = visitor.cookies["__Host-session"].clone();
    let request = far.request(Method::POST, "/cart").header("cookie", format!("__Host-session={session}"));
    let answer = request.send().await.unwrap();
    assert!(header_of(&answer, "set-cookie").starts_with("__Host-session-sync-"), "{:?}", answer.headers());
    assert_eq!(header_of(&answer, "cache-control"), "private, no-store");
    for name in ["cdn-cache-control", "expires"] {
        assert_eq!(header_of(&answer, name), "", "{name}");
    }
}
