//! Unsafe requests void the pages that they change.

use std::time::Duration;

use edgefront_gateway::Fault;
use http::Method;

use super::{ask, fresh, status};
use crate::{
    page_cache::stored_pages,
    support::{Reply, Shop, eventually, scenarios},
};

scenarios! {
    &[];
    a_successful_write_voids_the_page_under_its_url,
    a_failed_write_and_an_options_request_void_nothing,
    a_write_voids_the_pages_that_its_response_names,
    a_write_to_the_data_of_a_page_voids_the_page,
    a_write_with_the_id_of_a_session_voids_the_page_without_it,
    a_render_from_before_a_write_is_not_stored,
}

async fn is_stored(shop: &Shop, path: &str) -> bool {
    status(shop, path, &[]).await.starts_with("hit")
}

async fn write(shop: &Shop, method: &str, path: &str, reply: Reply) {
    shop.origin.answer(reply);
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    shop.request(method, path).body("x").send().await.unwrap();
    shop.origin.answer(fresh("page", "max-age=60"));
}

// §4.4
async fn a_successful_write_voids_the_page_under_its_url(shop: &Shop) {
    for (method, code) in [("POST", 200), ("PUT", 204), ("DELETE", 303), ("PATCH", 201)] {
        shop.origin.answer(fresh("page", "max-age=60"));
        ask(shop, "/page?a=1", &[]).await;
        assert!(is_stored(shop, "/page?a=1").await);
        write(shop, method, "/page?utm_source=x&a=1", Reply::status(code)).await;
        assert!(!is_stored(shop, "/page?a=1").await, "{method} {code}");
    }
}

async fn a_failed_write_and_an_options_request_void_nothing(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60"));
    ask(shop, "/page", &[]).await;
    for (method, code) in [("POST", 500), ("PUT", 404), ("DELETE", 403), ("OPTIONS", 200)] {
        write(shop, method, "/page", Reply::status(code)).await;
        assert!(is_stored(shop, "/page").await, "{method} {code}");
    }
}

async fn a_write_voids_the_pages_that_its_response_names(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60"));
    let named = format!("{}/list?page=1", shop.url);
    ask(shop, "/k%C3%A4se", &[]).await;
    write(shop, "POST", "/add", Reply::status(303).header("location", "/k\u{e4}se")).await;
    assert!(!is_stored(shop, "/k%C3%A4se").await, "PHP sends UTF-8");
    for (header, value, is_voided) in [
        ("location", "/list?page=1", true),
        ("content-location", "list?page=1", true),
        ("location", named.as_str(), true),
        ("location", "https://elsewhere.example/list?page=1", false),
        ("x-location", "/list?page=1", false),
    ] {
        ask(shop, "/list?page=1", &[]).await;
        write(shop, "POST", "/add", Reply::status(201).header(header, value)).await;
        assert_eq!(!is_stored(shop, "/list?page=1").await, is_voided, "{header}: {value}");
    }
}

// React Router sends forms to the URL of the page's data.
async fn a_write_to_the_data_of_a_page_voids_the_page(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60"));
    for (page, data, is_voided) in [
        ("/list", "/list.data", true),
        ("/list", "/list.data?_routes=routes%2Flist", true),
        ("/list", "/list/_.data", true),
        ("/", "/_.data?index", true),
        ("/list", "/list/__data.json?x-sveltekit-invalidated=01", true),
        ("/", "/_payload.json", true),
        ("/list/", "/list/q-data.json?qaction=add", true),
        ("/list", "/lists.data", false),
        ("/list", "/data", false),
    ] {
        ask(shop, page, &[]).await;
        assert!(is_stored(shop, page).await, "{page}");
        write(shop, "POST", data, Reply::status(202)).await;
        assert_eq!(!is_stored(shop, page).await, is_voided, "{data}");
    }
}

// Tomcat and PHP write the id of a session into the URLs of visitors without cookies.
async fn a_write_with_the_id_of_a_session_voids_the_page_without_it(shop: &Shop) {
    shop.origin.answer(fresh("page", "max-age=60"));
    for (path, location, is_voided) in [
        ("/add", "/list;jsessionid=0A1B2C3D4E5F?id=5", true),
        ("/add;jsessionid=0A1B2C3D4E5F", "/list?id=5", true),
        ("/add", "/list?PHPSESSID=0a1b2c3d4e5f&id=5", true),
        ("/list;jsessionid=0A1B2C3D4E5F?id=5", "/other", true),
        ("/list?id=5&PHPSESSID=0a1b2c3d4e5f", "/other", true),
        ("/add", "/list;jsessionid=0A1B2C3D4E5F?id=6", false),
    ] {
        ask(shop, "/list?id=5", &[]).await;
        write(shop, "POST", path, Reply::status(303).header("location", location)).await;
        assert_eq!(!is_stored(shop, "/list?id=5").await, is_voided, "{path}, {location}");
    }
}

// The book's slow render would store the old page after the write.
async fn a_render_from_before_a_write_is_not_stored(shop: &Shop) {
    shop.origin.answer(fresh("old", "max-age=60"));
    shop.origin.hold();
    let change = async {
        eventually("the origin is asked", async || shop.origin.count() == 1).await;
        let keys = shop.store.raw(&["KEYS", "render:*"]).await;
        assert_eq!(keys.as_array().map(Vec::len), Some(1));
        let post = shop.request(Method::POST, "/page").send();
        let release = async {
            eventually("the write has arrived", async || shop.origin.count() == 2).await;
            shop.origin.release();
        };
        futures_util::future::join(post, release).await.0.unwrap();
    };
    futures_util::future::join(shop.visit("/page"), change).await;
    shop.settled().await;
    // The assertion holds for either order of the two responses.
    assert_eq!(stored_pages(shop).await, Vec::<String>::new());
}

/// Each visit confirms the notes of the isolate.
mod without_memory {
    use super::*;

    scenarios! {
        &[("PAGE_MEMORY", "0"), ("PAGE_MAX_BYTES", "1000")];
        a_write_takes_effect_although_redis_does_not_know_of_it_yet,
        a_render_that_cannot_be_stored_does_not_end_the_note_of_a_write,
    }

    async fn a_write_takes_effect_although_redis_does_not_know_of_it_yet(shop: &Shop) {
        shop.origin.answer(fresh("old", "max-age=60"));
        ask(shop, "/page", &[]).await;
        shop.settled().await;
        assert!(is_stored(shop, "/page").await);
        shop.store.gateway.set_fault(Some(Fault::Refuse));
        shop.origin.answer(Reply::status(204));
        shop.request(Method::POST, "/page").body("x").send().await.unwrap();
        shop.origin.answer(fresh("new", "max-age=60"));
        shop.logged("pages were not voided, trying again").await;
        shop.store.gateway.set_fault(None);
        for _ in 0..20 {
            assert_eq!(shop.visit("/page").await.text().await.unwrap(), "new");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The second try ends the note.
        shop.settled().await;
        ask(shop, "/page", &[]).await;
        shop.settled().await;
        assert!(is_stored(shop, "/page").await);
    }

    async fn a_render_that_cannot_be_stored_does_not_end_the_note_of_a_write(shop: &Shop) {
        shop.origin.answer(fresh("old", "max-age=0, stale-while-revalidate=60").header("etag", "\"a\""));
        ask(shop, "/page", &[]).await;
        // A background render begins before the write, and ends after it.
        shop.origin.hold();
        let too_large = Reply::then_held("large", "x".repeat(1_000)).header("content-type", "text/html");
        shop.origin.answer(too_large.header("cache-control", "max-age=60"));
        assert_eq!(shop.visit("/page").await.text().await.unwrap(), "old");
        eventually("the render has begun", async || shop.origin.count() == 2).await;
        shop.store.gateway.set_fault(Some(Fault::Refuse));
        shop.origin.answer(Reply::then_held("written", ""));
        shop.request(Method::POST, "/page").body("x").send().await.unwrap();
        shop.logged("pages were not voided, trying again").await;
        shop.origin.release();
        shop.logged("a background render cannot be stored: too-large").await;
        shop.store.gateway.set_fault(None);
        shop.origin.answer(fresh("new", "max-age=60"));
        for _ in 0..20 {
            assert_eq!(shop.visit("/page").await.text().await.unwrap(), "new");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
