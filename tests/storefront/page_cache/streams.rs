//! edgefront streams bodies: a visitor gets the first byte before the origin has sent the last one.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{future::join_all, stream};
use http::Method;

use super::{cache_status, header, is_hit, stored_pages};
use crate::{
    routes::api::log_in,
    support::{Reply, Shop, scenarios},
};

scenarios! {
    &[];
    two_hundred_megabytes_come_down_in_constant_memory,
    two_hundred_megabytes_go_up_in_constant_memory,
    a_slow_page_passes_while_it_comes_and_is_stored_then,
    a_slow_page_that_breaks_off_is_not_stored,
    a_range_of_a_file_that_is_too_large_is_the_origins,
    slow_pages_count_with_the_bytes_that_have_arrived,
    a_slow_page_that_outgrows_the_memory_passes_unstored,
    a_page_for_which_the_isolate_has_no_memory_passes_unstored,
    a_page_with_esi_for_which_the_isolate_has_no_memory_is_not_assembled,
}

/// The number of pages that fill the memory of pages, if each has more than 128 KiB.
const FULL: usize = 16;

/// A body, and the most bytes of it that may be in flight: the part that is collected before the page proves to be too
/// large, and the buffers of five sockets. The kernel enlarges the buffers of slow readers.
const LARGE: u64 = 200 << 20;
const ON_THE_WAY: u64 = 80 << 20;

async fn two_hundred_megabytes_come_down_in_constant_memory(shop: &Shop) {
    for (path, control) in [("/export", "private"), ("/download", "max-age=60")] {
        shop.origin.answer(Reply::zeros(LARGE).header("cache-control", control));
        let (mut read, before) = (0, shop.origin.sent());
        let mut answer = shop.visit(path).await;
        while let Some(chunk) = answer.chunk().await.unwrap() {
            read += chunk.len() as u64;
            let on_the_way = shop.origin.sent() - before - read;
            assert!(on_the_way < ON_THE_WAY, "{path}: {on_the_way} after {read}");
        }
        assert_eq!(read, LARGE);
    }
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

async fn two_hundred_megabytes_go_up_in_constant_memory(shop: &Shop) {
    shop.origin.answer(Reply::echo());
    let made = Arc::new(AtomicU64::new(0));
    let count = made.clone();
    let chunks = stream::unfold(0, move |sent| {
        let count = count.clone();
        async move {
            (sent < LARGE).then(|| {
                count.fetch_add(1 << 20, Ordering::SeqCst);
                (Ok::<_, Infallible>(Bytes::from(vec![7; 1 << 20])), sent + (1 << 20))
            })
        }
    });
    let mut answer =
        shop.request(Method::POST, "/import").body(reqwest::Body::wrap_stream(chunks)).send().await.unwrap();
    let mut read = 0;
    while let Some(chunk) = answer.chunk().await.unwrap() {
        read += chunk.len() as u64;
        let on_the_way = made.load(Ordering::SeqCst) - read;
        assert!(on_the_way < ON_THE_WAY, "{on_the_way} after {read}");
    }
    assert_eq!(read, LARGE);
}

async fn a_slow_page_passes_while_it_comes_and_is_stored_then(shop: &Shop) {
    shop.origin.answer(Reply::then_held("first ", "last").header("cache-control", "max-age=60"));
    shop.origin.hold();
    let mut answer = shop.visit("/page").await;
    assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; stored");
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "first ", "the rest is not there yet");
    shop.origin.release();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "last");
    assert!(answer.chunk().await.unwrap().is_none());
    shop.settled().await;
    let answer = shop.visit("/page").await;
    assert!(is_hit(&answer) && header(&answer, "etag").len() == 18, "{answer:?}");
    assert_eq!(answer.text().await.unwrap(), "first last");
}

async fn a_slow_page_that_breaks_off_is_not_stored(shop: &Shop) {
    shop.origin.answer(
        Reply::then_held("first ", "last").header("cache-control", "max-age=60").header("content-length", "99"),
    );
    shop.origin.hold();
    let answer = shop.visit("/page").await;
    assert_eq!(answer.status(), 200);
    shop.origin.release();
    assert!(answer.bytes().await.is_err(), "it must not look whole");
    shop.settled().await;
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

/// The file is declared shared, so the first request becomes a shared render of the whole file.
async fn a_range_of_a_file_that_is_too_large_is_the_origins(shop: &Shop) {
    shop.store.raw(&["ZADD", "viewed:", "-100", "mug"]).await;
    shop.origin.answer_with(|asked| match asked.header("range") {
        "" => Reply::zeros(4 << 20),
        _ => Reply::html("<h").with_status(206).header("content-range", "bytes 0-1/4194304"),
    });
    for _ in 0..2 {
        let answer = shop.get("/products/mug").header("range", "bytes=0-1").send().await.unwrap();
        assert_eq!((answer.status().as_u16(), cache_status(&answer).contains("too-large")), (206, true));
        assert_eq!(answer.text().await.unwrap(), "<h");
    }
}

/// A slow page of unknown length.
fn slow(first: impl Into<Bytes>, rest: impl Into<Bytes>) -> Reply {
    Reply::then_held(first, rest).header("cache-control", "max-age=60")
}

/// Visits these pages at the same time.
async fn visit_pages(shop: &Shop, numbers: std::ops::Range<usize>) -> Vec<reqwest::Response> {
    join_all(numbers.map(async |number| shop.visit(&format!("/pages/{number}")).await)).await
}

async fn slow_pages_count_with_the_bytes_that_have_arrived(shop: &Shop) {
    shop.origin.answer(slow("first ", "last"));
    shop.origin.hold();
    let answers = visit_pages(shop, 0..FULL + 1).await;
    shop.origin.release();
    for answer in answers {
        assert_eq!(cache_status(&answer), "edgefront; fwd=uri-miss; stored");
        assert_eq!(answer.text().await.unwrap(), "first last");
    }
    shop.settled().await;
    assert_eq!(stored_pages(shop).await.len(), FULL + 1);
}

async fn a_slow_page_that_outgrows_the_memory_passes_unstored(shop: &Shop) {
    let rest = vec![b'x'; 900 << 10];
    let whole = [b"first ".as_slice(), &rest].concat();
    shop.origin.answer_with(move |asked| match asked.path.as_str() {
        "/grows" => slow("first ", rest.clone()),
        "/small" => slow("first ", "last"),
        _ => slow(vec![b'x'; 200 << 10], "last"),
    });
    shop.origin.hold();
    let grows = shop.visit("/grows").await;
    // 15 pages of 1 MiB and two of 128 KiB leave 768 KiB.
    let mut others = visit_pages(shop, 1..FULL).await;
    others.push(shop.visit("/small").await);
    shop.origin.hold_after(1);
    assert_eq!(grows.bytes().await.unwrap(), whole);
    shop.origin.release();
    for answer in others {
        answer.bytes().await.unwrap();
    }
    shop.settled().await;
    assert_eq!(stored_pages(shop).await.len(), FULL);
    assert_eq!(cache_status(&shop.visit("/grows").await), "edgefront; fwd=uri-miss; stored", "it leaves no note");
}

/// A body of unknown length that exceeds 128 KiB counts as `PAGE_MAX_BYTES`, and all pages together may take 16 MiB. A signed-in
/// visitor costs one request to the origin.
async fn a_page_for_which_the_isolate_has_no_memory_passes_unstored(shop: &Shop) {
    shop.origin.answer(slow(vec![b'x'; 200 << 10], "last"));
    shop.store.raw(&["ZADD", "viewed:", "-100", "mug"]).await;
    let ada = log_in(shop, "ada").await;
    shop.origin.hold();
    let visit = async |number: usize| shop.visit(&format!("/pages/{number}")).await;
    let mut answers = join_all((0..FULL).map(visit)).await;
    answers.push(visit(FULL).await);
    let popular = shop.get("/products/mug").header("cookie", ada.cookie.as_deref().unwrap());
    answers.push(popular.send().await.unwrap());
    assert_eq!(shop.origin.count(), answers.len());
    shop.origin.release();
    for (number, answer) in answers.into_iter().enumerate() {
        let end = if number < FULL { "stored" } else { "detail=busy" };
        assert_eq!(cache_status(&answer), format!("edgefront; fwd=uri-miss; {end}"), "{number}");
        assert_eq!(answer.bytes().await.unwrap().len(), (200 << 10) + 4);
    }
    shop.settled().await;
    assert_eq!(stored_pages(shop).await.len(), FULL);
    assert_eq!(cache_status(&visit(FULL).await), "edgefront; fwd=uri-miss; stored");
}

/// Template and fragments are collected before the first byte is sent, for shared and for personal pages.
async fn a_page_with_esi_for_which_the_isolate_has_no_memory_is_not_assembled(shop: &Shop) {
    shop.origin.answer_with(|asked| match asked.path.as_str() {
        "/esi" => slow("first ", "last").header("surrogate-control", r#"content="ESI/1.0""#),
        _ => slow(vec![b'x'; 200 << 10], "last"),
    });
    shop.origin.hold();
    let answers = visit_pages(shop, 0..FULL).await;
    let shared = shop.visit("/esi").await;
    assert_eq!(
        (shared.status(), cache_status(&shared).as_str()),
        (503.try_into().unwrap(), "edgefront; fwd=uri-miss; detail=busy")
    );
    assert_eq!(shop.request(Method::POST, "/esi").send().await.unwrap().status(), 503);
    shop.origin.release();
    for answer in answers {
        answer.bytes().await.unwrap();
    }
    shop.settled().await;
    assert_eq!(shop.visit("/esi").await.text().await.unwrap(), "first last");
}
