//! The Worker's adapter to the platform: requests, responses, time and variables. Scenarios that run natively and in
//! workerd test the rest.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use bytes::Bytes;
use edgefront_gateway::Fault;
use futures_util::{StreamExt, future::join_all, stream};
use http::Method;
use serde_json::{Value, json};

use crate::ranking::make_halving_due;
use crate::routes::api::log_in;
use crate::support::{Reply, Shop, eventually, scenarios};

scenarios! {
    &[("ORIGIN_TIMEOUT", "1"), ("RANKING_HALF_LIFE", crate::ranking::LONG_HALF_LIFE)];
    a_large_response_keeps_its_length,
    a_page_that_turns_out_too_large_passes_whole,
    a_truncated_page_above_the_limit_ends_with_an_error,
    a_visitor_who_leaves_a_page_that_is_too_large_ends_it_at_the_origin,
    request_and_response_are_streamed_at_the_same_time,
    a_compressed_response_is_passed_on_unchanged,
    statuses_without_a_body_have_none,
    each_set_cookie_stays_a_line_of_its_own,
    a_slow_head_is_given_up_and_a_slow_body_is_not,
    an_api_call_whose_body_does_not_arrive_is_given_up,
    forty_requests_reach_the_origin_at_once,
    concurrent_long_pages_do_not_mix,
    a_visitor_who_leaves_disturbs_no_other,
    concurrent_visitors_share_a_request_to_redis,
    a_visitor_who_leaves_ends_no_shared_request,
    a_request_that_the_platform_refuses_harms_nobody,
    a_cron_trigger_does_its_jobs,
}

/// An isolate has no room for several of these.
const LARGE: u64 = 48 << 20;

async fn a_large_response_keeps_its_length(shop: &Shop) {
    shop.origin.answer(Reply::zeros(LARGE));
    let answer = shop.visit("/export").await;
    assert_eq!(answer.headers()["content-length"], LARGE.to_string());
    let bytes = answer.bytes_stream().map(|chunk| chunk.expect("a chunk").len() as u64);
    assert_eq!(bytes.fold(0, async |sum, length| sum + length).await, LARGE);
}

/// Its length is unknown, so edgefront begins to read it. When it exceeds the limit, edgefront passes the rest on.
async fn a_page_that_turns_out_too_large_passes_whole(shop: &Shop) {
    let first: Bytes = (0..=255).cycle().take(6 << 20).collect();
    let rest: Bytes = (0..=255).rev().cycle().take(6 << 20).collect();
    let reply = Reply::then_held(first.clone(), rest.clone()).header("content-type", "text/html");
    shop.origin.answer(reply.header("cache-control", "public, max-age=600"));
    let mut visits = Vec::new();
    for path in ["/a", "/b", "/c"] {
        let answer = shop.visit(path).await;
        assert_eq!(answer.headers()["cache-status"], "edgefront; fwd=uri-miss; detail=too-large");
        visits.push(answer);
    }
    let mut visits = visits.into_iter();
    // The visitor leaves in the middle of the body.
    drop(visits.next());
    for answer in visits {
        assert!(answer.bytes().await.unwrap() == [&first[..], &rest[..]].concat());
    }
}

async fn a_truncated_page_above_the_limit_ends_with_an_error(shop: &Shop) {
    let reply = Reply::truncated(vec![7; 12 << 20]).chunked();
    shop.origin.answer(reply.header("cache-control", "public, max-age=600"));
    let answer = shop.visit("/page").await;
    assert_eq!(answer.headers()["cache-status"], "edgefront; fwd=uri-miss; detail=too-large");
    assert!(answer.bytes().await.is_err());
    shop.origin.answer(Reply::html("whole"));
    assert_eq!(shop.visit("/page").await.text().await.unwrap(), "whole");
}

async fn a_visitor_who_leaves_a_page_that_is_too_large_ends_it_at_the_origin(shop: &Shop) {
    let reply = Reply::zeros(1 << 40).chunked().header("content-type", "text/html");
    shop.origin.answer(reply.header("cache-control", "public, max-age=600"));
    let mut answer = shop.visit("/page").await;
    assert_eq!(answer.headers()["cache-status"], "edgefront; fwd=uri-miss; detail=too-large");
    for _ in 0..100 {
        answer.chunk().await.unwrap().expect("it is endless");
    }
    assert_eq!(shop.origin.sending(), 1);
    drop(answer);
    eventually("the origin is told", async || shop.origin.sending() == 0).await;
}

async fn request_and_response_are_streamed_at_the_same_time(shop: &Shop) {
    shop.origin.answer(Reply::echo());
    let chunk: Bytes = (0..=255).cycle().take(64 << 10).collect();
    let chunks = stream::iter(vec![chunk.clone(); 256]).map(Ok::<_, Infallible>);
    let request = shop.request(Method::POST, "/echo").body(reqwest::Body::wrap_stream(chunks));
    let answer = request.send().await.unwrap().bytes().await.unwrap();
    assert_eq!(answer.len(), 256 * chunk.len());
    assert!(answer.chunks(chunk.len()).all(|part| part == chunk));
}

async fn a_compressed_response_is_passed_on_unchanged(shop: &Shop) {
    const GZIP: &[u8] =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xce\xcf\x2d\x28\x4a\x2d\x2e\x4e\x4d\x51\x48\x2c\x51\x28\xc9\
        \x48\x55\xc8\x2f\xca\x4c\xcf\xcc\xe3\x02\x00\x45\x80\x23\x0c\x19\x00\x00\x00";
    shop.origin.answer(Reply::html(GZIP).header("content-encoding", "gzip"));
    let answer = shop.get("/about").header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert_eq!(answer.bytes().await.unwrap(), GZIP);
    // The platform adds the encodings that it can decode.
    assert!(shop.origin.last().header("accept-encoding").ends_with("gzip"));
}

async fn statuses_without_a_body_have_none(shop: &Shop) {
    for status in [204, 304] {
        shop.origin.answer(Reply::status(status).header("etag", "\"1\""));
        let answer = shop.visit("/about").await;
        assert_eq!((answer.status().as_u16(), answer.headers()["etag"].as_bytes()), (status, b"\"1\"".as_slice()));
        assert!(answer.bytes().await.unwrap().is_empty(), "{status}");
    }
    shop.origin.answer(Reply::html("12345"));
    let answer = shop.request(Method::HEAD, "/about").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["content-length"].as_bytes()), (200, b"5".as_slice()));
}

async fn each_set_cookie_stays_a_line_of_its_own(shop: &Shop) {
    let cookies = ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "b=2", "a=3"];
    shop.origin.answer(cookies.iter().fold(Reply::html(""), |reply, cookie| reply.header("set-cookie", cookie)));
    let answer = shop.visit("/about").await;
    let set: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
    assert_eq!(set, cookies);
}

async fn a_slow_head_is_given_up_and_a_slow_body_is_not(shop: &Shop) {
    shop.origin.hold();
    let start = Instant::now();
    assert_eq!(shop.visit("/about").await.status(), 504);
    assert!(start.elapsed() >= Duration::from_secs(1), "ORIGIN_TIMEOUT is a second");
    shop.origin.answer(Reply::then_held("begun", " and ended"));
    let answer = shop.visit("/about").await;
    assert_eq!(answer.status(), 200);
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    shop.origin.release();
    assert_eq!(answer.text().await.unwrap(), "begun and ended");
}

async fn an_api_call_whose_body_does_not_arrive_is_given_up(shop: &Shop) {
    let chunks = stream::iter([Ok::<_, Infallible>("{")]).chain(stream::pending());
    let request = shop.request(Method::POST, "/_edge/v1/cart/items").header("sec-fetch-site", "same-origin");
    let request = request.header("content-type", "application/json").body(reqwest::Body::wrap_stream(chunks));
    assert_eq!(request.send().await.unwrap().status(), 400);
}

async fn forty_requests_reach_the_origin_at_once(shop: &Shop) {
    shop.origin.answer_with(|asked| Reply::then_held(format!("{} ", asked.path), "end"));
    shop.origin.hold();
    let paths: Vec<_> = (0..40).map(|number| format!("/pages/{number}")).collect();
    let answers = join_all(paths.iter().map(async |path| shop.visit(path).await)).await;
    assert_eq!(shop.origin.count(), 40, "all are under way");
    shop.origin.release();
    for (path, answer) in paths.iter().zip(answers) {
        assert_eq!(answer.text().await.unwrap(), format!("{path} end"));
    }
}

/// Reads reuse their buffers. Half of the bodies have no known length, and a third of the visitors leave once.
async fn concurrent_long_pages_do_not_mix(shop: &Shop) {
    const LENGTH: usize = 100_000;
    let page = |path: &str| path.bytes().cycle().take(LENGTH).collect::<Vec<_>>();
    shop.origin.answer_with(move |asked| {
        let mut bytes = page(&asked.path);
        let reply = if asked.path.ends_with(['0', '2', '4', '6', '8']) {
            let rest = bytes.split_off(LENGTH / 2);
            Reply::then_held(bytes, rest)
        } else {
            Reply::html(bytes)
        };
        reply.header("content-type", "text/html").header("cache-control", "public, max-age=600")
    });
    let visit = async |number: usize| {
        let path = format!("/pages/{number}");
        if number.is_multiple_of(3) {
            let visit = shop.get(&path).send();
            drop(tokio::time::timeout(Duration::from_millis(number as u64 % 7), visit).await);
        }
        let answer = shop.visit(&path).await.bytes().await.unwrap();
        assert!(answer == page(&path), "{path} has all of its bytes and no other");
    };
    for round in 0..4 {
        join_all((0..32).map(|number| visit(round * 32 + number))).await;
    }
}

async fn a_visitor_who_leaves_disturbs_no_other(shop: &Shop) {
    shop.origin.answer(Reply::then_held("begun", " and ended"));
    shop.origin.hold();
    let answer = shop.visit("/about").await;
    let unanswered = tokio::spawn(shop.get("/about").send());
    eventually("the second is under way", async || shop.origin.count() == 2).await;
    drop(answer);
    unanswered.abort();
    shop.origin.release();
    assert_eq!(shop.visit("/about").await.text().await.unwrap(), "begun and ended");
}

async fn concurrent_visitors_share_a_request_to_redis(shop: &Shop) {
    let visitors = join_all((0..4).map(async |number| log_in(shop, &format!("user-{number}")).await)).await;
    shop.settled().await;
    // Redis is slow, so all calls arrive while the first request is in flight.
    shop.store.gateway.set_fault(Some(Fault::Slow(Duration::from_millis(200))));
    let before = shop.store.counts().requests;
    let visits = visitors.iter().cycle().take(32).map(|visitor| visitor.request(Method::GET, "/session").send());
    for (number, answer) in join_all(visits).await.into_iter().enumerate() {
        let answer: Value = answer.unwrap().json().await.unwrap();
        assert_eq!(answer["user"], format!("user-{}", number % 4));
    }
    let requests = shop.store.counts().requests - before;
    assert!(requests <= 16, "{requests}");
}

async fn a_visitor_who_leaves_ends_no_shared_request(shop: &Shop) {
    let path = "/_edge/v1/rows/mug";
    shop.store.gateway.set_fault(Some(Fault::Slow(Duration::from_millis(300))));
    for _ in 0..3 {
        let leave: Vec<_> = (0..8).map(|_| tokio::spawn(shop.get(path).send())).collect();
        let stays = tokio::spawn(shop.get(path).send());
        let before = shop.store.counts().requests;
        eventually("the first are on their way", async || shop.store.counts().requests > before).await;
        leave.iter().for_each(tokio::task::JoinHandle::abort);
        assert_eq!(stays.await.unwrap().unwrap().status(), 404);
    }
}

async fn a_request_that_the_platform_refuses_harms_nobody(shop: &Shop) {
    shop.origin.answer(Reply::then_held("begun", " and ended"));
    shop.origin.hold();
    let under_way = shop.visit("/about").await;
    shop.origin.answer(Reply::html("answered"));
    for (method, body) in [("GET", "a body"), ("HEAD", "a body"), ("TRACE", ""), ("PURGE", ""), ("MADE-UP", "a body")] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        // The platform may refuse the request or pass it on.
        let answer = shop.request(method.clone(), "/about").body(body).send();
        let answer = tokio::time::timeout(Duration::from_secs(20), answer).await;
        assert!(answer.is_ok(), "{method} is answered, or the connection closed");
    }
    shop.origin.release();
    assert_eq!(under_way.text().await.unwrap(), "begun and ended");
    assert_eq!(shop.visit("/about").await.text().await.unwrap(), "answered");
    let log = shop.logs().join("\n");
    assert!(!log.contains("Critical") && !log.contains("panicked"), "{log}");
}

async fn a_cron_trigger_does_its_jobs(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-8", "mug"]).await;
    make_halving_due(&shop.store).await;
    shop.cron("*/5 * * * *").await;
    assert_eq!(shop.store.raw(&["ZSCORE", "viewed:", "mug"]).await, "-4");
    assert_eq!(shop.store.raw(&["HEXISTS", "jobs:", "rescale"]).await, 1);
    // The jobs skip most minutes, so only the log proves that the trigger ran.
    shop.cron("* * * * *").await;
    let log = shop.logged("\"cron\":\"* * * * *\"").await;
    assert!(log.contains("clean-sessions") && log.contains("refresh-rows"), "{log}");
}

#[tokio::test]
async fn a_wrong_variable_stops_the_worker_with_a_message_that_names_it() {
    let variables = [("PAGE_TTL", "soon"), ("SESSION_KEYS", ""), ("ORIGIN_URL", "shop.example")];
    let refusal = Shop::try_workerd(&variables).await.err().expect("it does not start");
    for (name, _) in variables {
        assert!(refusal.contains(name), "{name}: {refusal}");
    }
    assert!(!refusal.contains("token-of-the-tests"), "{refusal}");
}

#[tokio::test]
async fn a_panic_ends_the_instance_and_the_next_request_gets_a_new_one() {
    let shop = Shop::workerd(&[]).await;
    shop.origin.answer(Reply::html("a page").header("cache-control", "public, max-age=60"));
    shop.visit("/about").await;
    shop.settled().await;
    shop.visit("/about").await;
    assert_eq!(shop.blocking_requests().await, 0, "the isolate has a copy of the page");

    let panicked = shop.request(Method::POST, "/test/panic").send().await.unwrap();
    assert!(panicked.status().is_server_error(), "{}", panicked.status());

    assert_eq!(shop.visit("/about").await.text().await.unwrap(), "a page");
    assert_eq!(shop.blocking_requests().await, 1, "the new instance reads the page from Redis");
    shop.logged("edgefront starts anew after a panic").await;
    shop.visit("/about").await;
    assert_eq!(shop.blocking_requests().await, 0, "the new instance has a copy, too");
}

/// Names of headers that make the `HeaderMap` of wasm overflow, in the order in which the platform lists them: many names, then
/// some with nearly the same hash. The hash is FNV-1a of the number 1 and the name.
fn names_that_overflow() -> impl Iterator<Item = String> {
    let hash = |name: &str| {
        let bytes = 1u32.to_le_bytes().into_iter().chain(name.bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let many = (0..6_700).map(|number| format!("a{number:04x}"));
    let alike = (0u32..).map(|number| format!("z{number:x}")).filter(move |name| hash(name) & 0x7fff < 16);
    many.chain(alike.take(400))
}

#[tokio::test]
async fn a_response_with_too_many_headers_is_refused_and_causes_no_panic() {
    let shop = Shop::workerd(&[]).await;
    shop.origin.answer_with(|_| names_that_overflow().fold(Reply::html(""), |reply, name| reply.header(&name, "")));
    assert_eq!(shop.visit("/about").await.status(), 502);
    let log = shop.logs().join("\n");
    assert!(!log.contains("MAX_SIZE") && !log.contains("anew"), "{log}");
}

#[tokio::test]
async fn a_header_that_is_not_utf8_costs_its_odd_bytes_only() {
    let shop = Shop::workerd(&[]).await;
    shop.origin.answer(Reply::html("").header("x-latin1", b"caf\xe9").header("x-utf8", "café"));
    let answer = shop.get("/about").header("x-sent", "café").send().await.unwrap();
    assert_eq!(answer.headers()["x-latin1"].as_bytes(), "caf\u{fffd}".as_bytes());
    assert_eq!(answer.headers()["x-utf8"].as_bytes(), "café".as_bytes());
    assert_eq!(shop.origin.last().headers["x-sent"].as_bytes(), "café".as_bytes());
}

#[tokio::test]
async fn a_failure_is_logged_by_level_and_without_secrets() {
    let shop = Shop::workerd(&[]).await;
    shop.store.gateway.set_fault(Some(Fault::Garbage));
    let answer = shop.get("/_edge/v1/popular").send().await.unwrap();
    assert_eq!(answer.status(), 503);
    let log = shop.logged(r#"error: {"level":"error","event":"request""#).await;
    assert!(!log.contains("token-of-the-tests") && !log.contains("viewed:"), "{log}");
}

#[tokio::test]
async fn the_platform_says_no_more_than_ours_about_an_error() {
    let shop = Shop::workerd(&[]).await;
    let answer = shop.visit("/_edge/v1/nothing").await;
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["content-type"].as_bytes()),
        (404, b"application/problem+json".as_slice())
    );
    assert_eq!(answer.json::<serde_json::Value>().await.unwrap()["status"], json!(404));
}
